"""The arguments of queues: their checks, and what they say to a queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..reply_errors import AmqpNotImplemented, AmqpPreconditionFailed

MOST_PRIORITY = 255
NEVER = float("inf")
OBJECT_OCTETS = 256  # of arguments, as many as count like another object
OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")
LONGEST_MILLISECONDS = 10 * 365 * 24 * 60 * 60 * 1000
OTHER_KINDS = ("quorum", "stream")  # that RabbitMQ has


_INTEGER = re.compile(r"[+-]?[0-9]+")


class NotInTestsError(AmqpNotImplemented):
    """Refuses what RabbitMQ has and this broker lacks: the channel alone is closed, and a page lists it."""

    closes = "channel"


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


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _BadValueError(f'"expected integer, got {wire_type(value)}"')
    return value


def _natural(value: Any) -> int:
    if _integer(value) < 0:
        raise _BadValueError(f"{{value_negative,{value}}}")
    return int(value)


def _milliseconds(value: Any) -> float:
    return _natural(value) / 1000


def _lifetime(value: Any) -> float:
    if _natural(value) == 0:
        raise _BadValueError("{value_zero,0}")
    return _milliseconds(value)


def _priority(value: Any) -> int:
    if _natural(value) > MOST_PRIORITY:
        raise _BadValueError(f"{{max_value_exceeded,{value}}}")
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _BadValueError(f"{{unacceptable_type,{wire_type(value)}}}")
    return value


def _overflow(value: Any) -> str:
    if _text(value) not in OVERFLOWS:
        raise _BadValueError("invalid_overflow")
    return str(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _BadValueError(f"{{unacceptable_type,{wire_type(value)}}}")
    return value


def _queue_type(value: Any) -> str:
    if _text(value) in OTHER_KINDS:
        raise NotInTestsError(f"queues of type '{value}'")
    if value != "classic":
        raise _BadValueError(f"\"unsupported queue type '{value}'\"")
    return str(value)


# Those that say something to `Settings`, by their names there, and those that are checked alone. RabbitMQ
# checks and compares them in this order.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "x-expires": _lifetime,
    "x-message-ttl": _milliseconds,
    "x-dead-letter-exchange": _text,
    "x-dead-letter-routing-key": _text,
    "x-max-length": _natural,
    "x-max-length-bytes": _natural,
    "x-max-priority": _priority,
    "x-overflow": _overflow,
    "x-single-active-consumer": _boolean,
    "x-queue-type": _queue_type,
}
COMPARED = tuple(CHECKS)


def settings(where: str, arguments: dict[str, Any]) -> Settings:
    """Return what arguments say.

    Args:
        where: the queue and its virtual host, as texts have them.
        arguments: of the declaration.

    Raises:
        AmqpPreconditionFailed: a value that an argument cannot have.
        NotInTestsError: a type of queue that this broker lacks.
    """
    found = Settings()
    for name, check in CHECKS.items():
        if name not in arguments:
            continue
        value = arguments[name]
        try:
            checked = check(value)
        except _BadValueError as bad:
            if name.startswith("x-dead-letter"):
                text = f"invalid type '{wire_type(value)}' for arg '{name}' in {where}"
            else:
                text = f"invalid arg '{name}' for {where}: {bad}"
            raise AmqpPreconditionFailed(text) from None
        if name != "x-queue-type":
            setattr(found, name[2:].replace("-", "_"), checked)
    if found.dead_letter_routing_key is not None and found.dead_letter_exchange is None:
        name = "x-dead-letter-routing-key"
        raise AmqpPreconditionFailed(f"invalid arg '{name}' for {where}: routing_key_but_no_dlx_defined")
    return found


def require_same(
    where: str, current: dict[str, Any], received: dict[str, Any], names: tuple[str, ...]
) -> None:
    """Refuse a declaration whose arguments differ from those that there are.

    Raises:
        AmqpPreconditionFailed: it differs.
    """
    for name in names:
        old, new = current.get(name), received.get(name)
        if old == new and (name in current) == (name in received):
            continue
        if name not in received:
            text = f"received none but current is the value '{shown(old)}' of type '{wire_type(old)}'"
        elif name not in current:
            text = f"received the value '{shown(new)}' of type '{wire_type(new)}' but current is none"
        else:
            text = f"received '{shown(new)}' but current is '{shown(old)}'"
        raise AmqpPreconditionFailed(f"inequivalent arg '{name}' for {where}: {text}")


def weight(arguments: dict[str, Any]) -> int:
    """Return for how many objects something counts that has arguments: long ones are not for nothing."""
    return 1 + len(repr(arguments)) // OBJECT_OCTETS


def shown(value: Any) -> str:
    """Return a value as RabbitMQ's texts have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def consumer_priority(where: str, arguments: dict[str, Any]) -> int:
    """Return the priority that the arguments of a consumer give it.

    Raises:
        AmqpPreconditionFailed: it is no integer.
    """
    try:
        return _integer(arguments.get("x-priority", 0))
    except _BadValueError as bad:
        raise AmqpPreconditionFailed(f"invalid arg 'x-priority' for {where}: {bad}") from None


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


__all__ = [
    "COMPARED", "NEVER", "NotInTestsError", "Settings", "comparable", "consumer_priority", "expiration",
    "require_same", "settings", "shown", "weight", "wire_type",
]  # fmt: skip
