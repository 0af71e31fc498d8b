"""Parquet settings for the columns of the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

_DICTIONARY_OCTETS = 128 << 10  # of the values of a column; one with more in a group does without
_ROWS_AT_ONCE = 32768  # that are encoded of a column; the usual 1024 take a twentieth more time


def parquet_writer(target: Any, schema: pa.Schema, compression: str) -> parquet.ParquetWriter:
    """A writer of tables to a Parquet file.

    Args:
        target: a path or an open file.
        schema: that of every table.
        compression: as `pyarrow.parquet.ParquetWriter` takes it.
    """
    leaves = [leaf for field in schema for leaf in _leaves(field.type, field.name)]
    return parquet.ParquetWriter(
        target,
        schema,
        compression=compression,
        use_dictionary=[leaf.path for leaf in leaves if leaf.repeats],
        write_statistics=[leaf.path for leaf in leaves if leaf.ranges],
        dictionary_pagesize_limit=_DICTIONARY_OCTETS,
        write_batch_size=_ROWS_AT_ONCE,
    )


class _Leaf(NamedTuple):
    """A column of a Parquet file.

    Attributes:
        path: its name there, behind those of what it is inside of.
        repeats: whether a dictionary of its values is worth trying: not for octets, times and wide numbers,
            most of which come once.
        ranges: whether readers may look for ranges of its values: not of octets, nor inside a map.
    """

    path: str
    repeats: bool
    ranges: bool


def _leaves(type_: pa.DataType, path: str) -> Iterator[_Leaf]:
    """The columns that an Arrow type has in a Parquet file."""
    types = pa.types
    if types.is_struct(type_):
        for field in type_:
            yield from _leaves(field.type, f"{path}.{field.name}")
    elif types.is_map(type_):
        yield _Leaf(f"{path}.key_value.key", True, False)
        yield _Leaf(f"{path}.key_value.value", True, False)
    else:
        octets = types.is_binary(type_)
        wide = types.is_int64(type_) or types.is_timestamp(type_)
        yield _Leaf(path, not (octets or wide), not octets)
