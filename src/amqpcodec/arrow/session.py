"""Capture files as one recording, read in parts: a session can be suspended and continued elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, BinaryIO, Unpack

import pyarrow as pa

from .. import _backend
from .._columns.build import open_feeder
from .._columns.decoding import Decoding
from .._columns.schemas import WAITS
from .._columns.text import clean
from .._options import select, takes
from .._state import Fields, pack, unpack
from ..capture import ByteSource, CaptureError
from ..capture.dialects import module
from ..capture.position import FilePosition
from ..capture.source import Source
from ..errors import AmqpError
from ..options import AllCaptureOptions, CaptureOptions, TrackingOptions
from .arrays import record_batch, schema_of
from .reading import name_of

Opener = Callable[[], BinaryIO]  # of a file that is opened when it is read
# Arguments of `CaptureSession.read`.
ReadArguments = (
    tuple[Source | Opener | None]
    | tuple[Source | Opener | None, str | None]
    | tuple[Source | Opener | None, str | None, int | None]
)


@takes(AllCaptureOptions)
class CaptureSession:
    """A table of the contents of capture files, all of them one recording, read part by part.

    `suspend` returns a state, with which another session continues in another process or on another day. The
    rows of such sessions together are those of a single one. For a single file they are those of
    `read_capture`. Connections continue from file to file, and `flow` counts over the whole recording.

    Args:
        table: as for `read_capture`.
        state: a result of `suspend`; None to begin a recording. Table, dialect, the options of
            `TrackingOptions` and those with `max` in their names have to be the same. Columns, mode and build
            may differ.
        options: those of `CaptureOptions`. Without columns, batches have only a number of rows.

    Attributes:
        schema: that of every batch.
        faults: as for `CaptureReader`, counted by this session.
        tracker: follows the connections, see `capture.StreamTracker`.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be; a state that is damaged, or
            was made with other options, or has a form that this version of the library does not read.
    """

    def __init__(
        self, table: str = "messages", *, state: bytes | None = None, **options: Unpack[CaptureOptions]
    ) -> None:
        decoding = Decoding.of(options, report_foreign=options["port"] is not None)
        wanted = decoding.columns(table, options["columns"])
        self.schema: pa.Schema = schema_of(wanted)
        self.faults: dict[str, int] = {}
        self._sink, self._feeder = open_feeder(table, wanted, decoding, faults=self.faults)
        streams = _backend.load("amqpcodec.capture.streams", decoding.impl)
        self.tracker = streams.StreamTracker(**select(TrackingOptions, options))
        self._read_part = _backend.load("amqpcodec._columns.feeder", decoding.impl).feed_part
        self._position: FilePosition | None = None  # None between two files
        self._before = 0  # packets of the files before
        self._closed = ""  # why no method can be called any more
        # What a state depends on.
        self._terms: list[tuple[str, Any]] = [
            ("table", table),
            ("dialect", "auto" if decoding.dialect == "auto" else module(decoding.dialect).DIALECT.name),
            ("port", options["port"]),
            ("frame_max", decoding.frame_max),
            ("max_open_messages", decoding.max_open_messages),
            ("max_body_bytes", decoding.max_body_bytes),
            ("out_of_order_bytes", options["out_of_order_bytes"]),
            ("out_of_order_segments", options["out_of_order_segments"]),
            ("flow_timeout", str(options["flow_timeout"])),
            ("copies", options["copies"]),
        ]
        if state is not None:
            self._restore(unpack(state))

    def read(
        self, file: Source | Opener | None, name: str | None = None, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the next file, or of the rest of the current one, read on demand.

        A file that was read up to an `end` has to be passed again until it is read without one, even if
        nothing of it is left. Then the next file begins. The file may grow in between.

        Args:
            file: a path or binary file object of a pcap or pcapng file, or either in gzip or Zstandard, at
                its start; or a function that opens it, after which it is closed. The part that was read
                before is skipped by seeking, or by uncompressing it. None where the current file is not there
                any more: it ends where reading stands.
            name: of the file for the column `file`, as it begins, and for notes of errors; the path if there
                is one.
            end: only records that end by this byte of the (uncompressed) file are read; None for all.

        Yields:
            Full batches, and at the end one with the remaining rows.

        Raises:
            CaptureError: the file is no capture, or is damaged before its first packet; the next may be read.
            DecodeError: in mode ``"fail"``, the error of a row.
            OSError: the file cannot be opened or read.
            ValueError: no file can have this path; it is not the file that the session was reading; the
                session is finished, or an iterator of `read` was left before its end.
        """
        named = None if file is None else name_of(file) if name is None else clean(name)
        self._begin("a read was left before its end")
        return self._left() if file is None else self._read(file, named, end)

    def suspend(self) -> bytes:
        """The state on which later rows depend; all complete rows were returned before.

        Raises:
            ValueError: the session is finished, or an iterator of `read` was left before its end.
        """
        self._check()
        packets: set[int] = set()

        def note(packet: int | None) -> int | None:
            if packet is not None:
                packets.add(packet)
            return packet

        position = [] if self._position is None else [self._position.state()]
        kept = [self.tracker.state(note), self._feeder.snapshot(note)]
        return pack([self._terms, self._before, position, self._sink.make.files.state(packets), *kept])

    def finish(self) -> Iterator[pa.RecordBatch]:
        """End the recording: the rows of everything that waits. The session cannot be used any more.

        Raises:
            DecodeError: in mode ``"fail"``, the error of a row.
            ValueError: the session is finished already, or an iterator of `read` was left before its end.
        """
        self._begin("the session is finished")
        return self._rest()

    def _begin(self, step: str) -> None:
        """Begin a call; no other one may begin until it ends."""
        self._check()
        self._closed = step

    def _check(self) -> None:
        if self._closed:
            raise ValueError(self._closed)

    def _read(self, file: Source | Opener, name: str | None, end: int | None) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            try:
                source = stack.enter_context(_opened(file))
            except (OSError, ValueError):
                self._closed = ""  # nothing has been read
                raise
            try:
                position = self._enter(source, name)
                yield from self._part(source, position, end)
            except AmqpError as error:
                if name is not None:
                    error.add_note(f"in {name!r}")
                raise

    def _left(self) -> Iterator[pa.RecordBatch]:
        """End the current file, if there is one, without looking at it."""
        if self._position is not None:
            self._position.ended = True
            yield from self._part(None, self._position, None)
        self._closed = ""

    def _enter(self, source: ByteSource, name: str | None) -> FilePosition:
        """Move a file to the position where reading continues."""
        try:
            if self._position is None:
                self._position = FilePosition.start(source)
                self._feeder.begin_file(self._before, name)
            else:
                self._position.seek(source)
        except ValueError:
            self._closed = ""
            raise
        return self._position

    def _part(
        self, source: ByteSource | None, position: FilePosition, end: int | None
    ) -> Iterator[pa.RecordBatch]:
        try:
            for _ in self._read_part(source, self._feeder, self.tracker, position, self._before, end):
                yield from self._batches()
        except CaptureError:
            # There was no packet in it.
            self._position, self._closed = None, ""
            yield from self._batches(final=True)
            raise
        except (AmqpError, OSError):
            yield from self._batches(final=True)
            raise
        if end is None:
            self._position, self._before = None, self._before + position.number
        yield from self._batches(final=True)
        self._closed = ""

    def _rest(self) -> Iterator[pa.RecordBatch]:
        try:
            for event in self.tracker.finish():
                self._feeder.feed(event)
                yield from self._batches()
        except AmqpError:
            yield from self._batches(final=True)
            raise
        yield from self._batches(final=True)

    def _batches(self, final: bool = False) -> Iterator[pa.RecordBatch]:
        return (record_batch(self.schema, batch) for batch in self._sink.batches(final))

    def _restore(self, state: Fields) -> None:
        terms = state.fields()
        for name, mine in self._terms:
            theirs = terms.fields()
            theirs.expect(name, "this is no state of a session")
            theirs.expect(mine, f"the state was made with another {name}")
            theirs.end()
        terms.end()
        self._before = state.number(0)
        for position in state.items():
            self._position = FilePosition.restored(position)
        self._sink.make.files.restore(state.items())
        flows = self.tracker.restore(state.fields())
        self._feeder.restore(state.fields(), flows)
        state.end()


