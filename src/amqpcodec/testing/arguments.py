"""The arguments of queues: their checks, and what they say to a queue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..reply_errors import AmqpPreconditionFailed

if TYPE_CHECKING:
    from .versions import Version

MOST_PRIORITY = 255
NEVER = float("inf")
OBJECT_OCTETS = 256  # of arguments, as many as count like another object
OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")
LONGEST_MILLISECONDS = 10 * 365 * 24 * 60 * 60 * 1000
CLASSIC, QUORUM, STREAM = "classic", "quorum", "stream"
KINDS = (CLASSIC, QUORUM, STREAM)
STRATEGIES = ("at-most-once", "at-least-once")
LEADERS = ("client-local", "balanced", "random", "least-leaders")
MODES = ("default", "lazy")
MAX_AGE = "x-max-age"
CONSUMER_TIMEOUT = "x-consumer-timeout"
QUEUE_TYPE, QUEUE_VERSION = "x-queue-type", "x-queue-version"
DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY = "x-dead-letter-exchange", "x-dead-letter-routing-key"


_INTEGER = re.compile(r"[+-]?[0-9]+")
_AGE = re.compile(r"([0-9]+)([YMDhms])")
UNITS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}  # seconds


class Settings:
    """Holds what the arguments of a queue say. Times are in seconds; None is no limit, as is `NEVER`."""

    message_ttl: float = NEVER
    expires: float | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    max_priority: int = 0
    single_active_consumer: bool = False
    queue_type: str = CLASSIC
    delivery_limit: Any = None
    consumer_timeout: float | None = None


class _BadValueError(Exception):
    """A value that an argument cannot have; the text is RabbitMQ's."""


def wire_type(value: Any) -> str:
    """Return the name of a value's type in RabbitMQ's texts."""
    match value:
        case bool():
            return "bool"
        case int():
            return "signedint" if -(2**31) <= value < 2**31 else "long"
        case str():
            return "longstr"
        case bytes():
            return "binary"
        case datetime():
            return "timestamp"
        case float():
            return "double"
        case dict():
            return "table"
        case list():
            return "array"
    return "void" if value is None else type(value).__name__.lower()


