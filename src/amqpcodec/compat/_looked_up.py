"""Names that a library's functions look up in its modules while they run, and guards on them.

Replacements do the work of many functions at once. Whatever one of those would look up counts: functions,
constants, entries of tables, and built-in names that a module may hide.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from types import CodeType, FunctionType, ModuleType

from .._typing import Any, NamedTuple
from ._guards_c import ModuleGuard

_BUILT_IN = frozenset(vars(builtins))


class Expected(NamedTuple):
    """A name that is about to stand for something else, which counts as if it had all along.

    Attributes:
        space: the dict of a module, or a table.
        name: a name, or a key.
        value: what it is going to stand for.
    """

    space: dict[Any, Any]
    name: Any
    value: Any


def guards(
    sources: Sequence[Any], but: Collection[str] = (), expected: Sequence[Expected] = ()
) -> list[ModuleGuard]:
    """Return guards of what functions look up in their modules, and of the tables that they find so.

    Args:
        sources: functions, and modules and classes of which all functions count. What these import by name
            from other modules of the library counts as well.
        but: names that are about to be replaced, or are looked after otherwise.
        expected: names that stand for something else from now on.
    """
    called = _called(sources)
    names = {name for here in called.values() for name in here}
    found: list[ModuleGuard] = []
    for module in dict.fromkeys(map(_module_of, called)):
        space = vars(import_module(module))
        here = [name for name in sorted(names) if (name in space or name in _BUILT_IN) and name not in but]
        found.append(_guard(space, here, module, expected))
        tables = [(name, space[name]) for name in here if type(space.get(name)) is dict]
        found += [_guard(table, table, f"{module}.{name}", expected) for name, table in tables]
    return found


def _called(sources: Sequence[Any]) -> dict[Any, set[str]]:
    """Return the sources, and functions of their library that they call from elsewhere, with their names."""
    found: dict[Any, set[str]] = {}
    waiting = list(sources)
    for source in waiting:  # which grows meanwhile
        if source in found:
            continue
        found[source] = {name for code in _code_in(source) for name in code.co_names}
        own = _module_of(source)
        library, space = own.partition(".")[0], vars(import_module(own))
        for held in map(space.get, found[source]):
            if type(held) is FunctionType:
                module = held.__module__ or ""
                if module != own and module.partition(".")[0] == library:
                    waiting.append(held)
    return found


def _module_of(source: Any) -> str:
    return str(source.__name__ if isinstance(source, ModuleType) else source.__module__)


def _guard(
    space: dict[Any, Any], names: Collection[Any], where: str, expected: Sequence[Expected]
) -> ModuleGuard:
    guard = ModuleGuard(space, names, where)
    for each in expected:
        if each.space is space and each.name in names:
            guard.expect(each.name, each.value)
    return guard


def _code_in(source: Any) -> Iterator[CodeType]:
    """Yield the code of a function, or of all in a module or class, and of what they have inside or wrap."""
    waiting = [source]
    while waiting:
        each = waiting.pop()
        if isinstance(each, CodeType):
            yield each
            waiting += [held for held in each.co_consts if isinstance(held, CodeType)]
        else:
            waiting += _inside(each)


def _inside(held: Any) -> Iterable[Any]:
    """Return what a module, class or function consists of; nothing of anything else."""
    if isinstance(held, ModuleType):
        own = [each for each in vars(held).values() if isinstance(each, (FunctionType, type))]
        return [each for each in own if each.__module__ == held.__name__]
    if isinstance(held, type):
        return vars(held).values()
    if isinstance(held, (staticmethod, classmethod)):
        return (held.__func__,)
    if isinstance(held, property):
        return (held.fget, held.fset)
    if not isinstance(held, FunctionType):
        return ()
    wrapped = vars(held).get("__wrapped__")
    return (held.__code__,) if wrapped is None else (held.__code__, wrapped)
