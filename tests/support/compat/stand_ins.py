"""All that a program can rebind in a library, and what to put there so that it shows who looks it up."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from struct import Struct
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    ModuleType,
    SimpleNamespace,
    new_class,
)
from typing import Any, NamedTuple

_MISSING = object()
_OF_MODULES = re.compile(r"(?!__)")
_NEVER = {"__slots__", "__doc__", "__module__", "__qualname__", "__dict__", "__weakref__", "__annotations__"}


class Place(NamedTuple):
    """A name of a module or class, or the entry of a dict or list, and what stands there instead for a while.

    Attributes:
        name: where that is, in words.
        owner: a module, a class, a dict or a list.
        key: an attribute, a key, or an index.
        stand_in: what to put there; `_MISSING` takes the entry out.
    """

    name: str
    owner: Any
    key: Any
    stand_in: Any

    @contextmanager
    def patched(self) -> Iterator[None]:
        """The stand-in is in its place inside the `with` block."""
        before = self._held()
        self._put(self.stand_in)
        try:
            yield
        finally:
            self._put(before)

    def _held(self) -> Any:
        if isinstance(self.owner, list):
            return self.owner[self.key]
        space = self.owner if isinstance(self.owner, dict) else vars(self.owner)
        return space.get(self.key, _MISSING)

    def _put(self, value: Any) -> None:
        if isinstance(self.owner, (dict, list)):
            if value is _MISSING:
                del self.owner[self.key]
            else:
                self.owner[self.key] = value
        elif value is _MISSING:
            delattr(self.owner, self.key)
        else:
            setattr(self.owner, self.key, value)


def places(library: str, modules: tuple[str, ...]) -> Iterator[Place]:
    """Each name in these modules and their classes, entries of what is mutable there, and built-in names."""
    for name in modules:
        module = import_module(f"{library}.{name}")
        yield from _names(module, module.__name__, library)
        for key in sorted(_looked_up(module) - vars(module).keys() & vars(builtins).keys()):
            yield Place(f"{module.__name__}.{key}, a built-in", module, key, _refusing(key))


def _names(owner: Any, where: str, library: str) -> Iterator[Place]:
    for key, value in list(vars(owner).items()):
        if key in _NEVER or isinstance(value, MemberDescriptorType):
            continue
        if key.startswith("__") and not isinstance(value, FunctionType):
            continue
        yield Place(f"{where}.{key}", owner, key, stand_in(value))
        if isinstance(value, (dict, list)):
            yield from _entries(value, f"{where}.{key}")
            yield Place(f"{where}.{key}, emptied", owner, key, type(value)())
        own = getattr(value, "__module__", None) == (
            owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
        )
        if isinstance(value, type) and own:
            yield from _names(value, f"{where}.{key}", library)


def _entries(held: Any, where: str) -> Iterator[Place]:
    for key, value in list(held.items() if isinstance(held, dict) else enumerate(held)):
        yield Place(f"{where}[{key!r}]", held, key, stand_in(value))
        if isinstance(held, dict):
            yield Place(f"{where}[{key!r}], taken out", held, key, _MISSING)


def stand_in(value: Any) -> Any:
    """Something else of about the kind: calls are refused, and constants differ."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(_refusing(value.__func__.__name__))
    if isinstance(value, property):
        return property(_refusing("property"))
    if isinstance(value, type):
        return _derived(value)
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        return _refusing(value.__name__)
    if isinstance(value, Struct):
        return Struct(value.format.replace(">", "<") if ">" in value.format else "b")
    if isinstance(value, re.Pattern):
        return re.compile("x*")
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value ^ 3  # seen of flags as well, of which the lowest bit means something else
    if isinstance(value, str):
        return {"shortstr": "longstr", "long": "longlong", "longlong": "long"}.get(value, value + "x")
    if isinstance(value, bytes):
        return value + b"x"
    if isinstance(value, (tuple, list)):
        return type(value)([stand_in(each) for each in value]) if type(value) in (tuple, list) else None
    if isinstance(value, dict):
        return {key: stand_in(each) for key, each in value.items()}
    return SimpleNamespace()


def _refusing(name: str) -> Any:
    def refuse(*arguments: Any, **named: Any) -> Any:
        raise LookupError(name)

    return refuse


def _derived(cls: type) -> Any:
    try:
        return new_class(
            f"Patched{cls.__name__}", (cls,), {}, lambda space: space.update(__module__=cls.__module__)
        )
    except TypeError:  # an enumeration, or one of those that nothing may be derived from
        return SimpleNamespace()


def _looked_up(module: ModuleType) -> set[str]:
    """Return the names that the functions of a module look up, attributes included."""
    found: set[str] = set()
    waiting: list[Any] = [vars(module)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, CodeType):
            found.update(each.co_names)
            waiting += each.co_consts
        elif isinstance(each, dict):
            waiting += [
                value for value in each.values() if getattr(value, "__module__", None) == module.__name__
            ]
        elif isinstance(each, type):
            waiting.append(dict(vars(each)))
        elif isinstance(each, (staticmethod, classmethod)):
            waiting.append(each.__func__.__code__)
        elif isinstance(each, property):
            waiting += [one.__code__ for one in (each.fget, each.fset) if one]
        elif isinstance(each, FunctionType):
            waiting.append(each.__code__)
    return found