def term(value: Any) -> str:
    """Return a value as Erlang writes it; equal terms are equal to RabbitMQ."""
    match value:
        case bool() | None:
            return "undefined" if value is None else str(value).lower()
        case str() | bytes():
            text = shown(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'<<"{text}">>' if text else "<<>>"
        case datetime():
            return str(int(value.timestamp()))
        case Decimal():
            scale = -int(value.as_tuple().exponent)
            return f"{{{scale},{int(value.scaleb(scale)) & 0xFFFFFFFF}}}"
        case list():
            return f"[{','.join(f'{{{wire_type(each)},{term(each)}}}' for each in value)}]"
        case dict():
            entries = (f"{{{term(name)},{wire_type(each)},{term(each)}}}" for name, each in value.items())
            return f"[{','.join(entries)}]"
    return str(value)


def shown(value: Any) -> str:
    """Return a value as RabbitMQ's texts have it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else term(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _BadValueError(f'"expected integer, got {wire_type(value)}"')
    return value


def _natural(value: Any) -> int:
    if _integer(value) < 0:
        raise _BadValueError(f"{{value_negative,{value}}}")
    return int(value)


def _milliseconds(value: Any) -> float:
    if _natural(value) > LONGEST_MILLISECONDS:
        raise _BadValueError(f"{{value_too_large,{value}}}")
    return int(value) / 1000


def _lifetime(value: Any) -> float:
    if _natural(value) == 0:
        raise _BadValueError("{value_zero,0}")
    return _milliseconds(value)


def _priority(value: Any) -> int:
    if _natural(value) > MOST_PRIORITY:
        raise _BadValueError(f"{{max_value_exceeded,{value}}}")
    return int(value)


def _version(known: tuple[int, ...], value: Any) -> int:
    if _natural(value) not in known:
        raise _BadValueError(f"\"unsupported queue version '{value}'\"")
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _BadValueError(f"{{unacceptable_type,{wire_type(value)}}}")
    return value


def _overflow(value: Any) -> str:
    if _text(value) not in OVERFLOWS:
        raise _BadValueError("invalid_overflow")
    return str(value)


def _mode(value: Any) -> str:
    if _text(value) not in MODES:
        raise _BadValueError(f"\"unsupported queue mode '{value}'\"")
    return str(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _BadValueError(f"{{unacceptable_type,{wire_type(value)}}}")
    return value


def _queue_type(value: Any) -> str:
    if _text(value) not in KINDS:
        raise _BadValueError(f"\"unsupported queue type '{value}'\"")
    return str(value)


def _strategy(value: Any) -> str:
    if _text(value) not in STRATEGIES:
        raise _BadValueError("invalid_dlx_strategy")
    return str(value)


def _leader(value: Any) -> str:
    if _text(value) not in LEADERS:
        raise _BadValueError("invalid_queue_locator_arg")
    return str(value)


def _group_size(value: Any) -> int:
    if _natural(value) == 0:
        raise _BadValueError("{value_zero,0}")
    return int(value)


def age(text: str) -> int | None:
    """Return the seconds of a text such as ``"7D"``; None where it is no such."""
    found = _AGE.fullmatch(text)
    return None if found is None else int(found[1]) * UNITS[found[2]]


def _age(value: Any) -> int:
    found = age(_text(value))
    if found is None:
        raise _BadValueError("invalid_max_age")
    return found


# Those that RabbitMQ knows, with their checks, in the order in which it checks them; the type comes first.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "x-expires": _lifetime,
    "x-message-ttl": _milliseconds,
    DEAD_LETTER_EXCHANGE: _text,
    DEAD_LETTER_KEY: _text,
    "x-dead-letter-strategy": _strategy,
    "x-max-length": _natural,
    "x-max-length-bytes": _natural,
    "x-max-in-memory-length": _natural,
    "x-max-in-memory-bytes": _natural,
    "x-max-priority": _priority,
    "x-overflow": _overflow,
    "x-queue-mode": _mode,
    QUEUE_VERSION: _natural,
    "x-single-active-consumer": _boolean,
    QUEUE_TYPE: _queue_type,
    "x-quorum-initial-group-size": _group_size,
    MAX_AGE: _age,
    "x-stream-max-segment-size-bytes": _natural,
    "x-initial-cluster-size": _group_size,
    "x-queue-leader-locator": _leader,
    "x-delivery-limit": lambda value: value,
    CONSUMER_TIMEOUT: _milliseconds,
}
# Those that queues of a type have; they are compared in this order.
TAKEN: dict[str, tuple[str, ...]] = {
    CLASSIC: (
        "x-expires", "x-message-ttl", DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY, "x-max-length",
        "x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode", QUEUE_VERSION,
        "x-single-active-consumer", QUEUE_TYPE,
    ),
    QUORUM: (
        DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY, "x-dead-letter-strategy", "x-expires", "x-max-length",
        "x-max-length-bytes", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-overflow",
        "x-single-active-consumer", QUEUE_TYPE, "x-quorum-initial-group-size", "x-delivery-limit",
        "x-message-ttl", "x-queue-leader-locator", CONSUMER_TIMEOUT,
    ),
    STREAM: (
        "x-max-length-bytes", QUEUE_TYPE, MAX_AGE, "x-stream-max-segment-size-bytes",
        "x-initial-cluster-size", "x-queue-leader-locator",
    ),
}  # fmt: skip
PLACE = "x-queue-master-locator"  # which is compared alone
CONSUMER_CHECKS: dict[str, Callable[[Any], Any]] = {
    "x-priority": _integer,
    "x-cancel-on-ha-failover": _boolean,
}
OFFSET = "x-stream-offset"
CONSUMER_TAKEN = {CLASSIC: ("x-priority",), QUORUM: ("x-priority",), STREAM: (OFFSET,)}


def _checked(where: str, name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """Return what a value says.

    Raises:
        AmqpPreconditionFailed: an argument cannot have it.
    """
    try:
        return check(value)
    except _BadValueError as bad:
        raise AmqpPreconditionFailed(f"invalid arg '{name}' for {where}: {bad}") from None


def _refuse_foreign(where: str, names: Iterable[str], kind: str) -> None:
    for name in names:
        text = f"invalid arg '{name}' for {where} of queue type rabbit_{kind}_queue"
        raise AmqpPreconditionFailed(text)


def require_text(where: str, arguments: dict[str, Any], name: str) -> None:
    """Refuse an argument that names an exchange, where it is no text.

    Raises:
        AmqpPreconditionFailed: it is none.
    """
    if name in arguments and not isinstance(arguments[name], str):
        text = f"invalid type '{wire_type(arguments[name])}' for arg '{name}' in {where}"
        raise AmqpPreconditionFailed(text)


def settings(where: str, arguments: dict[str, Any], version: Version) -> Settings:
    """Return what arguments say.

    Args:
        where: the queue and its virtual host, as texts have them.
        arguments: of the declaration.
        version: whose rules there are.

    Raises:
        AmqpPreconditionFailed: a value that an argument cannot have, or an argument of other types of queues.
    """
    require_text(where, arguments, DEAD_LETTER_EXCHANGE)
    found = Settings()
    if QUEUE_TYPE in arguments:
        found.queue_type = _checked(where, QUEUE_TYPE, _queue_type, arguments[QUEUE_TYPE])
    for name, check in CHECKS.items():
        if name not in arguments or name in version.unchecked or name in version.unknown:
            continue
        if name == QUEUE_VERSION:
            check = partial(_version, version.queue_versions)
        checked = _checked(where, name, check, arguments[name])
        if name == DEAD_LETTER_KEY and DEAD_LETTER_EXCHANGE not in arguments:
            raise AmqpPreconditionFailed(f"invalid arg '{name}' for {where}: routing_key_but_no_dlx_defined")
        attribute = name[2:].replace("-", "_")
        if hasattr(found, attribute):
            setattr(found, attribute, checked)
    taken = taken_by(found.queue_type, version)
    foreign = (
        name for name in arguments if name in CHECKS and name not in taken and name not in version.unknown
    )
    _refuse_foreign(where, sorted(foreign) if version.sorts else foreign, found.queue_type)
    return found


def as_compared(arguments: dict[str, Any], version: Version) -> dict[str, Any]:
    """Return arguments as they are compared: with times in milliseconds, where a version does so."""
    told = arguments.get(MAX_AGE)
    seconds = age(told) if version.compares_ages and isinstance(told, str) else None
    return arguments if seconds is None else {**arguments, MAX_AGE: seconds * 1000}


def taken_by(kind: str, version: Version) -> tuple[str, ...]:
    """Return the arguments that queues of a type have, in the order in which they are compared."""
    return (*TAKEN[kind], *version.classic_takes) if kind == CLASSIC else TAKEN[kind]


def require_same(
    where: str, current: dict[str, Any], received: dict[str, Any], names: tuple[str, ...]
) -> None:
    """Refuse a declaration whose arguments differ from those that there are.

    Raises:
        AmqpPreconditionFailed: it differs.
    """
    for name in names:
        there = [arguments[name] for arguments in (current, received) if name in arguments]
        if not there or (len(there) == 2 and term(there[0]) == term(there[1])):
            continue
        if name == QUEUE_TYPE and there == [CLASSIC]:  # which it is anyhow
            continue
        old, new = current.get(name), received.get(name)
        if name not in received:
            text = f"received none but current is the value '{shown(old)}' of type '{wire_type(old)}'"
        elif name not in current:
            text = f"received the value '{shown(new)}' of type '{wire_type(new)}' but current is none"
        else:
            text = f"received {_quoted(new)} but current is {_quoted(old)}"
        raise AmqpPreconditionFailed(f"inequivalent arg '{name}' for {where}: {text}")


def _quoted(value: Any) -> str:
    return "none" if value is None else f"'{shown(value)}'"


def weight(arguments: dict[str, Any]) -> int:
    """Return for how many objects something counts that has arguments: long ones are not for nothing."""
    return 1 + len(repr(arguments)) // OBJECT_OCTETS


def consumer_priority(where: str, arguments: dict[str, Any], kind: str, version: Version) -> int:
    """Return the priority that the arguments of a consumer give it, of a queue of a type.

    Raises:
        AmqpPreconditionFailed: a value that an argument cannot have, or an argument of other types of queues.
    """
    for name, check in CONSUMER_CHECKS.items():
        if name in arguments and name not in version.unchecked:
            _checked(where, name, check, arguments[name])
    taken = CONSUMER_TAKEN[kind]
    _refuse_foreign(
        where, (name for name in ("x-priority", OFFSET) if name in arguments and name not in taken), kind
    )
    return int(arguments.get("x-priority", 0))


def consumer_timeout(arguments: dict[str, Any]) -> float | None:
    """Return the seconds in which a consumer says that it settles; None where it says nothing."""
    told = arguments.get(CONSUMER_TIMEOUT)
    return told / 1000 if isinstance(told, int) else None


def expiration(value: str) -> float:
    """Return the seconds that a message says it lives.

    Raises:
        AmqpPreconditionFailed: it is no number of milliseconds.
    """
    found = _INTEGER.match(value)
    if found is None:
        raise AmqpPreconditionFailed(f"invalid expiration '{value}': no_integer")
    if rest := value[found.end() :].replace("\n", "\\n"):
        raise AmqpPreconditionFailed(f"invalid expiration '{value}': {{leftover_string,\"{rest}\"}}")
    milliseconds = int(found[0])
    if not 0 <= milliseconds <= LONGEST_MILLISECONDS:
        fault = "value_negative" if milliseconds < 0 else "value_too_large"
        raise AmqpPreconditionFailed(f"invalid expiration '{value}': {{{fault},{milliseconds}}}")
    return milliseconds / 1000


# Octets of every float or double, with its tag, that is no finite number; and of a text now and then.
MAY_BE_INFINITE = re.compile(rb"d[\x7f\xff][\xf0-\xff]|f[\x7f\xff][\x80-\xff]", re.DOTALL)


def is_finite(value: Any) -> bool:
    """Return whether there is no NaN and no infinity in a value, which RabbitMQ cannot read."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or isfinite(value)


def comparable(value: Any) -> Any:
    """Return what RabbitMQ compares of a value in a table: equal values are equal, whatever class they have.

    Outside of arrays and tables the type on the wire does not count; inside it does.
    """
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case datetime():
            return int(value.timestamp())
        case bool() | None:
            return wire_type(value), value
        case Decimal():
            return "decimal", value.as_tuple()
        case list():
            return tuple((wire_type(each), comparable(each)) for each in value)
        case dict():
            return tuple((name, wire_type(each), comparable(each)) for name, each in value.items())
    return value


def typed(value: Any, bound: bool = False) -> Any:
    """Return what RabbitMQ compares where a number is no fraction, and the time in a message equals nothing.

    Args:
        value: of a table.
        bound: whether that of a binding, whose times are numbers.
    """
    told_apart = float if bound else (float, datetime)
    return wire_type(value) if isinstance(value, told_apart) else "", comparable(value)


__all__ = [
    "CLASSIC",
    "MAY_BE_INFINITE",
    "NEVER",
    "OFFSET",
    "PLACE",
    "QUEUE_TYPE",
    "QUORUM",
    "STREAM",
    "Settings",
    "age",
    "as_compared",
    "comparable",
    "consumer_priority",
    "consumer_timeout",
    "expiration",
    "is_finite",
    "require_same",
    "require_text",
    "settings",
    "shown",
    "taken_by",
    "term",
    "typed",
    "weight",
    "wire_type",
]  # fmt: skip
