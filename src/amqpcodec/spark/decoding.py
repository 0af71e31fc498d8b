"""Tables with a column of octets to tables of what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from .. import arrow
from .._options import select, takes
from ..arrow.binary import UNTOLD
from ..errors import DecodeError
from ..options import (
    DIALECT,
    CaptureOptions,
    ColumnOptions,
    SparkCaptureOptions,
    SparkDecodingOptions,
    SparkStreamOptions,
    StreamOptions,
)  # fmt: skip
from .packaging import packaged
from .reading import check_build
from .schemas import struct_type

_MOST_OCTETS = 64 << 20  # of frames for one batch of rows
_Batches = Iterator[pa.RecordBatch]


@takes(SparkDecodingOptions, dialect=DIALECT)
def decode_frames(
    df: DataFrame,
    col: str,
    *,
    keys: Sequence[str] = (),
    table: str = "frames",
    **options: Unpack[SparkDecodingOptions],
) -> DataFrame:
    """All rows of a table that are in a column of octets, behind the keys of the row they come from.

    Each value is read by itself, as whole frames of one direction, any number of them; null and empty values
    give no row. Octets that belong to no frame are a row with LOST in `_error`.

    Args:
        df: the table that has the column.
        col: name of the column, which is binary.
        keys: names of other columns that are repeated for each row.
        table: ``"frames"``, ``"methods"`` or ``"messages"``.
        options: those of `SparkDecodingOptions`. The column `offset` is that in the value.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be; a key with the name of a
            column.
    """
    impl, chosen = options["impl"], select(ColumnOptions, options)
    schema = arrow.ValueDecoder(table, explode=True, **chosen).schema
    chosen["_impl"] = impl
    kept = schema.remove(schema.get_field_index("value"))
    names = list(keys)

    def decode(batches: _Batches) -> _Batches:
        check_build(impl)
        decoder = arrow.ValueDecoder(table, explode=True, **chosen)
        for batch in _portions(batches, col):
            rows = decoder.decode(batch.column(col))
            repeated = [batch.column(name).take(rows.column("value")) for name in names]
            fields = [batch.schema.field(name) for name in names]
            arrays = repeated + [rows.column(name) for name in kept.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *kept]))

    return df.select(*dict.fromkeys([*names, col])).mapInArrow(packaged(decode), _behind(df, names, kept))


@takes(SparkCaptureOptions)
def decode_captures(
    df: DataFrame,
    content: str = "content",
    path: str = "path",
    *,
    table: str = "messages",
    **options: Unpack[SparkCaptureOptions],
) -> DataFrame:
    """All rows of a table that are in captures which Spark has read whole, each a recording of its own.

    ``spark.read.format("binaryFile")`` reads them, with Spark's own credentials and from each file system
    that Spark knows. A value of Spark has at most 2 GiB.

    Args:
        df: a table with a row for each capture.
        content: the binary column with its octets, perhaps compressed. Null is no capture.
        path: the column with its name, which the column `file` and errors have.
        table: as for `amqpcodec.arrow.read_capture`.
        options: those of `SparkCaptureOptions`.

    Returns:
        The columns of the table.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """
    impl, chosen = options["impl"], select(CaptureOptions, options)
    schema = arrow.CaptureSession(table, **chosen).schema
    chosen["_impl"] = impl

    def decode(batches: _Batches) -> _Batches:
        check_build(impl)
        for batch in batches:
            for octets, name in zip(batch.column(content), batch.column(path).to_pylist(), strict=True):
                if octets.is_valid:
                    session = arrow.CaptureSession(table, **chosen)
                    yield from session.read(pa.BufferReader(octets.as_buffer()), name)
                    yield from session.finish()

    return df.select(content, path).mapInArrow(packaged(decode), struct_type(schema))


@takes(SparkStreamOptions, dialect=DIALECT)
def decode_streams(
    df: DataFrame,
    key: str | Sequence[str],
    order: str | Sequence[str],
    payload: str,
    *,
    table: str = "messages",
    **options: Unpack[SparkStreamOptions],
) -> DataFrame:
    """The rows of a table that are in streams whose octets are spread over many rows, cut anywhere.

    Args:
        df: a table with a row for every chunk of a stream.
        key: the columns that identify the stream of a chunk: one direction of a connection.
        order: the columns that say in which order the chunks of a stream follow each other.
        payload: the binary column with the octets. Null and empty chunks are ignored.
        table: as for `amqpcodec.arrow.BatchDecoder`.
        options: those of `SparkStreamOptions`. The column `offset` is that in the stream.

    Returns:
        The key, and behind it the columns of the table. A stream begins with a frame; octets that belong to
        no frame are a row with LOST in `_error`. It is read by one task, chunk by chunk: what is held of it
        are a batch of its rows and its contents that are not complete.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be; a key with the name of a
            column.
    """
    names = [key] if isinstance(key, str) else list(key)
    ordered = [order] if isinstance(order, str) else list(order)
    impl, chosen = options["impl"], select(StreamOptions, options)
    if chosen["columns"] is None:
        every = arrow.BatchDecoder(table, **chosen).schema.names
        chosen["columns"] = [name for name in every if name not in UNTOLD - {"offset"}]
    wanted = arrow.BatchDecoder(table, **chosen).schema

    def decode(batches: _Batches) -> _Batches:
        check_build(impl)
        decoder = arrow.BatchDecoder(table, **chosen)
        stream: list[pa.Scalar] = []
        try:
            for batch in batches:
                stream = [batch.column(name)[0] for name in names]
                for made in decoder.feed(_joined(batch.column(payload))):
                    yield _labelled(made, names, stream)
            for made in decoder.finish():
                yield _labelled(made, names, stream)
        except DecodeError as error:
            error.add_note(f"in the stream {', '.join(str(part) for part in stream)}")
            raise

    chunks = df.select(*dict.fromkeys([*names, *ordered, payload])).repartition(*names)
    groups = chunks.sortWithinPartitions(*names, *ordered).groupBy(*names)
    return groups.applyInArrow(_of_groups(packaged(decode)), _behind(df, names, wanted))


def _behind(df: DataFrame, names: Sequence[str], wanted: pa.Schema) -> StructType:
    """The columns of a table behind others.

    Raises:
        ValueError: two of them have one name.
    """
    keys = [df.schema[name] for name in names]
    twice = sorted({name for name in names if name in wanted.names or list(names).count(name) > 1})
    if twice:
        raise ValueError(
            f"two columns with the name {twice[0]!r}: rename the key, or name the columns wanted"
        )
    return StructType([*keys, *struct_type(wanted)])


def _portions(batches: _Batches, col: str) -> _Batches:
    """Batches in parts with not too many octets of frames, so that their rows fit in one."""
    for batch in batches:
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            if part.num_rows > 1 and part.column(col).nbytes > _MOST_OCTETS:
                half = part.num_rows // 2
                waiting += [part.slice(half), part.slice(0, half)]
            else:
                yield part


def _joined(values: pa.Array) -> pa.Buffer | bytes:
    """The octets of all values one behind the other, where they lie."""
    given = values.drop_null().cast(pa.binary())
    _, offsets, octets = given.buffers()
    if not len(given) or octets is None:
        return b""
    ends = pa.Array.from_buffers(pa.int32(), len(given) + 1, [None, offsets], offset=given.offset)
    first, last = ends[0].as_py(), ends[len(given)].as_py()
    return octets.slice(first, last - first)


def _labelled(rows: pa.RecordBatch, names: Sequence[str], values: Sequence[pa.Scalar]) -> pa.RecordBatch:
    """Rows behind the key of their stream."""
    arrays = [pa.repeat(value, rows.num_rows) for value in values]
    return pa.RecordBatch.from_arrays([*arrays, *rows.columns], names=[*names, *rows.schema.names])


def _of_groups(function: Callable[[_Batches], _Batches]) -> Callable[..., Any]:
    """A function of the batches of a group as Spark takes it; before 4.1 it has a group as one table."""
    if hasattr(sql, "arrow_udf"):
        return function

    def whole(group):  # type: ignore[no-untyped-def]  # Spark goes by the types that are written here
        return pa.Table.from_batches(list(function(iter(group.to_batches()))))

    return whole
