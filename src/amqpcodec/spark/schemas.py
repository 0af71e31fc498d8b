"""The tables of `amqpcodec.arrow` as Spark's types, and the part of a table that a schema asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import types as spark

from .. import arrow
from .._columns.schemas import ALL_DIALECTS
from .._nearest import nearest_hint

CORRUPT = "_corrupt_record"
AUTO = "auto"
RECORDING = "recording"  # of Spark alone, where one table has the rows of many recordings
_TYPES = {
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.timestamp("us", tz="UTC"): spark.TimestampType(),
}


def table_schema(
    table: str = "messages", *, dialect: str | ModuleType = AUTO, columns: Iterable[str] | None = None
) -> spark.StructType:
    """The schema of a table as Spark sees it.

    Args:
        table: a table of `amqpcodec.arrow.schema`.
        dialect: whose methods and properties it has; ``"auto"`` for those of all dialects.
        columns: as for `amqpcodec.arrow.schema`.

    Raises:
        ValueError: no such table, dialect or column.
    """
    return struct_type(arrow_schema(table, dialect, columns))


def arrow_schema(table: str, dialect: str | ModuleType, columns: Iterable[str] | None = None) -> pa.Schema:
    """Return the schema as Arrow has it: of the library, with the column `recording`."""
    named = None if columns is None else list(columns)
    theirs = None if named is None else without_recording(named)
    dialects = ALL_DIALECTS if dialect == AUTO else (dialect,)
    found = arrow.schema(table, dialects=dialects, columns=theirs)
    place = recording_place(named, found)
    return found if place is None else found.insert(place, pa.field(RECORDING, pa.string()))


def without_recording(columns: Iterable[str]) -> list[str]:
    """Return the columns that the library knows."""
    return [name for name in columns if name != RECORDING]


def recording_place(columns: list[str] | None, theirs: pa.Schema) -> int | None:
    """Return where `recording` stands among the columns of a schema; None where it was not asked for."""
    if columns is None:
        names: list[str] = theirs.names
        return names.index("file") + 1
    if RECORDING not in columns:
        return None
    before = columns[: columns.index(RECORDING)]
    return len({name.partition(".")[0] for name in before})


def struct_type(schema: Iterable[pa.Field]) -> spark.StructType:
    """Fields of Arrow as Spark's."""
    return spark.StructType(
        [spark.StructField(field.name, data_type(field.type), field.nullable) for field in schema]
    )


def data_type(kind: pa.DataType) -> spark.DataType:
    """An Arrow type of a table as Spark's."""
    known = _TYPES.get(kind)
    if known is not None:
        return known
    if pa.types.is_map(kind):
        return spark.MapType(data_type(kind.key_type), data_type(kind.item_type))
    return struct_type(kind)


class Projection(NamedTuple):
    """The part of a table that is asked for.

    Attributes:
        columns: as the library calls them, those in structs with a dot.
        schema: the Arrow schema of the batches that Spark is to get.
    """

    columns: tuple[str, ...]
    schema: pa.Schema


def project(
    wanted: spark.StructType, table: str, dialect: str | ModuleType, corrupt: str = CORRUPT
) -> Projection:
    """Return the columns of a table that a schema asks for.

    Args:
        wanted: the schema, with columns of the table in any order.
        table, dialect: as for `table_schema`.
        corrupt: the name that `_corrupt_record` has in it.

    Raises:
        ValueError: the table has no such column, or one of another type; nullability included, since Spark
            would trust a column that is said to have no nulls.
    """
    every = {
        field.name: field for field in table_schema(table, dialect=dialect, columns=_all(table, dialect))
    }
    if CORRUPT in every:
        every[corrupt] = every.pop(CORRUPT)
    columns: list[str] = []
    for field in wanted:
        found = every.get(field.name)
        if found is None:
            there = f"{', '.join(every)}{nearest_hint(field.name, every)}"
            raise ValueError(f"table {table!r} has no column {field.name!r}; there are {there}")
        name = CORRUPT if field.name == corrupt else field.name
        columns += _within(name, field, found)
    return Projection(tuple(columns), renamed(arrow_schema(table, dialect, columns), corrupt))


def renamed(schema: pa.Schema, corrupt: str) -> pa.Schema:
    """A schema in which `_corrupt_record` has another name."""
    return pa.schema(field.with_name(corrupt) if field.name == CORRUPT else field for field in schema)


def _all(table: str, dialect: str | ModuleType) -> list[str]:
    """Every column of a table, also those that only come when asked for."""
    names: list[str] = arrow_schema(table, dialect).names
    return names + [name for name in optional_columns(table) if name not in names]


def optional_columns(table: str) -> tuple[str, ...]:
    """The columns of a table that only come when asked for by name."""
    from .._columns.schemas import table_columns

    return tuple(column.name for column in table_columns(table) if column.optional)


def _within(name: str, wanted: spark.StructField, found: spark.StructField) -> Iterator[str]:
    """The columns that a field asks for: itself, or some of those in a struct."""
    if not wanted.nullable:
        raise ValueError(f"column {wanted.name!r} may be null, and cannot be read as NOT NULL")
    inside, asked = found.dataType, wanted.dataType
    if asked == inside:
        yield name
        return
    if not (isinstance(inside, spark.StructType) and isinstance(asked, spark.StructType)):
        raise ValueError(
            f"column {wanted.name!r} is {inside.simpleString()}, and cannot be read as {asked.simpleString()}"
        )
    children = {child.name: child for child in inside}
    for child in asked:
        if child.name not in children:
            there = f"{', '.join(children)}{nearest_hint(child.name, children)}"
            raise ValueError(f"column {wanted.name!r} has no field {child.name!r}; there are {there}")
        yield from (f"{name}.{part}" for part in _within(child.name, child, children[child.name]))
