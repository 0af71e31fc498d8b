"""One entry of a field table, without decoding the others, in pure Python. The twin of lookup_c.pyx.

These are fast paths. They walk over all octets, and decline whatever full decoding would refuse, or might:
that then says what is wrong. They also decline values that a caller could change, since those have to be the
same objects each time.
"""

from __future__ import annotations

from functools import cache, lru_cache

from .. import profiles as kinds
from .._typing import Any
from ..limits import DEFAULT_LIMITS, Limits
from .read_values import DECLINED, FastReader, _long, fast_readers
from .values import Declined

FOUND_NONE: tuple[Any, ...] = ()
_SIZED, _TABLE, _ARRAY, _UNKNOWN = 100, 101, 102, 103  # in place of how many octets a tag and its value have
_SHORT_TEXT, _HEADERS = 100, 101  # in a plan of rawproperties_py.py
_SIZES = {
    kinds.VOID: 1, kinds.BOOL: 2, kinds.INT8: 2, kinds.UINT8: 2, kinds.INT16: 3, kinds.UINT16: 3,
    kinds.INT32: 5, kinds.UINT32: 5, kinds.FLOAT: 5, kinds.DECIMAL: 6, kinds.INT64: 9, kinds.UINT64: 9,
    kinds.DOUBLE: 9, kinds.TIMESTAMP: 9, kinds.LONGSTR: _SIZED, kinds.OCTETS: _SIZED, kinds.TABLE: _TABLE,
    kinds.ARRAY: _ARRAY,
}  # fmt: skip


def _most(limits: Limits) -> tuple[int, int]:
    """How many octets of a table cannot have too many of anything, and how deep tables may be nested."""
    return min(limits.table_octets, limits.table_entries, limits.array_items), limits.table_depth


_DEFAULTS = _most(DEFAULT_LIMITS)


def look_up(octets: bytes, key: Any, profile: str, limits: Limits | None) -> tuple[Any, ...] | None:
    """Return the value of a key in a table, in a tuple; an empty one where no entry has the key.

    Args:
        octets: the entries.
        key: the key, whatever it is.
        profile: name of the table profile that reads them.
        limits: what is refused; None for the default ones.

    Returns:
        None where all entries have to be decoded.
    """
    most, depth = _DEFAULTS if limits is None else _most(limits)
    end = len(octets)
    if end > most:
        return None
    needle = _needle(key) if type(key) is str else None
    if needle is None:
        return None
    last = octets.rfind(needle)
    found = pos = 0
    try:
        sizes, readers = _rules(profile)
        while pos < end:
            if pos == last:
                found = pos + len(needle)
            stop = pos + octets[pos] + 1
            size = sizes[octets[stop]]
            if size < _SIZED:
                pos = stop + size
            elif size == _SIZED:
                pos = stop + 5 + _long(octets, stop + 1)[0]
            else:
                pos = _behind_nested(octets, stop, depth - 1, sizes)
        if pos != end:
            return None
        if found:
            if sizes[octets[found]] > _SIZED:
                return None
            return (readers[octets[found]](octets, found + 1, end, 1, readers)[0],)
        # What was found last lies inside of another entry; one before it need not.
        return FOUND_NONE if octets.find(needle) == last else None
    except (*DECLINED, ValueError):
        return None


@lru_cache(maxsize=256)
def _needle(key: str) -> bytes | None:
    """Return a key as it stands before its value; None for what is not ASCII, or too long for one."""
    return bytes((len(key),)) + key.encode() if key.isascii() and len(key) < 256 else None


@cache
def _rules(profile: str) -> tuple[list[int], list[FastReader]]:
    """How many octets a tag and its value have, and what reads the value, by tag."""
    tags = kinds.table_profile(profile).readable(False)
    sizes = [_UNKNOWN] * 256
    for tag, kind in tags.items():
        sizes[ord(tag)] = _SIZES.get(kind, _UNKNOWN)
    return sizes, fast_readers(tags)


def _behind_nested(octets: bytes, at: int, levels: int, sizes: list[int]) -> int:
    """Return where a table or array ends whose tag is at a place, once everything in it was walked over."""
    size = sizes[octets[at]]
    pos = at + 5
    end: int = pos + _long(octets, at + 1)[0]
    if levels < 1 or size == _UNKNOWN:
        raise Declined
    while pos < end:
        stop = pos + octets[pos] + 1 if size == _TABLE else pos
        inner = sizes[octets[stop]]
        if inner < _SIZED:
            pos = stop + inner
        elif inner == _SIZED:
            pos = stop + 5 + _long(octets, stop + 1)[0]
        else:
            pos = _behind_nested(octets, stop, levels - 1, sizes)
    if pos != end:
        raise Declined
    return end


def headers_in(octets: bytes, plan: bytes) -> bytes | None:
    """Return the entries of the table `headers` in the octets of properties; empty where there is none.

    Args:
        octets: property flags and properties.
        plan: for each property of the class, in order, how many octets it has, or _SHORT_TEXT, or _HEADERS.

    Returns:
        None where all properties have to be decoded.
    """
    end = len(octets)
    if end < 2:
        return None
    sizes = _present(octets[0] << 8 | octets[1], plan)
    if sizes is None:
        return None
    found, pos = b"", 2
    try:
        for size in sizes:
            if size == _SHORT_TEXT:
                pos += 1 + octets[pos]
            elif size == _HEADERS:
                start = pos + 4
                pos = start + _long(octets, pos)[0]
                found = octets[start:pos]
            else:
                pos += size
    except DECLINED:
        return None
    return found if pos == end else None


@lru_cache(maxsize=256)
def _present(flags: int, plan: bytes) -> list[int] | None:
    """Return the sizes of the properties that are there; None where flags are of none."""
    sizes = [size for at, size in enumerate(plan) if flags & 0x8000 >> at]
    return sizes if len(sizes) == flags.bit_count() else None
