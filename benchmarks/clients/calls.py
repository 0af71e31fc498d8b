"""Codec calls that clients make, without and with acceleration, by turns in one process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from amqpcodec import compat

HEADERS = {"number": 12345, "customer": "customer-7", "urgent": True}
BODY = b"x" * 256
WHEN = datetime(2026, 11, 22, 12, tzinfo=UTC)
TABLE = {
    "boolean": True,
    "small": 7,
    "large": 1 << 40,
    "negative": -70000,
    "text": "orders.eu.created",
    "empty": "",
    "ratio": 2.5,
    "inner": {"attempt": 3, "reason": "expired"},
    "list": [1, "two", 3],
    "nothing": None,
}
SECONDS = 0.02  # of a measurement


class Calls(NamedTuple):
    """One measured call.

    `make` gives what does it, with the functions as they are in the peer at that time, and what it makes as
    values that can be compared.
    """

    peer: str
    target: float
    make: Callable[[], tuple[Callable[[], Any], Callable[[Any], Any]]]


def pamqp_frames() -> list[Any]:
    """A publish, its header and its body, as pamqp's objects."""
    from pamqp import body, commands, header

    properties = commands.Basic.Properties(
        content_type="application/json",
        headers=dict(HEADERS),
        delivery_mode=1,
        message_id="m-1",
        timestamp=WHEN,
    )
    publish = commands.Basic.Publish(0, "orders", "eu.created")
    return [publish, header.ContentHeader(0, len(BODY), properties), body.ContentBody(BODY)]


def delivery() -> list[bytes]:
    """A deliver, its header and its body, as octets of a frame each."""
    import pamqp.commands
    import pamqp.frame

    _, header, body = pamqp_frames()
    deliver = pamqp.commands.Basic.Deliver("ctag1.5f2c", 12345, False, "orders", "eu.created")
    return [pamqp.frame.marshal(frame, 1) for frame in (deliver, header, body)]


def comparable(value: Any) -> Any:
    """An object as its class and attributes, those inside as well."""
    if isinstance(value, (list, tuple)):
        return [comparable(each) for each in value]
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", ())]
    if type(value).__module__.startswith(("pamqp", "pika")) and names:
        return type(value), {name: comparable(getattr(value, name)) for name in names}
    return value


def pamqp_unmarshal() -> Any:
    import pamqp.frame

    first, second, third = delivery()
    unmarshal = pamqp.frame.unmarshal
    return lambda: (unmarshal(first), unmarshal(second), unmarshal(third)), comparable


def pamqp_marshal() -> Any:
    import pamqp.frame

    first, second, third = pamqp_frames()
    marshal = pamqp.frame.marshal
    return lambda: (marshal(first, 1), marshal(second, 1), marshal(third, 1)), comparable


def pika_decode() -> Any:
    import pika.frame

    first, second, third = delivery()
    decode = pika.frame.decode_frame
    return lambda: (decode(first), decode(second), decode(third)), comparable


def pika_marshal() -> Any:
    from pika import frame, spec

    properties = spec.BasicProperties(
        "application/json", None, dict(HEADERS), 1, message_id="m-1", timestamp=int(WHEN.timestamp())
    )
    first = frame.Method(1, spec.Basic.Publish(0, "orders", "eu.created"))
    second, third = frame.Header(1, len(BODY), properties), frame.Body(1, BODY)
    return lambda: (first.marshal(), second.marshal(), third.marshal()), comparable


DELIVER = "sLbss"
PUBLISH = "Bssbb"


def _dumped(form: str, values: list[Any]) -> bytes:
    from amqp import serialization

    dumped: bytes = serialization.dumps(form, values)
    return dumped


def amqp_loads(form: str, values: list[Any]) -> Any:
    from amqp import serialization

    octets = _dumped(form, values)
    loads = serialization.loads
    return partial(loads, form, octets, 0), comparable


def amqp_dumps(form: str, values: list[Any]) -> Any:
    from amqp import serialization

    dumps = serialization.dumps
    return partial(dumps, form, values), comparable


_DELIVERED = ["ctag1.5f2c", 12345, False, "orders", "eu.created"]
_PUBLISHED = [0, "orders", "eu.created", False, False]
CALLS = {
    "pamqp, unmarshal 3 frames": Calls("pamqp", 12, pamqp_unmarshal),
    "pamqp, marshal 3 frames": Calls("pamqp", 12, pamqp_marshal),
    "pika, decode_frame, 3 frames": Calls("pika", 5, pika_decode),
    "pika, marshal, 3 frames": Calls("pika", 5, pika_marshal),
    "amqp, loads, a delivery": Calls("amqp", 6, lambda: amqp_loads(DELIVER, _DELIVERED)),
    "amqp, loads, a table of 10": Calls("amqp", 6, lambda: amqp_loads("F", [TABLE])),
    "amqp, dumps, a publish": Calls("amqp", 12, lambda: amqp_dumps(PUBLISH, _PUBLISHED)),
    "amqp, dumps, a table of 10": Calls("amqp", 12, lambda: amqp_dumps("F", [TABLE])),
}


def measure(calls: Calls, rounds: int) -> dict[str, float]:
    """Microseconds of the work in both states, and the median of the ratios of the rounds.

    Raises:
        AssertionError: acceleration makes something else of it, or falls back.
    """
    do, result = calls.make()
    expected = result(do())
    number = _number(do)
    with compat.installed(calls.peer):
        do, result = calls.make()
        if result(do()) != expected:
            raise AssertionError(f"{calls.peer}: {result(do())!r:.500} instead of {expected!r:.500}")
        if fallbacks := compat.status()[calls.peer].fallbacks:
            raise AssertionError(f"{calls.peer} falls back: {dict(fallbacks)}")
    stock: list[float] = []
    fast: list[float] = []
    for _ in range(rounds):
        stock.append(_time(calls.make()[0], number))
        with compat.installed(calls.peer):
            fast.append(_time(calls.make()[0], number * 4))
    ratios = [one / other for one, other in zip(stock, fast, strict=True)]
    return {
        "stock": median(stock),
        "accelerated": median(fast),
        "ratio": median(ratios),
        "target": calls.target,
    }


def _number(do: Callable[[], Any]) -> int:
    number = 10
    while (taken := _time(do, number) * number / 1e6) < SECONDS / 4:
        number *= 2
    return max(1, round(number * SECONDS / taken))


def _time(do: Callable[[], Any], number: int) -> float:
    times = repeat(None, number)
    begin = process_time()
    for _ in times:
        do()
    return (process_time() - begin) * 1e6 / number
