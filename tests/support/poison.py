"""Header tables that cannot be read, each in another way, and what a tolerant decoder makes of them."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

DEEP = 3000  # tables inside each other: more than a Python function can follow


def entry(key: bytes, value: bytes) -> bytes:
    """An entry of a table; the value begins with its tag."""
    return bytes([len(key)]) + key + value


def sized(*parts: bytes) -> bytes:
    """Octets with their length before them, as tables and arrays have it."""
    octets = b"".join(parts)
    return struct.pack(">I", len(octets)) + octets


class Poison(NamedTuple):
    """One table.

    Attributes:
        entries: its octets, without the length before them.
        path: keys and indexes that lead to the smallest table around what is wrong.
        text: of the error.
        strict: whether only strict mode refuses it.
    """

    entries: bytes
    path: tuple[Any, ...]
    text: str
    strict: bool = False

    @property
    def table(self) -> bytes:
        """The table as it is in a frame."""
        return sized(self.entries)


GOOD = entry(b"good", b"I\0\0\0\1")
_UNKNOWN = entry(b"bad", b"Zxx")


def nested(tag: bytes, depth: int = DEEP) -> bytes:
    """An entry with tables, or arrays, inside each other."""
    octets = b""
    for _ in range(depth):
        octets = tag + sized(octets)
        if tag == b"F":
            octets = entry(b"k", octets)
    return octets if tag == b"F" else entry(b"k", octets)


POISON = {
    "an unknown tag": Poison(GOOD + _UNKNOWN, (), "tag 'Z' is unknown"),
    "an unknown tag in a table": Poison(GOOD + entry(b"in", b"F" + sized(_UNKNOWN)), ("in",), "tag 'Z' is"),
    "an unknown tag in an array": Poison(
        GOOD + entry(b"in", b"A" + sized(b"t\1", b"F" + sized(GOOD, _UNKNOWN))), ("in", 1), "tag 'Z' is"
    ),
    "an unknown tag as an item": Poison(GOOD + entry(b"in", b"A" + sized(b"t\1", b"Z")), (), "tag 'Z' is"),
    "a text that is too long": Poison(GOOD + entry(b"bad", b"S\0\0\1\0text"), (), "value of 256 octets"),
    "a table that is too long": Poison(
        GOOD + entry(b"in", b"F" + sized(GOOD, entry(b"bad", b"F\0\0\0\x09"))), ("in",), "value of 9 octets"
    ),
    "a key that is too long": Poison(GOOD + b"\xffkey", (), "table key of 255 octets"),
    "a key without a value": Poison(GOOD + b"\3key", (), "table key of 3 octets and a tag, 3 left"),
    "a number that is cut off": Poison(GOOD + entry(b"bad", b"l\0\0\0\1"), (), "needs 8 octets, 4 left"),
    "tables without end": Poison(GOOD + nested(b"F"), ("k",) * 128, "nested deeper than 128"),
    "a key that is no text": Poison(GOOD + entry(b"\xff", b"V"), (), "not UTF-8", strict=True),
    "a key that comes twice": Poison(GOOD + GOOD, (), "'good' twice", strict=True),
}


def at(table: Any, path: tuple[Any, ...]) -> Any:
    """The value to which a path leads."""
    for step in path:
        table = table[step]
    return table


def frame(kind: int, payload: bytes, channel: int = 1) -> bytes:
    """A frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def properties(table: bytes) -> bytes:
    """Property flags, a content type, these headers and a delivery mode."""
    return b"\xb0\0\4text" + table + b"\2"


def header(table: bytes, size: int = 0, channel: int = 1) -> bytes:
    """A content header with these properties."""
    return frame(2, struct.pack(">HHQ", 60, 0, size) + properties(table), channel)


def delivery(
    table: bytes, body: bytes = b"body", tag: int = 1, channel: int = 1, consumer: bytes = b"c"
) -> bytes:
    """A delivery with these headers."""
    method = b"\0\x3c\0\x3c" + bytes([len(consumer)]) + consumer
    method += struct.pack(">QB", tag, 0) + b"\0" + b"\6poison"
    return frame(1, method, channel) + header(table, len(body), channel) + frame(3, body, channel)
