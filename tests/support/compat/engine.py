"""Plays calls on a stock and an accelerated copy of a peer, and compares all that can be seen of them.

Both copies are in one process. The stock copy is imported afresh and taken out of `sys.modules` again, so
that nothing of it is ever replaced, not even a helper or a constructor. The other copy is the one that
programs import, and that `install` works on.

A scenario is a function `scenario(peer, random)` that gives a callable of the copy `peer`, and its arguments.
It is played on both copies with equal seeds, so each copy gets objects of its own classes.
"""

from __future__ import annotations

import importlib
import logging
import re
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from pkgutil import walk_packages
from random import Random
from types import FrameType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

SECONDS = 0.25  # of CPU time, after which a call counts as one that does not end
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-f]+")
_REPR = (str, complex, Decimal, date, time, timedelta, tzinfo, range)

Scenario = Callable[["Copy", Random], tuple[Any, ...]]
Outcome = tuple[Any, ...]
NEVER_ENDS: Outcome = ("did not end",)


_version = cache(version)


class Copy:
    """One copy of a peer: its modules as attributes, such as `copy.frame` for `pamqp.frame`."""

    def __init__(self, package: str, modules: Mapping[str, ModuleType]) -> None:
        self.package = package
        self.version = _version(package)
        self.root = modules[package]
        self._modules = dict(modules)
        self._names: dict[type, str] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self._modules[f"{self.package}.{name}"]
        except KeyError:
            raise AttributeError(f"{self.package} has no module {name}") from None

    def name_of(self, kind: type) -> str:
        """The full name of a type; a class of the peer has to be the one that this copy gives out."""
        if kind not in self._names:
            self._names[kind] = self._checked_name(kind)
        return self._names[kind]

    def _checked_name(self, kind: type) -> str:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__ in self._modules and "<locals>" not in name:
            found: Any = self._modules[kind.__module__]
            for part in kind.__qualname__.split("."):
                found = getattr(found, part, None)
            if found is not kind:
                return f"{name} of another copy"
        return name


def _modules_of(package: str) -> dict[str, ModuleType]:
    inside = f"{package}."
    return {
        name: module for name, module in sys.modules.items() if name == package or name.startswith(inside)
    }


def _import_all(package: str) -> dict[str, ModuleType]:
    root = importlib.import_module(package)
    for found in walk_packages(root.__path__, f"{package}."):
        with suppress(ImportError):  # an adapter for something that is not installed
            importlib.import_module(found.name)
    return _modules_of(package)


@cache
def _imported_once(package: str) -> None:
    """Import all modules, which takes long where some cannot be."""
    _import_all(package)


def in_use(package: str) -> Copy:
    """The copy that programs import."""
    _imported_once(package)
    return Copy(package, _modules_of(package))


@cache
def stock(package: str) -> Copy:
    """A copy that nothing replaces anything in; the same for the whole process."""
    held = _modules_of(package)
    for name in held:
        del sys.modules[name]
    try:
        return Copy(package, _import_all(package))
    finally:
        for name in _modules_of(package):
            del sys.modules[name]
        sys.modules.update(held)


# -- what can be seen of a value


def describe(value: Any, peer: Copy, above: tuple[int, ...] = ()) -> Any:
    """A value as tuples of texts that are equal where a program could not distinguish two values."""
    kind = type(value)
    if kind is bytes or value is None or kind is bool:
        return value, kind.__name__
    name = peer.name_of(kind)
    if isinstance(value, int):
        return name, hex(value), vars(value) if hasattr(value, "__dict__") and kind is not int else None
    if isinstance(value, float):
        return name, struct.pack("d", value)
    if isinstance(value, str):
        return name, _ADDRESS.sub("0x", ascii(str.__str__(value)))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return name, bytes(value)
    if id(value) in above:
        return name, "again"
    return name, *_describe_whole(value, peer, (*above, id(value)))


def _describe_whole(value: Any, peer: Copy, above: tuple[int, ...]) -> tuple[Any, ...]:
    """The parts of a value that may hold others."""
    if isinstance(value, (list, tuple)):
        return tuple([describe(item, peer, above) for item in value])
    if isinstance(value, (dict, MappingProxyType)):
        return tuple(
            [(describe(key, peer, above), describe(item, peer, above)) for key, item in value.items()]
        )
    if isinstance(value, (set, frozenset)):
        return tuple(sorted(repr(describe(item, peer, above)) for item in value))
    if isinstance(value, BaseException):
        return _describe_error(value, peer, above)
    if isinstance(value, (type, FunctionType, MethodType, *_REPR)):
        return (_shown(value),)
    if type(value).__module__.partition(".")[0] in (peer.package, "odd_classes"):
        return tuple(_attributes(value, peer, above))
    return (_shown(value),)


