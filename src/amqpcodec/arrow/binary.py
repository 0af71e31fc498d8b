"""Columns of octets, a chunk of a stream in each value, to columns and back."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Unpack

import pyarrow as pa

from .. import DecoderInUseError, EncodeError, _backend
from .._columns.binary_py import VALUES, ValueReader
from .._columns.decoding import Decoding
from .._columns.encode_py import Encoded
from .._columns.schemas import LEAD
from .._kernel.lock_py import Lock
from .._options import takes
from ..options import DIALECT, AllColumnOptions, ColumnOptions, EncodingOptions
from .arrays import converted, empty, memory_of, record_batch, schema_of
from .encoding import BatchEncoder, int64s

TABLES = ("frames", "methods", "messages")
UNTOLD = frozenset(("ts_last", *(column.name for column in LEAD)))  # by octets alone


@takes(AllColumnOptions, dialect=DIALECT)
class ValueDecoder:
    """Decodes binary columns: each value by itself, as whole frames of one direction.

    Args:
        table: ``"frames"``, ``"methods"`` or ``"messages"``.
        explode: False for exactly one row a value, which is null for a null. If a value does not hold exactly
            one, `_error` says so: NOTHING, SEVERAL with the offset of the second, or LOST with that of octets
            that belong to no frame. True for all rows of all values, with the number of the value in the
            column `value`; octets that belong to no frame are a row with LOST in `_error`.
        options: those of `ColumnOptions`.

    Without names of columns, those about files and packets are left out, too. A value does not show its
    dialect, so there is no ``"auto"``. The mode ``"drop"`` needs `explode`.

    Attributes:
        schema: that of every batch.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """

    def __init__(
        self,
        table: str = "frames",
        *,
        explode: bool = False,
        **options: Unpack[ColumnOptions],
    ) -> None:
        if table not in TABLES:
            raise ValueError(f"no table {table!r} of values; there are {', '.join(TABLES)}")
        if options["mode"] == "drop" and not explode:
            raise ValueError("mode: 'drop' goes with explode only")
        if options["dialect"] == "auto":
            raise ValueError("dialect: a value does not show it: name one")
        decoding = Decoding.of(options)
        wanted = decoding.columns(table, options["columns"])
        if options["columns"] is None:
            absent = UNTOLD - {"offset"} if explode else UNTOLD
            wanted = tuple(column for column in wanted if column.name not in absent)
        build: type[ValueReader] = _backend.load("amqpcodec._columns.binary", decoding.impl).ValueReader
        self._open = partial(build, table, wanted, decoding, direction=options["direction"], explode=explode)
        self._reader = self._open()
        self.schema: pa.Schema = schema_of(self._reader.columns)
        self._lock = Lock()

    def decode(self, values: Any) -> pa.RecordBatch:
        """The rows of a column.

        Args:
            values: an Arrow array of binary, or of a type that casts to it.

        Raises:
            DecodeError: in mode ``"fail"``, the first error; its message names the value, and its offset is
                that in the value.
            DecoderInUseError: called while the decoder is decoding.
            OverflowError: a column of more than 2 GiB.
            pyarrow.ArrowException: the array is of another kind.
            ValueError: its memory is not valid for Arrow (`pyarrow.ArrowInvalid`).
        """
        given = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        given.validate()  # before pyarrow itself goes through the values
        memory = memory_of(VALUES, _joined(given))
        lock = self._lock  # see `Lock.reclaim`
        if not lock.acquire():
            if not lock.reclaim():
                raise DecoderInUseError("this decoder is decoding: call it from one place at a time")
            self._reader = self._open()
        try:
            batch = self._reader.read(memory)
        except BaseException:
            self._reader = self._open()  # its state is unknown
            raise
        finally:
            lock.release()
        return record_batch(self.schema, batch)


@takes(AllColumnOptions, dialect=DIALECT)
def decode_values(
    values: Any, table: str = "frames", *, explode: bool = False, **options: Unpack[ColumnOptions]
) -> pa.RecordBatch:
    """The rows of a binary column.

    Args:
        values: as for `ValueDecoder.decode`, whose errors it raises.
        table, explode: as for `ValueDecoder`.
        options: those of `ColumnOptions`.
    """
    return ValueDecoder(table, explode=explode, **options).decode(values)


@takes(EncodingOptions)
def encode_values(
    messages: Any, *, mode: Literal["permissive", "fail"] = "fail", **options: Unpack[EncodingOptions]
) -> pa.ChunkedArray:
    """The frames of messages in columns, one value for each message.

    Args:
        messages: as for `encode_messages`.
        mode: ``"fail"`` raises at a row that cannot be written, ``"permissive"`` makes it null.
        options: those of `EncodingOptions`. Rows left out are null.

    Returns:
        One binary value a row.

    Raises:
        EncodeError: as `encode_messages`, in mode ``"fail"``.
        TypeError, ValueError: no such mode; an option that cannot be.
    """
    if mode not in ("permissive", "fail"):
        raise ValueError(f"no mode {mode!r}; there are permissive, fail")
    table = pa.table(messages) if not isinstance(messages, pa.RecordBatch) else messages
    try:
        chunks = [_in_rows(encoded, batch.num_rows) for encoded, batch in BatchEncoder(options).encode(table)]
    except EncodeError:
        if mode == "fail":
            raise
        list(BatchEncoder(options).encode(empty(table.schema)))  # raises for a column's type
        if table.num_rows == 1:
            return pa.chunked_array([pa.nulls(1, pa.binary())])
        half = table.num_rows // 2
        encode = partial(encode_values, mode=mode, **options)
        chunks = [*encode(table.slice(0, half)).chunks, *encode(table.slice(half)).chunks]
    return pa.chunked_array(chunks, pa.binary())


def _in_rows(encoded: Encoded, rows: int) -> pa.Array:
    """Frames as one value for each row, null for a skipped row."""
    ends = int64s(encoded.ends).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends]).buffers()[1]
    values = pa.Array.from_buffers(pa.binary(), len(ends), [None, offsets, pa.py_buffer(encoded.octets)])
    if len(values) == rows:
        return values
    import pyarrow.compute as pc  # takes a third of the time of importing Arrow; few need it

    return values.take(pc.index_in(pa.array(range(rows), pa.int64()), int64s(encoded.rows)))


def _joined(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Values as one array of binary."""
    if isinstance(values, pa.Array):
        return converted(values, pa.binary())
    chunks = [converted(chunk, pa.binary()) for chunk in values.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.binary())
