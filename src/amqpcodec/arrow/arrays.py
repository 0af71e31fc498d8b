"""The columns of tables as Arrow types, and their memory as Arrow arrays, without copying."""

from __future__ import annotations

import os
from array import array as packed
from collections.abc import Iterable
from functools import lru_cache
from types import ModuleType
from typing import Any

import pyarrow as pa

from .._columns.buffers_py import MAP_ENTRY, Batch, Filled, parts
from .._columns.schemas import ALL_DIALECTS, Column, chosen, table_columns
from .._columns.text import clean

_TYPES = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map": pa.map_(pa.string(), pa.string()),
}

_OCTETS = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
_ENTRY = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())])


def schema(
    table: str,
    *,
    dialects: Iterable[str | ModuleType] = ALL_DIALECTS,
    columns: Iterable[str] | None = None,
) -> pa.Schema:
    """The Arrow schema of a table.

    Args:
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"``, ``"errors"``,
            ``"deliveries"`` or ``"packets"``.
        dialects: names of the dialects whose methods and properties it has, or modules of foreign dialects.
        columns: names of columns in order, one inside a struct as ``"properties.content_type"``; None for all
            but the optional ones.

    Raises:
        ValueError: no such table, dialect or column.
    """
    return schema_of(chosen(table_columns(table, dialects), columns))


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow schema of columns."""
    return pa.schema([pa.field(column.name, arrow_type(column)) for column in columns])


@lru_cache(maxsize=1024)
def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of a column."""
    known = _TYPES.get(column.kind)
    if known is not None:
        return known
    return pa.struct([pa.field(child.name, arrow_type(child)) for child in parts(column)])


def record_batch(schema: pa.Schema, batch: Batch) -> pa.RecordBatch:
    """A batch of a sink as a record batch over the same memory; without columns, it still has its rows."""
    if not batch.columns:
        nothing = pa.StructArray.from_buffers(pa.struct([]), batch.rows, [None])
        return pa.RecordBatch.from_struct_array(nothing)
    arrays = [_array(type_, filled) for type_, filled in zip(schema.types, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(type_: pa.DataType, filled: Filled) -> pa.Array:
    buffers = [None if buffer is None else pa.py_buffer(buffer) for buffer in filled.buffers]
    children = None
    if filled.children:
        types = [_ENTRY] if pa.types.is_map(type_) else [field.type for field in type_]
        children = [_array(*each) for each in zip(types, filled.children, strict=True)]
    return pa.Array.from_buffers(type_, filled.length, buffers, filled.nulls, children=children)


def memory_of(column: Column, array: pa.Array) -> Filled:
    """The memory of an Arrow array of a column's type; copied only where it is part of a larger one."""
    if array.offset:
        array.validate()  # a part of what is valid may not be
        array = pa.concat_arrays([array, pa.array([], array.type)])
    length, nulls, buffers = len(array), array.null_count, array.buffers()
    if column.kind == "map":
        texts = (array.values.field(at) for at in range(2))  # `keys` and `items` forget where a slice begins
        entries = tuple(memory_of(part, each) for part, each in zip(MAP_ENTRY, texts, strict=True))
        return Filled(length, nulls, tuple(buffers[:2]), (Filled(entries[0].length, 0, (None,), entries),))
    if column.kind in ("struct", "content"):
        children = (memory_of(child, array.field(at)) for at, child in enumerate(parts(column)))
        return Filled(length, nulls, tuple(buffers[:1]), tuple(children))
    return Filled(length, nulls, tuple(buffers))


def conforming(column: Column, array: pa.Array) -> tuple[Column, pa.Array]:
    """An array from elsewhere in a column's type; of a struct, those children that it has.

    Raises:
        pyarrow.ArrowInvalid: its values are of another kind.
    """
    if array.type == arrow_type(column):
        return column, array
    if not column.children or not pa.types.is_struct(array.type):
        return column, converted(array, arrow_type(column))
    given = {field.name: at for at, field in enumerate(array.type)}
    taken = [
        conforming(child, array.field(given[child.name])) for child in column.children if child.name in given
    ]
    fields = [pa.field(child.name, each.type) for child, each in taken]
    kept = column._replace(children=tuple(child for child, _ in taken))
    return kept, pa.StructArray.from_arrays([each for _, each in taken], fields=fields, mask=array.is_null())


def converted(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array in another type.

    Raises:
        pyarrow.ArrowInvalid: its values are of another kind, or its memory is not valid for Arrow.
    """
    if array.type != type_:
        # pyarrow follows indices and offsets wherever they lead. Text need not be UTF-8.
        octets = _OCTETS.get(array.type)
        (array if octets is None else array.cast(octets)).validate(full=True)
    return array.cast(type_)


def with_file(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """A batch with the name of its file in the column `file`, if there is one; open files have no name."""
    index = batch.schema.get_field_index("file")
    if index < 0:
        return batch
    return batch.set_column(index, batch.schema.field(index), repeated(name, batch.num_rows))


def repeated(name: str, rows: int) -> pa.Array:
    """The name of a file for each of so many rows."""
    text = clean(os.fsdecode(name)).encode()
    # Of memory, since `pa.scalar` imports pandas where it is installed: as long as 100 MB of capture take.
    buffers = [None, pa.py_buffer(packed("i", [0, len(text)])), pa.py_buffer(text)]
    return pa.repeat(pa.Array.from_buffers(pa.string(), 1, buffers)[0], rows)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    arrays: list[Any] = [pa.array([], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