@takes(AllCaptureOptions)
def scan_capture(
    parts: Iterable[Iterable[ReadArguments]],
    table: str = "messages",
    *,
    state: bytes | None = None,
    **options: Unpack[CaptureOptions],
) -> Iterator[bytes]:
    """The states between the parts of a recording, found in one pass that makes no rows.

    Args:
        parts: of the recording in order. Each is a list of arguments of `CaptureSession.read`: `(file,)`,
            `(file, name)` or `(file, name, end)`.
        table: name of the table to read.
        state: where the first part begins; None for the beginning of a recording.
        options: those of `CaptureOptions`. Of columns it counts whether one says how long messages waited.

    Yields:
        The state before each part, and last the state behind all of them. A `CaptureSession` with such a
        state returns the rows of that part. `finish` of the last one returns the rows behind all parts.

    Raises:
        CaptureError, DecodeError, OSError, ValueError: what `CaptureSession` raises.
    """
    wanted = Decoding.of(options).columns(table, options["columns"])
    unseen: Any = options | {"columns": (), "_waits": any(column in WAITS for column in wanted)}
    session = CaptureSession(table, state=state, **unseen)
    yield session.suspend()
    for part in parts:
        for file in part:
            for _ in session.read(*file):
                pass
        yield session.suspend()


@contextmanager
def _opened(file: Source | Opener) -> Iterator[ByteSource]:
    """A file while it is read; a file that was passed open stays open."""
    if isinstance(file, ByteSource):
        yield file
    elif isinstance(file, (str, os.PathLike)) or not callable(file):
        with ByteSource(file) as source:
            yield source
    else:
        with closing(file()) as opened, ByteSource(opened) as source:
            yield source
