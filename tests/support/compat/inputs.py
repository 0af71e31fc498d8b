"""Octets and values for the scenarios: recorded and published ones, damaged ones, and random ones.

Everything comes from the `Random` it is given, so a scenario can be played again from its seed.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from amqpcodec.capture import read_frames
from support.encoder_values import INTEGERS, BytesChild, DictChild, FloatChild, IntChild, ListChild, StrChild
from support.vectors import load

EXAMPLES = Path(__file__).parents[3] / "examples"
TAGS = b"tbBsuIilLfdDSATFVxU\0kcZ"
EDGES = (
    None, False, True, 0, 1, 2, 3, 255, 256, 65535, 65536, 2**32, 2**63, {}, {"k": True}, b"x",
    "", "0", "1x", "/", "*", "+", "\xe9", *("a" * size for size in (127, 128, 255, 256, 257)),
)  # fmt: skip
"""Values on either side of what fields take, constructors replace and checks refuse."""
_HEAD = struct.Struct("!BHI")


class Mode(IntEnum):
    """An int that is of no exact type, as aio-pika's delivery mode is."""

    TRANSIENT = 1
    PERSISTENT = 2


# -- octets


@cache
def given_octets(*dialects: str) -> tuple[tuple[str, bytes], ...]:
    """Golden vectors of these dialects, or of all; every bad input and captured frame; each with its name."""
    vectors = [
        (line["id"], bytes.fromhex(line["hex"]))
        for line in load("vectors-public")
        if not dialects or line["dialect"] in dialects
    ]
    bad = [(line["id"], bytes.fromhex(line["hex"])) for line in load("bad-inputs-public")]
    return *vectors, *bad, *_captured()


def _captured() -> list[tuple[str, bytes]]:
    return [
        (f"{path.stem} at {found.offset}", found.octets)
        for path in sorted(EXAMPLES.glob("real-*.pcap"))
        for found in read_frames(path)
    ]


@cache
def frames() -> tuple[bytes, ...]:
    """Those of the given octets that are one frame of a dialect that the peers speak."""
    return tuple(
        octets
        for _, octets in given_octets("rabbitmq-0-9-1", "amqp-0-9-1")
        if len(octets) >= 8 and octets[0] in (1, 2, 3, 8) and _HEAD.unpack_from(octets)[2] + 8 == len(octets)
    )


def enveloped(payload: bytes, kind: int = 1, channel: int = 1) -> bytes:
    """A frame around a payload."""
    return _HEAD.pack(kind, channel, len(payload)) + payload + b"\xce"


def damaged(random: Random, octets: bytes) -> bytes:
    """Octets with one or two faults."""
    for _ in range(random.choice((1, 1, 2))):
        octets = random.choice(_FAULTS)(random, octets)
    return octets


def _cut(random: Random, octets: bytes) -> bytes:
    return octets[: random.randrange(len(octets) + 1)]


def _flipped(random: Random, octets: bytes) -> bytes:
    if not octets:
        return octets
    at = random.randrange(len(octets))
    return octets[:at] + bytes([octets[at] ^ 1 << random.randrange(8)]) + octets[at + 1 :]


def _replaced(random: Random, octets: bytes) -> bytes:
    if not octets:
        return octets
    at = random.randrange(len(octets))
    octet = random.choice((0, 1, 127, 128, 255, 0xCE, random.choice(TAGS), random.randrange(256)))
    return octets[:at] + bytes([octet]) + octets[at + 1 :]


def _inserted(random: Random, octets: bytes) -> bytes:
    at = random.randrange(len(octets) + 1)
    return octets[:at] + random.randbytes(random.choice((1, 1, 2, 4, 9))) + octets[at:]


def _removed(random: Random, octets: bytes) -> bytes:
    at = random.randrange(len(octets) + 1)
    return octets[:at] + octets[at + random.choice((1, 1, 2, 4)) :]


_FAULTS: tuple[Callable[[Random, bytes], bytes], ...] = (_cut, _flipped, _replaced, _inserted, _removed)


def some_frame(random: Random) -> bytes:
    """A frame: as it was given, with a damaged payload in a sound envelope, or damaged anywhere."""
    octets = random.choice(frames())
    way = random.randrange(6)
    if way == 0:
        return octets
    if way == 1:
        return damaged(random, octets)
    if way == 2:
        return octets + random.choice((b"", random.choice(frames()), random.randbytes(3)))
    return enveloped(damaged(random, octets[7:-1]), octets[0], int.from_bytes(octets[1:3], "big"))


