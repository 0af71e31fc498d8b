"""Files to record batches: captures, and the octets of one direction."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

import pyarrow as pa

from .. import _backend
from .._columns.build import open_feeder
from .._columns.decoding import Decoding
from .._columns.feeder_py import Feeder
from .._columns.packet_feeder_py import PacketFeeder
from .._columns.schemas import stream_table
from .._columns.text import clean
from .._options import select, takes
from ..capture import ByteSource, raw_events
from ..capture.source import Source, each_of
from ..errors import AmqpError
from ..options import (
    DIALECT,
    AllCaptureOptions,
    AllStreamOptions,
    CaptureOptions,
    StreamOptions,
    TrackingOptions,
)
from .arrays import record_batch, schema_of

# Feeds a whole file, and yields now and then, so that full batches can be taken.
_Feeder = Feeder | PacketFeeder
_Feed = Callable[[ByteSource, _Feeder], Iterator[None]]


class CaptureReader:
    """The record batches of files, read on demand; `read_capture` and `read_stream` return it.

    Iterating reads the files from their beginning; each has batches of its own. Polars, DuckDB, pandas and
    other libraries with the Arrow PyCapsule protocol accept it as a stream.

    Attributes:
        schema: that of every batch.
        faults: number of faults and rows in error since the last iteration began, by code: GAP, LOST, FILE,
            the codes of `_error`, and INCOMPLETE for messages that are cut though nothing is wrong with them.
            Rows that the mode leaves out count as well.

    Iterating raises, after the rows before the fault:
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
        self._files = tuple(each_of(files))
        self._table = table
        self._feed = feed
        self._columns = decoding.columns(table, columns)
        self._decoding = decoding
        self.schema: pa.Schema = schema_of(self._columns)
        self.faults: dict[str, int] = {}
        open_feeder(table, self._columns, decoding)  # raise now if an argument is invalid

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.faults = {}
        for file in self._files:
            if isinstance(file, ByteSource):
                yield from self._read(file, None)
            else:
                with ByteSource(file) as source:
                    yield from self._read(source, name_of(file))

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches as a `pyarrow.RecordBatchReader`."""
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


@takes(AllCaptureOptions)
def read_capture(
    files: Source | Iterable[Source], table: str = "messages", **options: Unpack[CaptureOptions]
) -> CaptureReader:
    """A table of the contents of captures.

    Args:
        files: a path or binary file object of a pcap or pcapng file, or either in gzip or Zstandard; or
            several.
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"``, ``"errors"``,
            ``"deliveries"`` or ``"packets"``.
        options: those of `CaptureOptions`. With the dialect "auto" the columns are those of all dialects.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be; `payload` of ``"packets"``
            without `include_credentials`.
    """
    decoding = Decoding.of(options, report_foreign=options["port"] is not None)
    tracking = select(TrackingOptions, options)
    build = _backend.load("amqpcodec._columns.feeder", decoding.impl)

    def feed(source: ByteSource, feeder: _Feeder) -> Iterator[None]:
        fed: Iterator[None] = build.feed_capture(source, feeder, **tracking)
        return fed

    return CaptureReader(files, table, feed, options["columns"], decoding)


@takes(AllStreamOptions, dialect=DIALECT)
def read_stream(
    files: Source | Iterable[Source], table: str = "messages", **options: Unpack[StreamOptions]
) -> CaptureReader:
    """A table of the contents of files that hold only the octets of one direction.

    Args:
        files: a path or binary file object, as it is or in gzip or Zstandard; or several.
        table: ``"frames"``, ``"methods"``, ``"messages"``, ``"connections"`` or ``"errors"``.
        options: those of `StreamOptions`.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """

    def feed(source: ByteSource, feeder: _Feeder) -> Iterator[None]:
        for event in raw_events(source, options["direction"]):
            feeder.feed(event)
            yield

    return CaptureReader(files, stream_table(table), feed, options["columns"], Decoding.of(options))


def name_of(file: object) -> str | None:
    """The name of a file in the column `file`: its path, or None."""
    return clean(os.fsdecode(file)) if isinstance(file, (str, os.PathLike)) else None
