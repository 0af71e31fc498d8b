"""The fast path that the pure build tries first when it reads field tables.

It checks no more than it takes never to return a wrong value. Whatever it does not know raises one of
`DECLINED`, and is then read by reader_py.py, the slow path, which says what is wrong. It may read octets past
the payload: that ends in one of `DECLINED`, or in a position that is not the end of the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from struct import Struct, error

from .._typing import Any, NoReturn, TypeAlias
from ..profiles import (
    ARRAY,
    BOOL,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    LONGSTR,
    OCTETS,
    TABLE,
    TIMESTAMP,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    VOID,
)
from .values import Declined

Octets: TypeAlias = "bytes | bytearray"
# Data, position, end of what the value is in, levels it may nest, and the readers by tag: value and position.
FastReader: TypeAlias = "Callable[[Octets, int, int, int, list[FastReader]], tuple[Any, int]]"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z, the end of what a datetime can hold
_from_timestamp = datetime.fromtimestamp
_long = Struct(">I").unpack_from
_int32 = Struct(">i").unpack_from
_longlong = Struct(">Q").unpack_from
_decimal = Struct(">Bi").unpack_from


DECLINED = (Declined, IndexError, KeyError, UnicodeDecodeError, error)
"""Errors of the fast path of reading."""


def timestamp(seconds: int) -> datetime | int:
    """An aware UTC datetime, or the number itself beyond the year 9999."""
    if seconds < 0x80000000:  # not every platform can do this for later times
        return _from_timestamp(seconds, UTC)
    return _EPOCH + timedelta(seconds=seconds) if seconds <= _LAST_SECOND else seconds


def part(data: Octets, start: int, end: int) -> bytes:
    """Return octets of what is no `bytes`, copied once."""
    with memoryview(data) as view:
        return bytes(view[start:end])


def fast_pairs(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> dict[str, Any]:
    """The entries of a table, which are data[pos:end].

    Args:
        data: the octets; more may follow.
        pos: where the first entry begins.
        end: where the last entry ends.
        levels: how many tables and arrays there may be inside each other, this one counted.
        readers: by tag, those of `fast_readers`.
    """
    if levels < 1:
        raise Declined
    table: dict[str, Any] = {}
    while pos < end:
        start = pos + 1
        pos = start + data[pos]
        key = data[start:pos].decode()
        tag = data[pos]
        # The tags with which nearly all entries come mean the same in every profile.
        if tag == 0x53:  # S
            start = pos + 5
            pos = start + _long(data, pos + 1)[0]
            if pos > end:
                raise Declined
            table[key] = data[start:pos].decode()
        elif tag == 0x49:  # I
            table[key] = _int32(data, pos + 1)[0]
            pos += 5
        else:
            table[key], pos = readers[tag](data, pos + 1, end, levels, readers)
    if pos != end:
        raise Declined
    return table


def fast_readers(tags: Mapping[str, int]) -> list[FastReader]:
    """By tag, what reads the value after it; `tags` are those of a profile, with their kinds."""
    readers: list[FastReader] = [_declines] * 256
    for tag, kind in tags.items():
        readers[ord(tag)] = _READERS.get(kind, _declines)
    return readers


def _declines(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> NoReturn:
    raise Declined


def _fixed(layout: str) -> FastReader:
    """A reader of one fixed-size number."""
    struct = Struct(layout)
    size, unpack_from = struct.size, struct.unpack_from

    def read(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
        return unpack_from(data, pos)[0], pos + size

    return read


def _bool(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    return data[pos] != 0, pos + 1


def _void(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    return None, pos


def _text(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    start, stop = _sized(data, pos, end)
    return data[start:stop].decode(), stop


def _octets(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    start, stop = _sized(data, pos, end)
    return bytes(data[start:stop]), stop


def _time(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    return timestamp(_longlong(data, pos)[0]), pos + 8


def _scaled(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    scale, mantissa = _decimal(data, pos)
    return Decimal(f"{mantissa}E-{scale}"), pos + 5


def _table(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    start, stop = _sized(data, pos, end)
    return fast_pairs(data, start, stop, levels - 1, readers), stop


def _array(data: Octets, pos: int, end: int, levels: int, readers: list[FastReader]) -> tuple[Any, int]:
    pos, stop = _sized(data, pos, end)
    if levels < 2:
        raise Declined
    items = []
    while pos < stop:
        value, pos = readers[data[pos]](data, pos + 1, stop, levels - 1, readers)
        items.append(value)
    if pos != stop:
        raise Declined
    return items, stop


def _sized(data: Octets, pos: int, end: int) -> tuple[int, int]:
    """Where octets with their length before them begin and end."""
    start = pos + 4
    stop = start + _long(data, pos)[0]
    if stop > end:
        raise Declined
    return start, stop


_READERS: dict[int, FastReader] = {
    INT8: _fixed(">b"), UINT8: _fixed(">B"), INT16: _fixed(">h"), UINT16: _fixed(">H"),
    INT32: _fixed(">i"), UINT32: _fixed(">I"), INT64: _fixed(">q"), UINT64: _fixed(">Q"),
    FLOAT: _fixed(">f"), DOUBLE: _fixed(">d"), BOOL: _bool, DECIMAL: _scaled, LONGSTR: _text,
    OCTETS: _octets, ARRAY: _array, TIMESTAMP: _time, TABLE: _table, VOID: _void,
}  # fmt: skip
