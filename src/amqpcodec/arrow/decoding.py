"""Streams of frames to record batches."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .. import DecoderInUseError, Limits
from .._columns.build import open_feeder
from .._columns.decoding import OCTETS, ROWS, Decoding
from .._columns.tables import stream_table
from .._kernel.turn_py import Turn
from ..capture import CLIENT_TO_SERVER, MAX_FRAME, Close, Connection, Data, Event
from .layout import empty, record_batch, schema_of

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

DIALECT = "rabbitmq-0-9-1"
# What one batch can hold: the offsets of a column of text or octets have 31 bits, and a value in a map may
# be longer as text than it was on the wire.
_WHOLE_ROWS = 2**31 - 1
_WHOLE_OCTETS = 1 << 30


class BatchDecoder:
    """The octets of one direction, fed as they come, to record batches of bounded size.

    The first octet is that of a frame or a protocol header. Octets that belong to no frame, as at the end of
    a stream that is cut, are a row of `errors`, and one with LOST in `_error` in the tables that have it.

    Args:
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"`` or ``"errors"``.
        columns: names of the columns wanted, in that order, see `schema`; None for all but the optional ones.
        dialect: a dialect's name, the module of a foreign one, or ``"auto"``: the stream tells.
        direction: what the column `direction` says: 0 client to server, 1 server to client.
        mode: what becomes of rows in error: ``"permissive"`` keeps them, ``"drop"`` leaves them out,
            ``"fail"`` raises.
        rows: rows of a full batch.
        octets: octets of frames that make a batch full however few its rows.
        credentials: whether to show login data.
        max_frame: octets of the largest frame accepted.
        limits: `body_size` and `open_messages` count here.

    Attributes:
        schema: that of every batch.

    Raises:
        ValueError: no such table, column, dialect or mode.
    """

    def __init__(
        self,
        table: str,
        *,
        columns: Iterable[str] | None = None,
        dialect: str | ModuleType = DIALECT,
        direction: int = CLIENT_TO_SERVER,
        mode: str = "permissive",
        rows: int = ROWS,
        octets: int = OCTETS,
        credentials: bool = False,
        max_frame: int = MAX_FRAME,
        limits: Limits | None = None,
    ) -> None:
        if direction not in (0, 1):
            raise ValueError(f"direction must be 0 or 1, not {direction!r}")
        decoding = Decoding(
            dialect=dialect, mode=mode, rows=rows, octets=octets, credentials=credentials,
            max_frame=max_frame, limits=limits or Limits(), from_start=True,
        )  # fmt: skip
        wanted = decoding.columns(stream_table(table), columns)
        self.schema: pa.Schema = schema_of(wanted)
        self._sink, self._feeder = open_feeder(table, wanted, decoding)
        self._connection = Connection(0, None, None)
        self._direction = direction
        self._offset = 0
        self._ended = ""  # why no more octets are taken
        self._finished = False
        self._turn = Turn()

    def feed(self, octets: ReadableBuffer) -> list[pa.RecordBatch]:
        """Take octets, cut anywhere, and give the batches that are full now.

        Raises:
            DecodeError: in mode ``"fail"``, at the first row in error; its offset is that in the stream.
                `finish` gives the rows before it.
            DecoderInUseError: called while the decoder is decoding.
            ValueError: after `finish`, or after an error.
        """
        # Before the turn is taken, since octets may be had from a caller's code that feeds this decoder.
        data = octets if type(octets) is bytes else memoryview(octets).tobytes()
        turn = self._turn  # see `Turn.take_over`
        if not turn.take():
            self._give_up(turn.take_over())
        try:
            if self._ended:
                raise ValueError(self._ended)
            self._give(Data(self._connection, self._direction, self._offset, data, None, None))
            self._offset += len(data)
            return self._batches(final=False)
        finally:
            turn.end()

    def finish(self) -> list[pa.RecordBatch]:
        """No more octets will come: give what is left; after an error, the rows before it.

        Raises:
            DecodeError, DecoderInUseError: as `feed`.
            ValueError: called twice.
        """
        turn = self._turn  # see `Turn.take_over`
        if not turn.take():
            self._give_up(turn.take_over())
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
            turn.end()

    def __reduce__(self) -> Any:
        raise TypeError("a decoder cannot be copied or pickled: it stands in the middle of a stream")

    def _give_up(self, taken_over: bool) -> None:
        """Columns are filled without the global lock: a second thread in them would corrupt memory.

        After a call that was broken off nobody knows what is half done: nothing further is taken.
        """
        if not taken_over:
            raise DecoderInUseError("this decoder is decoding: feed it from one place at a time")
        self._ended = self._ended or "an interrupt ended the stream"

    def _give(self, event: Event) -> None:
        """Feed an event. After an error nobody knows what is half done: nothing further is taken."""
        try:
            self._feeder.feed(event)
        except BaseException as error:
            self._ended = f"an error ended the stream: {error}"
            raise

    def _batches(self, final: bool) -> list[pa.RecordBatch]:
        return [record_batch(self.schema, batch) for batch in self._sink.batches(final)]


def decode_frames(octets: ReadableBuffer, **options: Any) -> pa.RecordBatch:
    """One row for each frame in a stream: its envelope and ids, and where it lies.

    Args:
        octets: bytes-like: a contiguous stream of frames of one direction.
        options: `columns`, `dialect`, `direction`, `mode`, `credentials`, `max_frame` and `limits` of
            `BatchDecoder`.

    Returns:
        All rows in one batch.

    Raises:
        DecodeError: in mode ``"fail"``, at the first row in error.
        ValueError: no such column, dialect or mode, or more than one batch can hold (1 GiB of frames).
    """
    return _whole("frames", octets, options)


def decode_methods(octets: ReadableBuffer, **options: Any) -> pa.RecordBatch:
    """One row for each method in a stream, with its arguments; see `decode_frames`."""
    return _whole("methods", octets, options)


def decode_messages(octets: ReadableBuffer, **options: Any) -> pa.RecordBatch:
    """One row for each message in a stream: method, properties, headers, body; see `decode_frames`."""
    return _whole("messages", octets, options)


def _whole(table: str, octets: ReadableBuffer, options: dict[str, Any]) -> pa.RecordBatch:
    decoder = BatchDecoder(table, rows=_WHOLE_ROWS, octets=_WHOLE_OCTETS, **options)
    batches = decoder.feed(octets) + decoder.finish()
    if len(batches) > 1:
        raise ValueError(f"more than {_WHOLE_OCTETS} octets of frames in one batch: use BatchDecoder")
    return batches[0] if batches else empty(decoder.schema)