def _attributes(value: Any, peer: Copy, above: tuple[int, ...]) -> Iterator[Any]:
    """Slots in the order of the classes, then what `vars` gives, in its order."""
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__"):
                try:
                    yield slot, describe(owner.__dict__[slot].__get__(value), peer, above)
                except AttributeError:
                    yield slot, "not set"
    for name, item in getattr(value, "__dict__", {}).items():
        yield name, describe(item, peer, above)


def _describe_error(error: BaseException, peer: Copy, above: tuple[int, ...] = ()) -> tuple[Any, ...]:
    if isinstance(error, RecursionError):
        return ("RecursionError",)  # its text depends on where the stack happened to be full
    cause = None if error.__cause__ is None else describe(error.__cause__, peer, above)
    return _shown(error), describe(error.args, peer, above), cause


def _shown(value: Any) -> str:
    try:
        text = str(value) if isinstance(value, BaseException) else repr(value)
    except Exception as error:
        text = f"not to be shown: {type(error).__name__}"
    return _ADDRESS.sub("0x", text)


# -- what a call did


class Endless(BaseException):
    """A call did not end in time."""


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Stop what takes longer; only the main thread can be stopped so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Endless

    def drop(unraisable: Any) -> None:
        """Stop the call a little later: what a callback of the interpreter raises is dropped."""
        if issubclass(unraisable.exc_type, Endless):
            signal.setitimer(signal.ITIMER_PROF, seconds / 100)
        else:
            reported(unraisable)

    before, reported = signal.signal(signal.SIGPROF, stop), sys.unraisablehook
    sys.unraisablehook = drop
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.unraisablehook = reported
        signal.signal(signal.SIGPROF, before)


class _Listener(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, logged: list[str]) -> None:
        super().__init__()
        self.logged = logged

    def emit(self, record: logging.LogRecord) -> None:
        self.logged.append(_ADDRESS.sub("0x", f"{record.name} {record.levelname} {record.getMessage()}"))


@contextmanager
def _logged(peer: Copy) -> Iterator[list[str]]:
    """What is logged and warned of meanwhile."""
    logged: list[str] = []
    logger, listener = logging.getLogger(peer.package), _Listener(logged)
    handlers, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [listener], False
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield logged
        logged.extend(f"{warning.category.__name__} {warning.message}" for warning in warned)
    finally:
        logger.handlers, logger.propagate = handlers, propagate


def attempt(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a call gives, or the exception that it raises."""
    try:
        return function(*arguments, **named)
    except Exception as error:
        return error


def play(peer: Copy, scenario: Scenario, seed: str) -> Outcome:
    """Play a scenario: what the call gave or raised, and what it did to its arguments."""
    arguments: list[Any] = []
    with _logged(peer) as logged:
        try:
            with _bounded(SECONDS):
                function, *arguments = scenario(peer, Random(seed))
                outcome: Outcome = "gave", describe(function(*arguments), peer)
        except Endless:
            return NEVER_ENDS
        except Exception as error:
            outcome = "raised", peer.name_of(type(error)), *_describe_error(error, peer)
    return *outcome, [describe(argument, peer) for argument in arguments], logged


def brief(outcome: Outcome) -> str:
    """An outcome in a few words: the exception with its text, or the value as it is described."""
    if outcome[0] == "raised":
        return f"{outcome[1].removeprefix('builtins.')}: {outcome[2]}"
    return f"gave {outcome[1][0]!r}" if outcome[0] == "gave" else str(outcome[0])


class Mismatch(NamedTuple):
    """A scenario that the two copies played differently."""

    scenario: str
    seed: str
    stock: Outcome
    accelerated: Outcome

    def __str__(self) -> str:
        one, other = first_difference(self.stock, self.accelerated)
        return f"{self.scenario}, seed {self.seed!r}:\n  stock        {one}\n  accelerated  {other}"


def first_difference(one: Any, other: Any) -> tuple[Any, Any]:
    """The first parts of two descriptions that differ."""
    alike = type(one) is type(other) and isinstance(one, (tuple, list)) and len(one) == len(other)
    if alike and len(one) > 1 and one[0] != "raised":
        for part, counterpart in zip(one, other, strict=True):
            if part != counterpart:
                return first_difference(part, counterpart)
    return one, other


class Pair(NamedTuple):
    """The two copies of one peer."""

    stock: Copy
    accelerated: Copy

    def compare(self, name: str, scenario: Scenario, seed: str) -> Mismatch | None:
        """Play a scenario on both copies; what differs, or None."""
        one, other = (play(copy, scenario, seed) for copy in self)
        return None if one == other else Mismatch(name, seed, one, other)


def pair(package: str) -> Pair:
    """Both copies; `install` the acceleration before or after."""
    return Pair(stock(package), in_use(package))
