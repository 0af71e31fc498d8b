"""The fast path that the pure build tries first when it writes field tables.

It takes values of the very types that a field is for. Any other raises one of `DECLINED`, and is then written
by writer_py.py, the slow path, which knows what else a field takes and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from struct import Struct, error

from .._typing import Any, TypeAlias
from ..errors import EncodeError
from ..profiles import ARRAY, BOOL, DOUBLE, INT64, OCTETS, VOID, TableProfile
from .rawtable_py import RawTable
from .values import Declined, scaled

# Where to, the value, levels it may nest, and the writers by type.
FastWriter: TypeAlias = "Callable[[bytearray, Any, int, FastWriters], None]"
FastWriters: TypeAlias = dict[type, FastWriter]

DECLINED = (Declined, KeyError, TypeError, ValueError, error, RuntimeError, EncodeError)
"""Errors of the fast path of writing; a ValueError for text, and for a number that fits no octet."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_encode = str.encode  # whatever a subclass makes of it
_long = Struct(">I").pack
_long_into = Struct(">I").pack_into
_tagged_long = Struct(">BI").pack
_tagged_int32 = Struct(">Bi").pack
_tagged_int64 = Struct(">Bq").pack
_tagged_time = Struct(">BQ").pack
_tagged_double = Struct(">Bd").pack
_tagged_decimal = Struct(">BBi").pack


def seconds(value: Any) -> int:
    """Return a timestamp as the wire has it; a time before 1970 gives a number that cannot be packed."""
    if type(value) is datetime and value.tzinfo is UTC:
        since = value - _EPOCH
        return since.days * 86400 + since.seconds
    if type(value) is int:
        return value
    raise Declined


def long_octets(value: Any) -> bytes:
    """A longstr with its length before it."""
    octets = value if type(value) is bytes else _encode(value)
    return _long(len(octets)) + octets


def fast_table(out: bytearray, table: Any, levels: int, writers: FastWriters) -> None:
    """A field table with its length before it.

    Args:
        out: where it goes.
        table: a dict, or a `RawTable`.
        levels: how many tables and arrays there may be inside each other, this one counted.
        writers: by type, those of `fast_writers`.
    """
    if type(table) is not dict:
        if type(table) is not RawTable:
            raise Declined
        out += long_octets(table.octets)
        return
    if levels < 1:
        raise Declined
    at = len(out)
    out += b"\0\0\0\0"
    for key, value in table.items():
        octets = _encode(key)
        out.append(len(octets))
        out += octets
        kind = type(value)
        # What nearly all values are; these tags mean the same in every profile.
        if kind is str:
            octets = _encode(value)
            out += _tagged_long(0x53, len(octets))  # S
            out += octets
        elif kind is int and -0x80000000 <= value <= 0x7FFFFFFF:
            out += _tagged_int32(0x49, value)  # I
        else:
            writers[kind](out, value, levels, writers)
    _long_into(out, at, len(out) - at - 4)


def fast_writers(profile: TableProfile) -> FastWriters:
    """By type, what writes a table value in a profile, its tag before it."""
    writers: FastWriters = {str: _text, int: _int, datetime: _time, Decimal: _decimal}
    writers.update(dict.fromkeys((dict, RawTable), _table))
    for tag, (kind, types, writer) in _BY_TAG.items():
        if profile.tags.get(tag) == kind:
            writers.update(dict.fromkeys(types, writer))
    if profile.finite:
        writers[float] = _finite_double
    return writers


def _text(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    octets = _encode(value)
    out += _tagged_long(0x53, len(octets))  # S
    out += octets


def _int(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += _tagged_int32(0x49, value)  # I


def _int_or_long(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        out += _tagged_int32(0x49, value)  # I
    else:
        out += _tagged_int64(0x6C, value)  # l


def _table(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out.append(0x46)  # F
    fast_table(out, value, levels - 1, writers)


def _time(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += _tagged_time(0x54, seconds(value))  # T


def _decimal(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += _tagged_decimal(0x44, *scaled(value, ""))  # D


def _bool(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += b"t\1" if value else b"t\0"


def _void(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out.append(0x56)  # V


def _double(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += _tagged_double(0x64, value)  # d


def _finite_double(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    if not isfinite(value):
        raise Declined
    out += _tagged_double(0x64, value)  # d


def _octets(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    out += _tagged_long(0x78, len(value))  # x
    out += value


def _array(out: bytearray, value: Any, levels: int, writers: FastWriters) -> None:
    if levels < 2:
        raise Declined
    out.append(0x41)  # A
    at = len(out)
    out += b"\0\0\0\0"
    for item in value:
        writers[type(item)](out, item, levels - 1, writers)
    _long_into(out, at, len(out) - at - 4)


_BY_TAG: dict[str, tuple[int, tuple[type, ...], FastWriter]] = {
    "l": (INT64, (int,), _int_or_long),
    "t": (BOOL, (bool,), _bool),
    "V": (VOID, (type(None),), _void),
    "d": (DOUBLE, (float,), _double),
    "x": (OCTETS, (bytes,), _octets),
    "A": (ARRAY, (list, tuple), _array),
}
