"""Columns as lists, many times faster than `to_pylist`, which makes an Arrow object for each cell; constants.

`pyarrow.scalar` and `pyarrow.array` import pandas where it is installed, as long as 60 MB of capture take.
Constants are made of memory instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from struct import pack
from typing import Any

import pyarrow as pa

_CODES = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q"}
_NUMBER = pa.int64()


def cells(column: pa.Array) -> Iterable[Any]:
    """The values of a column in order, None for null; equal texts are one object."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    if column.type not in _CODES:
        encoded = column.dictionary_encode()
        known = [*encoded.dictionary.to_pylist(), None]
        last = constant(len(known) - 1, encoded.indices.type)
        return map(known.__getitem__, _numbers(encoded.indices.fill_null(last)))
    if not column.null_count:
        return _numbers(column)
    valid = cells(column.is_valid())
    return [number if known else None for number, known in zip(_numbers(column), valid, strict=True)]


def _numbers(column: pa.Array) -> list[int]:
    """Whole numbers; anything where there is none."""
    values: Any = memoryview(column.buffers()[1])
    numbers: list[int] = values.cast(_CODES[column.type])[column.offset :][: len(column)].tolist()
    return numbers


def constant(number: int, type_: pa.DataType = _NUMBER) -> pa.Scalar:
    """A whole number, or a truth value."""
    buffer = pa.py_buffer(pack("=?" if type_ == pa.bool_() else f"={_CODES[type_]}", number))
    return pa.Array.from_buffers(type_, 1, [None, buffer])[0]


def texts(values: Sequence[str]) -> pa.Array:
    """A column of texts."""
    octets = [value.encode() for value in values]
    ends = pack(f"={len(octets) + 1}i", 0, *accumulate(map(len, octets)))
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(octets))]
    return pa.Array.from_buffers(pa.string(), len(octets), buffers)
