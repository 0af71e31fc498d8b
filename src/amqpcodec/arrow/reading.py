"""Files to record batches: captures, and the octets of one direction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa

from .. import Limits, _backend
from .._columns.build import open_feeder
from .._columns.decoding import OCTETS, ROWS, Decoding
from .._columns.feeder_py import Feeder
from .._columns.packets_py import PacketFeeder
from .._columns.tables import stream_table
from .._columns.text import clean
from ..capture import (
    AMQP_PORT,
    CLIENT_TO_SERVER,
    FLOW_TIMEOUT,
    MAX_FRAME,
    WINDOW_OCTETS,
    WINDOW_SEGMENTS,
    ByteSource,
    Source,
    raw_events,
)
from ..errors import AmqpError
from .decoding import DIALECT
from .layout import record_batch, schema_of

# Feeds all that is in a file, and stops now and then, for full batches to be taken.
_Feeder = Feeder | PacketFeeder
_Feed = Callable[[ByteSource, _Feeder], Iterator[None]]


class CaptureReader:
    """The record batches of files, read as they are asked for; made by `read_capture` and `read_stream`.

    Iterating reads the files from their beginning; each gives batches of its own. Polars, DuckDB, pandas
    and whatever else knows the Arrow PyCapsule protocol take it as a stream.

    Attributes:
        schema: that of every batch.
        faults: how many faults and rows in error there were in what has been read since the last iteration
            began, by code: GAP, LOST, FILE, the codes of `_error`, and INCOMPLETE for messages that are not
            whole though nothing is wrong with them. Rows that the mode leaves out count as well.

    Iterating raises, behind the rows in front of the fault:
        CaptureError: a file is no capture, or is damaged before its first packet.
        DecodeError: in mode ``"fail"``, the error of a row.
        OSError: a file cannot be opened or read.
    """

    def __init__(
        self,
        files: Source | Iterable[Source],
        table: str,
        feed: _Feed,
        columns: Iterable[str] | None,
        decoding: Decoding,
    ) -> None:
        single = isinstance(files, (str, os.PathLike, ByteSource)) or hasattr(files, "read")
        self._files: tuple[Any, ...] = (files,) if single else tuple(files)  # type: ignore[arg-type]
        self._table = table
        self._feed = feed
        self._columns = decoding.columns(table, columns)
        self._decoding = decoding
        self.schema: pa.Schema = schema_of(self._columns)
        self.faults: dict[str, int] = {}
        open_feeder(table, self._columns, decoding)  # complain now about what cannot be read

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.faults = {}
        for file in self._files:
            if isinstance(file, ByteSource):
                yield from self._read(file, None)
            else:
                with ByteSource(file) as source:
                    yield from self._read(source, name_of(file))

    def reader(self) -> pa.RecordBatchReader:
        """The same as pyarrow's own kind of stream."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def _read(self, source: ByteSource, name: str | None) -> Iterator[pa.RecordBatch]:
        sink, feeder = open_feeder(self._table, self._columns, self._decoding, file=name, faults=self.faults)

        def batches(final: bool) -> Iterator[pa.RecordBatch]:
            return (record_batch(self.schema, batch) for batch in sink.batches(final))

        try:
            for _ in self._feed(source, feeder):
                yield from batches(final=False)
        except (AmqpError, OSError):
            yield from batches(final=True)
            raise
        yield from batches(final=True)


def read_capture(
    files: Source | Iterable[Source],
    table: str = "messages",
    *,
    columns: Iterable[str] | None = None,
    port: int | Iterable[int] | None = AMQP_PORT,
    dialect: str | ModuleType = "auto",
    mode: str = "permissive",
    checks: bool = False,
    rows: int = ROWS,
    octets: int = OCTETS,
    credentials: bool = False,
    max_frame: int = MAX_FRAME,
    limits: Limits | None = None,
    window_octets: int = WINDOW_OCTETS,
    window_segments: int = WINDOW_SEGMENTS,
    flow_timeout: float = FLOW_TIMEOUT,
    impl: str = _backend.IMPL,
) -> CaptureReader:
    """A table of what is in captures.

    Args:
        files: a path or binary file object of a pcap or pcapng file, or either in gzip or Zstandard; or
            several.
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"``, ``"errors"`` or ``"packets"``.
        columns, dialect, mode, rows, octets, credentials, max_frame, limits: as for `BatchDecoder`;
            with the dialect ``"auto"`` the columns are those of all five.
        checks: whether to look for errors in values that no column shows, too, so that `faults` does not
            depend on the columns. It is done anyway for `_error`, and in modes other than permissive.
        port, window_octets, window_segments, flow_timeout: as for `amqpcodec.capture.read_frames`.
        impl: the build that reads, ``"c"`` or ``"py"``.

    Raises:
        ValueError: no such table, column, dialect or mode; `payload` of ``"packets"`` without `credentials`.
    """
    ports = ports_of(port)
    decoding = Decoding(
        dialect=dialect, mode=mode, checks=checks, rows=rows, octets=octets, credentials=credentials,
        max_frame=max_frame, limits=limits or Limits(), report_foreign=ports is not None, impl=impl,
    )  # fmt: skip
    options: dict[str, Any] = {
        "ports": ports,
        "window_octets": window_octets,
        "window_segments": window_segments,
        "flow_timeout": flow_timeout,
    }
    build = _backend.load("amqpcodec._columns.capture", impl)

    def feed(source: ByteSource, feeder: _Feeder) -> Iterator[None]:
        fed: Iterator[None] = build.feed_capture(source, feeder, **options)
        return fed

    return CaptureReader(files, table, feed, columns, decoding)


def read_stream(
    files: Source | Iterable[Source],
    table: str = "messages",
    *,
    columns: Iterable[str] | None = None,
    dialect: str | ModuleType = DIALECT,
    direction: int = CLIENT_TO_SERVER,
    mode: str = "permissive",
    checks: bool = False,
    rows: int = ROWS,
    octets: int = OCTETS,
    credentials: bool = False,
    max_frame: int = MAX_FRAME,
    limits: Limits | None = None,
) -> CaptureReader:
    """A table of what is in files that hold the octets of one direction and nothing else.

    Arguments and errors are those of `read_capture` and `BatchDecoder`; there is no table ``"packets"``.
    """

    def feed(source: ByteSource, feeder: _Feeder) -> Iterator[None]:
        for event in raw_events(source, direction):
            feeder.feed(event)
            yield

    decoding = Decoding(
        dialect=dialect, mode=mode, checks=checks, rows=rows, octets=octets, credentials=credentials,
        max_frame=max_frame, limits=limits or Limits(),
    )  # fmt: skip
    return CaptureReader(files, stream_table(table), feed, columns, decoding)


def ports_of(port: int | Iterable[int] | None) -> list[int] | None:
    """The ports asked for, each once and in ascending order; None for every port."""
    return [port] if isinstance(port, int) else None if port is None else sorted(set(port))


def name_of(file: object) -> str | None:
    """What the column `file` calls a file: its path, None where there is none."""
    return clean(os.fsdecode(file)) if isinstance(file, (str, os.PathLike)) else None
