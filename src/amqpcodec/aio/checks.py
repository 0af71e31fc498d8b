"""Checks of what a program gives to a client or a connection, before there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import Parameter, iscoroutine, iscoroutinefunction, signature
from typing import Any, TypeVar

from .._options import unexpected
from ..connection import ClientLogin
from .counters import Backoff
from .credentials import Credentials

_T = TypeVar("_T")
_NOT_OPTIONS = frozenset(("host", "role"))  # which are given otherwise, or by this package


def check_names(names: Iterable[str], *functions: Callable[..., Any]) -> None:
    """Refuse names of options that no function takes; the first of them is the one that was called.

    Raises:
        TypeError: a name that none of them takes. The text has the nearest one.
    """
    known = [
        name
        for function in functions
        for name, each in signature(function).parameters.items()
        if each.kind is not Parameter.VAR_KEYWORD and name not in _NOT_OPTIONS
    ]
    for name in names:
        if name not in known:
            raise unexpected(functions[0].__name__, name, known)


def check_values(given: Mapping[str, Any]) -> None:
    """Refuse values of options of `connect` that it would stumble over later.

    Raises:
        TypeError: a value of another type.
        ValueError: a time that is none.
    """
    login, ssl, record = (given.get(name) for name in ("login", "ssl", "record"))
    if not (login is None or isinstance(login, ClientLogin | Credentials)):
        raise TypeError(f"login must be a ClientLogin or Credentials, not {type(login).__name__}")
    if not (ssl is None or isinstance(ssl, bool) or hasattr(ssl, "wrap_bio")):
        raise TypeError(f"ssl must be an SSLContext, True, False or None, not {type(ssl).__name__}")
    if record is not None:
        from ..record import Recorder  # of no use to most

        if not isinstance(record, Recorder):
            raise TypeError(f"record must be a Recorder, not {type(record).__name__}")
    if given.get("timeout") is not None:
        check_seconds("timeout", given["timeout"])


def check_hosts(hosts: str | Sequence[str]) -> Sequence[str]:
    """Return the hosts and URLs of a program, of which there may be one alone.

    Raises:
        TypeError: it is neither text nor several texts.
        ValueError: there are none.
    """
    several = [hosts] if isinstance(hosts, str) else hosts
    if not isinstance(several, Sequence) or not all(isinstance(each, str) for each in several):
        raise TypeError(f"a host or URL must be a str, or several in a list, not {hosts!r}")
    if not several:
        raise ValueError("name one server, or several")
    return several


def check_backoff(backoff: Any) -> None:
    """Refuse what is no `Backoff`, or one whose waits are none.

    Raises:
        TypeError: it is of another type.
        ValueError: a number in it is none, or out of range.
    """
    if not isinstance(backoff, Backoff):
        raise TypeError(f"backoff must be a Backoff, not {type(backoff).__name__}")
    for name in ("first", "most", "seconds"):
        value = getattr(backoff, name)
        if value is not None or name != "seconds":
            check_seconds(f"Backoff.{name}", value)
    attempts = backoff.attempts
    if attempts is not None and (not isinstance(attempts, int) or attempts < 1):
        raise ValueError(f"Backoff.attempts must be a number from 1, or None, not {attempts!r}")


def check_seconds(name: str, value: Any) -> None:
    """Refuse what is no number of seconds.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"{name} must be a number of seconds, not {value!r}")


def check_hook(name: str, hook: Any, *, is_awaited: bool = False) -> None:
    """Refuse what cannot be called as a client calls it.

    Raises:
        TypeError: it is no function, or a coroutine function where nothing is awaited.
    """
    if iscoroutine(hook):
        hook.close()  # else Python warns that no one has awaited it
        raise TypeError(f"{name} must be a function: give it without calling it")
    if not (hook is None or callable(hook)):
        raise TypeError(f"{name} must be a function, not {type(hook).__name__}")
    if iscoroutinefunction(hook) and not is_awaited:
        raise TypeError(f"{name} is not awaited: it must be an ordinary function, without async")


def awaitable(name: str, returned: _T) -> _T:
    """Return what a hook has returned.

    Raises:
        TypeError: it cannot be awaited.
    """
    if not isinstance(returned, Awaitable):
        raise TypeError(
            f"{name} must be a coroutine function, defined by async def: it has returned {returned!r}"
        )
    return returned


def context(name: str, returned: _T) -> _T:
    """Return what a hook has returned.

    Raises:
        TypeError: it is no context manager.
    """
    if not hasattr(returned, "__enter__"):
        raise TypeError(f"{name} must return a context manager, for `with`: it has returned {returned!r}")
    return returned


__all__ = [
    "awaitable", "check_backoff", "check_hook", "check_hosts", "check_names", "check_seconds", "check_values",
    "context",
]  # fmt: skip
