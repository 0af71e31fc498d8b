"""Columns as lists, many times faster than `to_pylist`, which makes an Arrow object for each cell."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import pyarrow as pa

_CODES = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q"}


def cells(column: pa.Array) -> Iterable[Any]:
    """The values of a column in order, None for null; equal texts are one object."""
    if column.null_count == len(column):
        return repeat(None, len(column))
    if column.type not in _CODES:
        encoded = column.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        return map(texts.__getitem__, _numbers(encoded.indices.fill_null(len(texts) - 1)))
    if not column.null_count:
        return _numbers(column)
    valid = cells(column.is_valid())
    return [number if known else None for number, known in zip(_numbers(column), valid, strict=True)]


def _numbers(column: pa.Array) -> list[int]:
    """Whole numbers; anything where there is none."""
    values: Any = memoryview(column.buffers()[1])
    numbers: list[int] = values.cast(_CODES[column.type])[column.offset :][: len(column)].tolist()
    return numbers