def short(random: Random) -> bytes:
    """A short string on the wire: mostly text, sometimes octets that are not UTF-8."""
    if random.random() < 0.02:
        octets = random.choice((b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\0", random.randbytes(5)))
    else:
        octets = text(random).encode("utf-8", "surrogatepass")[:255]
    return bytes([len(octets)]) + octets


def table_octets(random: Random, depth: int = 0) -> bytes:
    """A field table on the wire, its length before it."""
    entries = [short(random) + value_octets(random, depth) for _ in range(random.choice((0, 1, 2, 3, 6)))]
    return sized(b"".join(entries))


def array_octets(random: Random, depth: int = 0) -> bytes:
    """A field array on the wire, its length before it."""
    return sized(b"".join([value_octets(random, depth) for _ in range(random.choice((0, 1, 2, 5)))]))


def sized(octets: bytes) -> bytes:
    """Octets with their number before them."""
    return struct.pack("!I", len(octets)) + octets


def value_octets(random: Random, depth: int = 0) -> bytes:
    """A tag and its value, mostly sound."""
    tag = random.choice(TAGS[:-4] if random.random() < 0.95 else TAGS)
    if tag in b"AF" and depth > 3:
        tag = ord("V")
    return bytes([tag]) + _value_after(tag, random, depth)


def _value_after(tag: int, random: Random, depth: int) -> bytes:
    if tag == ord("F"):
        return table_octets(random, depth + 1)
    if tag == ord("A"):
        return array_octets(random, depth + 1)
    if tag in b"Sx":
        octets = random.choice((b"", b"\xff", short(random)[1:], random.randbytes(9)))
        return sized(octets)
    if tag == ord("T"):
        return struct.pack("!Q", random.choice(SECONDS))
    size = {"t": 1, "b": 1, "B": 1, "s": 2, "u": 2, "U": 2, "V": 0, "D": 5, "I": 4, "i": 4, "f": 4}
    width = size.get(chr(tag), 8 if tag in b"lLd" else 0)
    return random.choice((bytes(width), b"\xff" * width, random.randbytes(width), b"\x7f\xf0" * 4))[:width]


SECONDS = (
    0, 1, 1700000000, 1700000000, 2**31, 2**32 - 1, 2**32, 1700000000123, 253402300799, 253402300800, 2**60,
    2**63, 2**64 - 1,
)  # fmt: skip


def properties_octets(random: Random) -> bytes:
    """Property flags and the values of basic properties."""
    flags = random.choice(
        (0x9000, 0x9000, 0xB880, 0xB880, 0x2000, 0xFFFC, 1 << random.randrange(16), random.randrange(0x10000))
    )
    values = [_property(random, bit) for bit in range(15, 1, -1) if flags & 1 << bit]
    octets = struct.pack("!H", flags) + b"".join(values)
    return damaged(random, octets) if random.random() < 0.25 else octets


def _property(random: Random, bit: int) -> bytes:
    if bit == 13:
        return table_octets(random)
    if bit in (12, 11):
        return random.randbytes(1)
    return (
        random.choice((random.randbytes(8), struct.pack("!Q", random.choice(SECONDS))))
        if bit == 6
        else short(random)
    )


def header_frame(random: Random) -> bytes:
    """A content header with random properties."""
    start = struct.pack(
        "!HHQ", random.choice((60,) * 9 + (10,)), random.choice((0, 0, 0, 7)), random.randrange(2**16)
    )
    return enveloped(start + properties_octets(random), 2)


def table_frame(random: Random) -> bytes:
    """A frame with a random table: in an argument, or in the header of a message."""
    octets = table_octets(random)
    if random.random() < 0.3:
        octets = damaged(random, octets)
    if random.random() < 0.5:  # queue.declare
        return enveloped(b"\0\x32\0\x0a\0\0" + short(random) + random.randbytes(1) + octets)
    return enveloped(struct.pack("!HHQH", 60, 0, 5, 0x3000) + octets + b"\2", 2)


def channel(random: Random) -> Any:
    """The number of a channel, mostly a good one."""
    return random.choice((1,) * 24 + (0, 65535, 65536, -1, True, Mode.TRANSIENT, None, "1", 1.0))


# -- values


def text(random: Random) -> str:
    """Text that repeats, text that does not, text at the limits."""
    way = random.randrange(30)
    if way < 14:
        return random.choice(_WORDS)
    if way < 25:
        return "".join(random.choices("abcdefgh.-_ ", k=random.choice((0, 1, 7, 8, 9, 16, 40, 60))))
    if way == 25:
        return random.choice(("é", "\u20ac", "\U0001f407", "x")) * random.choice(
            (1, 63, 64, 85, 127, 128, 254, 255, 256)
        )
    if way == 26:
        return "x" * random.choice((126, 127, 128, 253, 254, 255, 256, 300))
    return random.choice(("", "\0", "a\0b", "\x7f", "\x80", "ÿ", "a/b:c", "amq.direct", "q" * 48, "q" * 49))


_WORDS = (
    "", "key", "orders.created", "application/json", "utf-8", "text/plain", "x-death", "count", "consumer-1",
    "amq.topic",
)  # fmt: skip


def odd_text(random: Random) -> Any:
    """Text that cannot be written as it is, or is of no exact type."""
    return random.choice((
        "\ud800", "a\udcff", StrChild("x"), StrChild("é"), StrChild("x" * 300), b"octets", b"", b"\xff",
        bytearray(b"a"), BytesChild(b"o"), "x" * 256, "é" * 128, None, 5, 0, False, [],
    ))  # fmt: skip


def integer(random: Random) -> Any:
    """A number: small, at a limit, or of no exact type."""
    way = random.randrange(10)
    if way < 4:
        return random.randrange(10)
    if way < 7:
        return random.randrange(70000)
    if way < 9:
        return random.choice(INTEGERS)
    return random.choice(
        (True, False, Mode.TRANSIENT, Mode.PERSISTENT, IntChild(5), IntChild(70000), IntChild(-1))
    )


def odd(random: Random) -> Any:
    """A value that fits hardly anywhere."""
    return random.choice((
        None, "", "text", b"octets", 1.5, -0.0, float("nan"), float("inf"), 1e39, FloatChild(1.5),
        Decimal("1.5"), object, {}, {"a": 1}, [], [1], (), (1, 2), {1}, 1j, range(3), Ellipsis,
        datetime(2024, 5, 6), -1, 2**64, "\ud800", StrChild("x"), True, Mode.PERSISTENT, bytearray(b"ab"),
        memoryview(b"ab"), IntChild(3),
    ))  # fmt: skip


def moment(random: Random) -> datetime:
    """A time with and without a zone, of this century, before it, after it."""
    zone = random.choice((None, UTC, UTC, timezone(timedelta(hours=2)), timezone(-timedelta(minutes=90))))
    if random.random() < 0.6:
        return datetime.fromtimestamp(random.choice((0, 1, 1700000000, 2**31)), UTC).replace(tzinfo=zone)
    return random.choice((
        datetime(2020, 1, 2, 3, 4, 5, 999999, zone), datetime(1969, 12, 31, 23, 59, 59, 1, zone),
        datetime(1, 1, 2, tzinfo=zone), datetime(9999, 12, 30, 23, 59, 59, tzinfo=zone),
        datetime(2106, 2, 7, 6, 28, 16, tzinfo=zone), datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zone),
    ))  # fmt: skip


def decimal(random: Random) -> Decimal:
    """A decimal: common ones, limits of scale and mantissa, what is no number."""
    if random.random() < 0.5:
        return Decimal(random.randrange(-10000, 10000)).scaleb(-random.randrange(6))
    return Decimal(random.choice((
        "0", "-0", "0.00", "1E+3", "1E+9", "1E+10", "1E-255", "1E-256", "2147483647", "2147483648",
        "-2147483648", "-2147483649", "NaN", "-NaN", "sNaN", "Infinity", "-Infinity", "0E+11", "12.340",
        "1E+400",
    )))  # fmt: skip


def value(random: Random, depth: int = 0) -> Any:
    """What a program may put into a table."""
    way = random.randrange(17)
    if way < 4:
        return text(random)
    if way < 7:
        return integer(random)
    if way < 12:
        return _SIMPLE[way - 7](random)
    if way == 12:
        return odd(random) if random.random() < 0.3 else None
    if depth > 3:
        return text(random)
    if way < 15:
        return table(random, depth + 1)
    items = [value(random, depth + 1) for _ in range(random.choice((0, 1, 2, 4)))]
    return random.choice((list, list, list, tuple, ListChild))(items)


_SIMPLE: tuple[Callable[[Random], Any], ...] = (
    lambda random: random.random() < 0.5,
    lambda random: random.choice((0.0, -0.0, 1.5, 5e-324, 1e39, float("inf"), float("nan"), random.random())),
    moment,
    decimal,
    lambda random: random.choice((b"", b"octets", b"\xff", bytearray(b"octets"), bytearray())),
)


def table(random: Random, depth: int = 0) -> Any:
    """A dict with text for keys, mostly; sometimes of a class of its own."""
    pairs = [(_key(random), value(random, depth)) for _ in range(random.choice((0, 1, 1, 2, 3, 6)))]
    return random.choice((dict,) * 12 + (DictChild, OrderedDict))(pairs)


def _key(random: Random) -> Any:
    way = random.randrange(40)
    if way == 0:
        return random.choice(("\ud800", StrChild("k"), b"key", 5, None, "é" * 64, "k" * 129, "k" * 256))
    return text(random)[:40] if way < 38 else text(random)
