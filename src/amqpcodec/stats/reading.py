"""A file to the rows of several tables, read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

import pyarrow as pa

from .._columns.build import make_sink, open_feeder
from .._columns.decoding import Decoding
from .._columns.delivery_sink import DeliverySink
from .._columns.feeder_py import Feeder
from .._columns.following_py import Message
from .._columns.packet_feeder_py import PacketFeeder
from .._columns.sinks import ErrorSink, Sink
from .._options import resolve, select
from ..arrow.arrays import record_batch, schema_of
from ..capture import ByteSource, Event, Fault, StreamTracker, raw_events, read_events
from ..errors import AmqpError
from ..options import AllCaptureOptions, AllStreamOptions, TrackingOptions

_CHUNK = 256  # events that one table after the other takes
_MOST_CHUNKS = 1000  # until there are rows, however few
_MOST_ENDED = 5000  # connections with a row: much more is kept of each until the row is taken
_FULL = {"batch_rows": 10_000, "_batch_bytes": 4 << 20}


class Stretch(NamedTuple):
    """The next stretch of a file.

    Attributes:
        events: the next ones of its connections.
        rows: batches of all tables by name, of the same stretch of the file; empty if there are none yet.
    """

    events: Sequence[Event | Fault]
    rows: dict[str, list[pa.RecordBatch]]


class _Table:
    """The batches of a table."""

    def __init__(self, sink: Sink, feeder: Feeder | PacketFeeder | None, columns: Any) -> None:
        self.sink, self.feeder = sink, feeder
        self._schema = schema_of(columns)
        self._full: list[pa.RecordBatch] = []

    def is_full(self) -> bool:
        """Return whether there is a full batch, or as many connections have ended."""
        self._full += self._batches(final=False)
        ended = self.sink.store.rows if self.sink.table == "connections" else 0
        return bool(self._full) or ended >= _MOST_ENDED

    def take(self) -> list[pa.RecordBatch]:
        """All rows so far."""
        taken, self._full = self._full + self._batches(final=True), []
        return taken

    def _batches(self, final: bool) -> list[pa.RecordBatch]:
        return [record_batch(self._schema, batch) for batch in self.sink.batches(final)]


class TableReader:
    """Reads files once each and fills the tables `connections` and `errors`, and others.

    Args:
        tables: names of columns by table.
        of_streams: whether the files hold the octets of one direction, not captures.
        options: those of `arrow.read_capture` or `arrow.read_stream`.
        depth, watch: are called as those of a `Follower`; they need the table `deliveries`.

    Attributes:
        tracker: has followed the connections of the last capture; None before.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """

    def __init__(
        self,
        tables: Mapping[str, Sequence[str]],
        of_streams: bool,
        options: Mapping[str, Any],
        *,
        depth: Callable[[str | None, int], None] | None = None,
        watch: Callable[[Message, bool, int], None] | None = None,
    ) -> None:
        self._depth, self._watch = depth, watch
        self.tracker: StreamTracker | None = None
        known = AllStreamOptions if of_streams else AllCaptureOptions
        resolved = resolve(known, {**select(known, options), **_FULL})
        foreign = of_streams or resolved["port"] is not None
        self._decoding = Decoding.of(resolved, report_foreign=foreign)
        self._columns = {table: self._decoding.columns(table, names) for table, names in tables.items()}
        self._events = (
            partial(raw_events, direction=resolved["direction"])
            if of_streams
            else partial(self._capture_events, select(TrackingOptions, resolved))
        )

    def read(self, file: Any) -> Iterator[Stretch]:
        """The parts of a file, in their order; the last one has the remaining rows.

        Raises:
            CaptureError, OSError: as `arrow.read_capture` does, behind the rows before the fault.
        """
        tables = self._open()
        feeders = [table.feeder for table in tables.values() if table.feeder is not None]
        with ByteSource(file) as source:
            events = self._events(source)
            failure: Exception | None = None
            for number in count(1):
                chunk: list[Event | Fault] = []
                try:
                    chunk.extend(islice(events, _CHUNK))
                except (AmqpError, OSError) as error:
                    failure = error
                if not chunk:
                    break
                for feeder in feeders:
                    deque(map(feeder.feed, chunk), maxlen=0)
                full = any(table.is_full() for table in tables.values())
                yield Stretch(chunk, _taken(tables) if full or number % _MOST_CHUNKS == 0 else {})
                if failure is not None:
                    break
        yield Stretch((), _taken(tables))
        if failure is not None:
            raise failure

    def _capture_events(self, tracking: Mapping[str, Any], source: ByteSource) -> Iterator[Event | Fault]:
        self.tracker = StreamTracker(**tracking)
        return read_events(source, self.tracker)

    def _open(self) -> dict[str, _Table]:
        """The tables, without rows."""
        columns, decoding = self._columns, self._decoding
        errors = make_sink("errors", columns["errors"], decoding)
        assert isinstance(errors, ErrorSink)
        tables = {"errors": _Table(errors, None, columns["errors"])}
        for name in columns:
            if name == "errors":
                continue
            kept: dict[str, Any] = {"errors": errors} if name == "connections" else {}
            sink, feeder = open_feeder(name, columns[name], decoding, **kept)
            if isinstance(sink, DeliverySink):
                sink.follower.depth, sink.follower.watch = self._depth, self._watch
            tables[name] = _Table(sink, feeder, columns[name])
        return tables


def _taken(tables: Mapping[str, _Table]) -> dict[str, list[pa.RecordBatch]]:
    return {name: table.take() for name, table in tables.items()}
