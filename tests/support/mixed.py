"""Messages of mixed sizes with every kind of header, each made of its number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

from amqpcodec import FieldValue

MIB = 1 << 20
LARGEST = 64 * MIB
ALPHABET = bytes(range(256)) * 256

# A value for every tag that RabbitMQ takes in headers, and what a decoder makes of it.
TAGGED: dict[str, tuple[Any, Any]] = {
    "t": (True, True),
    "b": (-128, -128),
    "B": (255, 255),
    "s": (-32768, -32768),
    "u": (65535, 65535),
    "I": (-(2**31), -(2**31)),
    "i": (2**32 - 1, 2**32 - 1),
    "l": (-(2**63), -(2**63)),
    "f": (1.5, 1.5),
    "d": (1e300, 1e300),
    "D": (Decimal("-12.34"), Decimal("-12.34")),
    "S": ("text, größer", "text, größer"),
    "x": (b"\x00\xff", b"\x00\xff"),
    "T": (datetime(2020, 2, 29, 12, tzinfo=UTC), datetime(2020, 2, 29, 12, tzinfo=UTC)),
    "V": (None, None),
    "A": ([1, "two", [None], {"three": 3}], [1, "two", [None], {"three": 3}]),
    "F": ({"nested": {"deeper": [True]}}, {"nested": {"deeper": [True]}}),
}


def body(number: int, large: bool) -> bytes:
    """The body of a message: mostly small, some of several frames, and few very large.

    Args:
        number: the message.
        large: whether bodies over a MiB come, up to 64 MiB.
    """
    random = Random(number)
    if number < 4:
        size = (0, 1, 131072 - 8, 131072 - 7)[number]  # nothing; the largest of one frame; and one more
    elif large and number in (1000, 50_000):
        size = LARGEST
    elif large and number % 5000 == 17:
        size = random.randrange(MIB, 8 * MIB)
    elif number % 200 == 7:
        size = random.randrange(4096, 400_000)
    else:
        size = random.randrange(0, 1024)
    start = random.randrange(256)
    return (number.to_bytes(8, "big") + ALPHABET[start:] + ALPHABET * (size >> 16))[:size]


def headers(number: int) -> dict[str, Any]:
    """The headers of a message as they are published: its number, and one tag after the other."""
    tags = list(TAGGED)
    tag = tags[number % len(tags)]
    return {"number": number, tag: FieldValue(tag, TAGGED[tag][0])} | all_headers(number)


def all_headers(number: int) -> dict[str, Any]:
    """One message in a hundred has them all."""
    return {tag: FieldValue(tag, sent) for tag, (sent, _) in TAGGED.items()} if number % 100 == 0 else {}


def read(headers: dict[str, Any]) -> dict[str, Any]:
    """What a decoder makes of such headers."""
    return {key: TAGGED[key][1] if key in TAGGED else value for key, value in headers.items()}


def samples(count: int, large: bool) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """So many bodies and headers."""
    return ((body(number, large), headers(number)) for number in range(count))
