"""Encodes messages in columns to streams of frames."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Unpack

import pyarrow as pa

from .. import EncodeError, _backend
from .._columns.buffers_py import Batch
from .._columns.encode_py import Encoded
from .._columns.schemas import Column, table_columns
from .._nearest import nearest
from .._options import takes
from ..capture.dialects import module
from ..options import EncodingOptions
from .arrays import conforming, memory_of

_MessageEncoder: Any = _backend.load("amqpcodec._columns.encode").MessageEncoder
_LEAST_LIKENESS = 0.85  # of a name that is misspelt, and not one of another meaning
TIME = Column("ts_ns", "int64")
_INDEX_SCHEMA = pa.schema([("offset", pa.int64()), ("length", pa.int64()), ("ts_ns", pa.int64())])


@takes(EncodingOptions)
def encode_messages(messages: Any, **options: Unpack[EncodingOptions]) -> bytes:
    """The frames of messages in columns, as `decode_messages` and `read_capture` return them.

    Args:
        messages: a record batch, a table, or an object with the Arrow PyCapsule protocol. The columns are
            those of the table `messages`. Others are ignored, unless a name is almost that of a column, or of
            a property, that is missing. What is missing or null takes its default: basic.publish on channel
            1, empty arguments and body, no properties. `name` selects the method, or `kind` one of the class
            basic; `headers_raw` goes before `headers`.
        options: those of `EncodingOptions`. Incomplete are rows with `_error`, or with `complete` false.

    Returns:
        All frames, in the order of the rows: the result of the dialect's `encode_message` for each.

    Raises:
        EncodeError: a value that cannot be written, naming row and column; a row in error or incomplete;
            a column of another type, or whose name looks misspelt.
        TypeError, ValueError: an option that cannot be; memory that is not valid for Arrow
            (`pyarrow.ArrowInvalid`).
    """
    return b"".join(each.octets for each, _ in BatchEncoder(options).encode(messages))


@takes(EncodingOptions)
class StreamWriter:
    """Writes messages to a file of frames, and an index with the offset and time of each.

    Args:
        file: the file of frames, which `read_stream` reads: a path or binary file object.
        index: the index, an Arrow IPC file of `offset`, `length` and `ts_ns`, one row a message in order:
            a path or binary file object; None for the path of the file with ``.index.arrow`` behind it.
        options: those of `EncodingOptions`.

    Close it, or use it in a ``with`` statement: the index is complete only then. File objects stay open.

    Raises:
        OSError: a file cannot be written.
        TypeError, ValueError: an option that cannot be; a file object without one for the index.
    """

    def __init__(
        self,
        file: str | os.PathLike[str] | BinaryIO,
        index: str | os.PathLike[str] | BinaryIO | None = None,
        **options: Unpack[EncodingOptions],
    ) -> None:
        self._encoder = BatchEncoder(options)
        path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
        if index is None:
            if path is None:
                raise ValueError("a file object has no name for the index: give one for it, too")
            index = f"{path}.index.arrow"
        self._own = None if path is None else open(path, "wb")  # noqa: SIM115  # closed by `close`
        self._file: Any = self._own or file
        try:
            target = os.fspath(index) if isinstance(index, (str, os.PathLike)) else index
            self._index = pa.ipc.new_file(target, _INDEX_SCHEMA)
        except BaseException:
            self._close_own()
            raise
        self._offset = 0

    def write(self, messages: Any) -> int:
        """Add messages, see `encode_messages`; returns their number.

        A batch with a refused row is not written at all.
        """
        import pyarrow.compute as pc  # takes a third of the time of importing Arrow; few need it

        count = 0
        for encoded, batch in self._encoder.encode(messages):
            ends = int64s(encoded.ends)
            starts = pa.concat_arrays([pa.array([0], pa.int64()), ends])[:-1]
            arrays = [pc.add(starts, self._offset), pc.subtract(ends, starts), _times(batch, encoded)]
            self._file.write(encoded.octets)
            self._index.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_INDEX_SCHEMA))
            self._offset += len(encoded.octets)
            count += len(ends)
        return count

    def close(self) -> None:
        """End both files."""
        self._index.close()
        self._close_own()

    def _close_own(self) -> None:
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BatchEncoder:
    """Encodes messages in columns, and keeps what it has learnt of their columns for the next ones.

    Args:
        options: how to write.
    """

    def __init__(self, options: EncodingOptions) -> None:
        self._codec = module(options["dialect"])
        self._wanted = table_columns("messages", (self._codec,))
        self._frame_max, self._skip = options["frame_max"], options["skip_incomplete"]
        self._kept: dict[tuple[Column, ...], Any] = {}  # an encoder that is not in use, by its columns

    def encode(self, messages: Any) -> Iterator[tuple[Encoded, pa.RecordBatch]]:
        """The frames of each batch, with the batch; errors are those of `encode_messages`."""
        first = 0
        batches = _batches(messages)
        if batches:
            check_names(batches[0].schema, self._wanted)
        for batch in batches:
            names = frozenset(batch.schema.names)
            taken = [taken_from(batch, column) for column in self._wanted if column.name in names]
            columns = tuple(column for column, _ in taken)
            memory = tuple(memory_of(column, array) for column, array in taken)
            # Taken out while it works without the global lock: a second thread makes one of its own.
            encoder = self._kept.pop(columns, None) or self._new(columns)
            encoded = encoder.encode(Batch(batch.num_rows, memory), first)
            self._kept = {columns: encoder}
            yield encoded, batch
            first += batch.num_rows

    def _new(self, columns: tuple[Column, ...]) -> Any:
        return _MessageEncoder(columns, self._codec, frame_max=self._frame_max, skip_incomplete=self._skip)


def _batches(messages: Any) -> list[pa.RecordBatch]:
    if isinstance(messages, pa.RecordBatch):
        batches = [messages]
    else:
        table = messages if isinstance(messages, pa.Table) else pa.table(messages)
        batches = table.to_batches()
    for batch in batches:
        batch.validate()  # pyarrow does not do so, and follows invalid offsets
    return batches


def check_names(fields: Iterable[pa.Field], columns: Sequence[Column], within: str = "") -> None:
    """Refuse a name that is almost that of a missing column, which would take its default without a word.

    Args:
        fields: a schema, or a type of structs.
        columns: those that there may be.
        within: what stands before names in an error.

    Raises:
        EncodeError: the name, and the one that is missing.
    """
    given = {field.name: field.type for field in fields}
    missing = [column.name for column in columns if column.name not in given]
    for name in sorted(given.keys() - {column.name for column in columns}):
        if found := nearest(name, missing, _LEAST_LIKENESS):
            raise EncodeError(f"no such column; the nearest is {found!r}", f"{within}{name}")
    for column in columns:
        kind = given.get(column.name)
        if column.children and kind is not None and pa.types.is_struct(kind):
            check_names(kind, column.children, f"{within}{column.name}.")


def taken_from(batch: pa.RecordBatch, column: Column) -> tuple[Column, pa.Array]:
    """A column of a batch in the type of the table; see `conforming`. The batch must have the column.

    Raises:
        EncodeError: the column is of another kind.
    """
    try:
        return conforming(column, batch.column(column.name))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise EncodeError(f"not a column of {column.kind}: {error}", column.name) from error


def int64s(numbers: array[int]) -> pa.Array:
    """Numbers of 64 bits as an Arrow array over the same memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _times(batch: pa.RecordBatch, encoded: Encoded) -> pa.Array:
    """The times of the messages written, null for a batch without them."""
    if TIME.name not in batch.schema.names:
        return pa.nulls(len(encoded.rows), pa.int64())
    return taken_from(batch, TIME)[1].take(int64s(encoded.rows))
