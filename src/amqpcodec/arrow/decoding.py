"""Streams of frames to record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from .. import DecoderInUseError
from .._columns.build import open_feeder
from .._columns.decoding import Decoding
from .._columns.schemas import stream_table
from .._kernel.lock_py import Lock
from .._options import takes
from ..capture import Close, Connection, Data, Event
from ..options import DIALECT, AllColumnOptions, AllStreamOptions, ColumnOptions, StreamOptions
from .arrays import empty, record_batch, schema_of

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What one batch can hold: the offsets of a column of text or octets have 31 bits, and a value in a map may
# be longer as text than it was on the wire.
_WHOLE_ROWS = 2**31 - 1
_WHOLE_BYTES = 1 << 30


@takes(AllStreamOptions, dialect=DIALECT)
class BatchDecoder:
    """Decodes the octets of one direction, fed as they come, to record batches of bounded size.

    The stream begins with a frame or a protocol header. Octets that belong to no frame, as at the end of a
    stream that is cut, are a row of `errors`. In tables with `_error` they are a row with LOST.

    Args:
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"`` or ``"errors"``.
        options: those of `StreamOptions`.

    Attributes:
        schema: that of every batch.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """

    def __init__(self, table: str, **options: Unpack[StreamOptions]) -> None:
        decoding = Decoding.of(options, from_start=True)
        wanted = decoding.columns(stream_table(table), options["columns"])
        self.schema: pa.Schema = schema_of(wanted)
        self._sink, self._feeder = open_feeder(table, wanted, decoding)
        self._connection = Connection(0, None, None)
        self._direction = options["direction"]
        self._offset = 0
        self._ended = ""  # why no more octets are taken
        self._finished = False
        self._lock = Lock()

    def feed(self, octets: ReadableBuffer) -> list[pa.RecordBatch]:
        """Decode octets, cut anywhere; returns the batches that are now full.

        Raises:
            DecodeError: in mode ``"fail"``, at the first row in error; its offset is that in the stream.
                `finish` returns the rows before it.
            DecoderInUseError: called while the decoder is decoding.
            ValueError: after `finish`, or after an error.
        """
        # Before the lock is acquired, since octets may be had from a caller's code that feeds this decoder.
        data = octets if type(octets) is bytes else memoryview(octets).tobytes()
        lock = self._lock  # see `Lock.reclaim`
        if not lock.acquire():
            self._give_up(lock.reclaim())
        try:
            if self._ended:
                raise ValueError(self._ended)
            self._give(Data(self._connection, self._direction, self._offset, data, None, None))
            self._offset += len(data)
            return self._batches(final=False)
        finally:
            lock.release()

    def finish(self) -> list[pa.RecordBatch]:
        """End the stream; returns the remaining rows, after an error those before it.

        Raises:
            DecodeError, DecoderInUseError: as `feed`.
            ValueError: called twice.
        """
        lock = self._lock  # see `Lock.reclaim`
        if not lock.acquire():
            self._give_up(lock.reclaim())
        try:
            if self._finished:
                raise ValueError(self._ended)
            if not self._ended:
                for direction, end in ((self._direction, self._offset), (1 - self._direction, 0)):
                    self._give(Close(self._connection, direction, end, None, None))
                self._ended = "the stream was finished"
            self._finished = True
            return self._batches(final=True)
        finally:
            lock.release()

    def __reduce__(self) -> Any:
        raise TypeError("a decoder cannot be copied or pickled: it stands in the middle of a stream")

    def _give_up(self, taken_over: bool) -> None:
        """Columns are filled without the global lock: a second thread in them would corrupt memory.

        After an interrupted call the state is unknown, so the decoder accepts nothing further.
        """
        if not taken_over:
            raise DecoderInUseError("this decoder is decoding: feed it from one place at a time")
        self._ended = self._ended or "an interrupt ended the stream"

    def _give(self, event: Event) -> None:
        """Feed an event. After an error the state is unknown, so the decoder accepts nothing further."""
        try:
            self._feeder.feed(event)
        except BaseException as error:
            self._ended = f"an error ended the stream: {error}"
            raise

    def _batches(self, final: bool) -> list[pa.RecordBatch]:
        return [record_batch(self.schema, batch) for batch in self._sink.batches(final)]


@takes(AllColumnOptions, dialect=DIALECT)
def decode_frames(octets: ReadableBuffer, **options: Unpack[ColumnOptions]) -> pa.RecordBatch:
    """One row for each frame in a stream: its envelope, ids and offset.

    Args:
        octets: bytes-like: a contiguous stream of frames of one direction.
        options: those of `ColumnOptions`.

    Returns:
        All rows in one batch.

    Raises:
        DecodeError: in mode ``"fail"``, at the first row in error.
        TypeError, ValueError: no such column; an option that cannot be; more than one batch can hold (1 GiB
            of frames).
    """
    return _whole("frames", octets, options)


@takes(AllColumnOptions, dialect=DIALECT)
def decode_methods(octets: ReadableBuffer, **options: Unpack[ColumnOptions]) -> pa.RecordBatch:
    """One row for each method in a stream, with its arguments; see `decode_frames`.

    Args:
        octets: bytes-like: a contiguous stream of frames of one direction.
        options: those of `ColumnOptions`.
    """
    return _whole("methods", octets, options)


@takes(AllColumnOptions, dialect=DIALECT)
def decode_messages(octets: ReadableBuffer, **options: Unpack[ColumnOptions]) -> pa.RecordBatch:
    """One row for each message in a stream: method, properties, headers, body; see `decode_frames`.

    Args:
        octets: bytes-like: a contiguous stream of frames of one direction.
        options: those of `ColumnOptions`.
    """
    return _whole("messages", octets, options)


def _whole(table: str, octets: ReadableBuffer, options: ColumnOptions) -> pa.RecordBatch:
    whole: dict[str, Any] = {**options, "batch_rows": _WHOLE_ROWS, "_batch_bytes": _WHOLE_BYTES}
    decoder = BatchDecoder(table, **whole)
    batches = decoder.feed(octets) + decoder.finish()
    if len(batches) > 1:
        raise ValueError(f"more than {_WHOLE_BYTES} octets of frames in one batch: use BatchDecoder")
    return batches[0] if batches else empty(decoder.schema)
