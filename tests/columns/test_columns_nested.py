"""Tables and arrays inside headers are shown as JSON: the same by both builds, and what others can read."""

from __future__ import annotations

import json
import random
from typing import Any

from support.campaign import share
from support.columns import stream_rows
from support.implementation import Implementation

from amqpcodec import FieldValue
from amqpcodec import rabbitmq as amqp

Both = tuple[Implementation, Implementation]

_KEYS = ("plain", "é", '"', "\\", "\n", "\x1f", "\x7f", "k" * 200)
_VALUES = (
    None, True, False, 1, -5, 2**40, -(2**62), 1.5, -0.0, 1e300, 1e-7, 5e-324, float("nan"), float("-inf"),
    "text", 'q"\\/\t\b\f\r\n\0\x0b\x7f', "é€😀", b"\xff\0", FieldValue("f", 0.1), FieldValue("u", 65535),
)  # fmt: skip


def _value(numbers: random.Random, depth: int = 0) -> Any:
    kind = numbers.randrange(12)
    if kind == 0 and depth < 20:
        return {key: _value(numbers, depth + 1) for key in numbers.sample(_KEYS, numbers.randrange(4))}
    if kind == 1 and depth < 20:
        return [_value(numbers, depth + 1) for _ in range(numbers.randrange(4))]
    return _wrapped(numbers.randrange(40)) if kind == 2 else numbers.choice(_VALUES)


def _wrapped(depth: int) -> Any:
    return [_wrapped(depth - 1)] if depth else 1


def _publish(headers: dict[str, Any]) -> bytearray:
    properties = amqp.BasicProperties(headers=headers)
    encoder = amqp.Encoder(profile="rabbitmq-nan")
    return bytearray(encoder.encode_message(1, amqp.Basic.Publish(exchange="e"), properties, b"body"))


def test_both_builds_show_the_same(both: Both) -> None:
    numbers = random.Random(5)
    for number in range(share(300)):
        octets = _publish({f"h{index}": _value(numbers) for index in range(numbers.randrange(1, 5))})
        if number % 3 == 0:
            octets[numbers.randrange(40, len(octets) - 12)] ^= 1 << numbers.randrange(8)
        compiled, pure = (repr(stream_rows(impl.name, "messages", bytes(octets))) for impl in both)
        assert compiled == pure, octets.hex()


def test_it_is_json(impl: Implementation) -> None:
    value = {"a": [1, -2.5, None, True, 'q"\\\n\x1f'], "é": {"inner": {}}, "none": []}
    [row] = stream_rows(impl.name, "messages", bytes(_publish({"value": value})))
    [(_, text)] = row["headers"]
    assert json.loads(text) == value
    assert " " not in text
