"""Reads captures and gathers a summary, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat
from types import ModuleType
from typing import Any, Protocol, Unpack

import pyarrow as pa
from pyarrow import compute

from .. import arrow
from .._options import takes
from ..capture import StreamTracker
from ..options import StatsOptions
from .cells import cells, constant, texts
from .counters import KEYS, Largest, Tally, Timeline
from .depths import Depths
from .findings import findings, verdict
from .flows import Flows, Incidents
from .groups import Groups
from .lives import Lives
from .outcomes import Delivery, Outcomes
from .reading import TableReader
from .summary import Ending, Problem, Summary
from .watching import PEACEFUL, MethodRow, Watcher

_CONNECTION_KEYS = (
    "file", "flow", "client", "server", "dialect", "ts_first_us", "ts_last_us", "product", "version",
    "client_product", "client_version", "connection_name", "user", "vhost", "closed_by", "close_code",
    "close_text", "heartbeat",
)  # fmt: skip
# Why octets are lost that a gap has cut off from the rest of their frames.
_CUT_OFF = ("gap", "snap length")
_COUNTS = (
    "octets_sent", "octets_received", "frames_sent", "frames_received", "messages_sent", "messages_received",
    "gaps", "octets_missing", "errors",
)  # fmt: skip
_WHO = ("octets", "connections", "messages", "messages_sent", "messages_received")
_TRAFFIC = ("messages", "octets", "published", "octets_published", "delivered", "octets_delivered")
_DELIVERED = ("deliver", "get-ok")
_PROBLEM = ("code", "flow", "direction", "offset", "length", "packet", "ts_ns", "message")
_ERRORS = ("kind", *_PROBLEM, "dropped")
_CONNECTIONS = (*_CONNECTION_KEYS[1:5], "ts_first", "ts_last", *_CONNECTION_KEYS[7:], *_COUNTS)
_METHODS = ("flow", "direction", "ts_ns", "offset", "packet", "channel", "name")
_FEW_ROWS = 1000  # that are dicts at a time: those of a connection are larger than what is kept of it
_METHOD_ROW = partial(tuple.__new__, MethodRow)  # as MethodRow._make, without a step in Python


class Readable(Protocol):
    """A binary file, as far as it is needed."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; none at the end."""


@takes(StatsOptions)
class Collector:
    """Gathers a `Summary` of one file after the other.

    Args:
        options: those of `StatsOptions`.

    Raises:
        TypeError, ValueError: an option that cannot be.
    """

    def __init__(self, **options: Unpack[StatsOptions]) -> None:
        self._top = top = options["top"]
        self._arguments = _arguments(options["dialect"])
        arguments = tuple(f"args.{argument}" for argument in self._arguments)
        tables = {
            "connections": _CONNECTIONS, "errors": _ERRORS, "methods": (*_METHODS, *arguments),
            "deliveries": (*Delivery._fields, "complete"),
        }  # fmt: skip
        self._of_streams = options["input"] == "stream"
        self._depths = Depths()
        self._outcomes = Outcomes(top)
        self._reader = TableReader(
            tables, self._of_streams, options, depth=self._depths.report, watch=self._outcomes.watch
        )
        self._files: list[str] = []
        self._span: list[int] = []
        self._totals = dict.fromkeys(("connections", *_COUNTS, "octets_cut_off", "packets_dropped"), 0)
        self._connections = Largest(_CONNECTION_KEYS, ("octets", *_COUNTS), top)
        self._products = Tally(("product", "client_product"), _WHO)
        self._users = Tally(("user",), _WHO)
        self._vhosts = Tally(("vhost",), _WHO)
        self._kinds = Tally(("kind",), ("messages", "octets", "incomplete"))
        self._exchanges = Tally(("exchange",), _TRAFFIC)
        self._routing_keys = Tally(("exchange", "routing_key"), _TRAFFIC)
        self._queues = Tally(("queue",), ("messages", "octets"))
        self._timeline = Timeline()
        self._closings = Tally(("scope", "by", "reply_code", "reply_text"), ("times",))
        self._returns = Tally(("reply_code", "reply_text", "exchange", "routing_key"), ("messages",))
        self._endings: list[Ending] = []
        self._faults = Tally(("code",), ("times", "octets"))
        self._problems: list[Problem] = []
        self._settled = Tally(("method", "by"), ("times",))
        self._redelivered = Tally(("queue",), ("messages",))
        self._incidents = Incidents(top, options["copies"])
        self._lives = Lives(top)

    def add(self, file: str | os.PathLike[str] | Readable, name: str) -> bool:
        """Read a file once and add it to the summary.

        Args:
            file: a path, or a binary file; one that can seek is read from its beginning.
            name: name of the file in the summary.

        Returns:
            Whether the file contains any AMQP, even if damaged.

        Raises:
            CaptureError: the file is no capture, or is damaged before its first packet.
            OSError: the file cannot be opened or read.
        """
        _rewind(file)
        before = self._totals["connections"]
        flows = Flows(name, self._incidents, self._lives, self._of_streams)
        watcher = Watcher(
            name, flows, self._outcomes, closings=self._closings, returns=self._returns,
            settled=self._settled, endings=self._endings, top=self._top,
        )  # fmt: skip
        for part in self._reader.read(file):
            flows.see(part.events)
            if part.rows:
                self._add_rows(name, part.rows, watcher, flows)
        flows.finish()
        self._files.append(name)
        return self._totals["connections"] > before

    @property
    def tracker(self) -> StreamTracker | None:
        """Return what has followed the connections of the last capture; None before."""
        return self._reader.tracker

    def summary(self) -> Summary:
        """The summary of the files added so far."""
        whole = self._gathered(KEYS)
        found = findings(whole)
        short = self._gathered(self._top)
        return replace(short, findings=found, verdict=verdict(whole, found))

    def _gathered(self, top: int) -> Summary:
        """The numbers of the summary, with so many rows in each list."""
        exchanges = self._exchanges.ranking(top)
        return Summary(
            files=list(self._files),
            first_us=min(self._span, default=None),
            last_us=max(self._span, default=None),
            totals=dict(self._totals),
            connections=self._connections.ranking(),
            products=self._products.ranking(top),
            users=self._users.ranking(top),
            vhosts=self._vhosts.ranking(top),
            kinds=self._kinds.ranking(top),
            exchanges=exchanges,
            routing_keys=self._routing_keys.ranking(top),
            queues=self._queues.ranking(top),
            rates=self._timeline.rates(),
            confirms=self._outcomes.confirms.latency(),
            acks=self._outcomes.acks.latency(),
            waits=self._outcomes.waits.largest(top),
            by_queue=self._outcomes.queues.largest(top),
            by_consumer=self._outcomes.consumers.largest(top),
            by_publisher=self._outcomes.publishers.largest(top),
            published_by=self._outcomes.published_by(row["exchange"] for row in exchanges.rows),
            closings=self._closings.ranking(top, later=lambda key: key[2] in PEACEFUL),
            endings=list(self._endings),
            returns=self._returns.ranking(top),
            faults=self._faults.ranking(top),
            problems=list(self._problems),
            settled=self._settled.ranking(top),
            redelivered=self._redelivered.ranking(top),
            depths=self._depths.largest(top, self._published_to, self._delivered_from),
            incidents=self._incidents.counts.ranking(top),
            first_incidents=list(self._incidents.first),
            lives=self._lives.shown(),
            findings=[],
            verdict="",
        )

    def _published_to(self, queue: str) -> int:
        """Messages published to a queue by its name."""
        return self._routing_keys.count("published", ("", queue))

    def _delivered_from(self, queue: str) -> int:
        return self._queues.count("messages", (queue,))

    def _add_rows(
        self, name: str, rows: dict[str, list[pa.RecordBatch]], watcher: Watcher, flows: Flows
    ) -> None:
        """Add the rows of one stretch of a file, tables in the order in which they need each other."""
        self._add_errors(name, rows["errors"])
        for batch in rows["methods"]:
            watcher.feed(self._method_rows(batch))
        for batch in map(_with_octets, rows["deliveries"]):
            self._add_messages(batch)
            self._add_queues(batch)
            self._outcomes.add(name, batch, flows.in_tunnels)
        for row in _rows(rows["connections"]):
            flow = row["flow"]
            row["client"] = flows.in_tunnels.get(flow, row["client"])
            self._add_connection(name, row)
            by_recording = flows.end(row, watcher.end(flow))
            self._outcomes.end(row, by_recording, flows.last_ns if by_recording else flows.end_ns(flow))
        flows.forget_closed()

    def _add_errors(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        for row in _rows(batches):
            self._faults.add((row["code"],), 1, row["length"] or 0)
            self._totals["packets_dropped"] += row["dropped"] or 0
            if row["code"] == "LOST" and any(why in row["message"] for why in _CUT_OFF):
                self._totals["octets_cut_off"] += row["length"]
            if len(self._problems) < self._top:
                self._problems.append(Problem(name, *(row[column] for column in _PROBLEM)))

    def _add_connection(self, name: str, row: dict[str, Any]) -> None:
        row["file"] = name
        times = row["ts_first_us"], row["ts_last_us"] = row.pop("ts_first"), row.pop("ts_last")
        known = [*self._span, *(time for time in times if time is not None)]
        self._span = [min(known), max(known)] if known else []
        counts = [row[count] for count in _COUNTS]
        sent, received = counts[4:6]
        amounts = (sum(counts[:2]), 1, sent + received, sent, received)
        self._totals["connections"] += 1
        for count, amount in zip(_COUNTS, counts, strict=True):
            self._totals[count] += amount
        self._connections.add((row[key] for key in _CONNECTION_KEYS), (amounts[0], *counts))
        self._products.add((row["product"], row["client_product"]), *amounts)
        self._users.add((row["user"],), *amounts)
        self._vhosts.add((row["vhost"],), *amounts)

    def _method_rows(self, batch: pa.RecordBatch) -> Iterator[MethodRow]:
        columns = {name: batch.column(name) for name in _METHODS}
        columns.update(zip(self._arguments, batch.column("args").flatten(), strict=True))
        lists = (cells(columns[name]) if name in columns else repeat(None) for name in MethodRow._fields)
        return map(_METHOD_ROW, zip(*lists, strict=False))

    def _add_messages(self, batch: pa.RecordBatch) -> None:
        groups = Groups([batch.column(name) for name in ("kind", "exchange", "routing_key")])
        sums = groups.sums(batch.column("octets")), groups.sums(batch.column("cut"))
        for key, messages, octets, cut in zip(groups.keys, groups.counts, *sums, strict=True):
            kind, exchange, routing_key = key
            self._kinds.add((kind,), messages, octets, cut)
            nothing = (0, 0)
            if kind == "publish":
                amounts = (messages, octets, messages, octets, *nothing)
            elif kind in _DELIVERED:
                amounts = (messages, octets, *nothing, messages, octets)
            else:
                continue
            self._exchanges.add((exchange,), *amounts)
            self._routing_keys.add((exchange, routing_key), *amounts)
        self._add_times(batch)

    def _add_times(self, batch: pa.RecordBatch) -> None:
        timed = batch.filter(
            compute.greater_equal(batch.column("ts_ns"), constant(0))
        )  # null is no time, too
        if not timed.num_rows:
            return
        span = compute.min_max(timed.column("ts_ns")).as_py()
        self._timeline.span(span["min"], span["max"])
        intervals = compute.divide(timed.column("ts_ns"), constant(self._timeline.width_ns))
        groups = Groups([timed.column("kind"), intervals])
        sums = zip(groups.keys, groups.counts, groups.sums(timed.column("octets")), strict=True)
        self._timeline.add(
            (kind or "unknown", interval, messages, octets) for (kind, interval), messages, octets in sums
        )

    def _add_queues(self, batch: pa.RecordBatch) -> None:
        delivered = batch.filter(compute.is_in(batch.column("kind"), texts(_DELIVERED)))
        groups = Groups([delivered.column("queue")])
        again = compute.fill_null(delivered.column("redelivered"), constant(False, pa.bool_())).cast(
            pa.int64()
        )
        sums = groups.sums(delivered.column("octets")), groups.sums(again)
        for key, messages, octets, redelivered in zip(groups.keys, groups.counts, *sums, strict=True):
            self._queues.add(key, messages, octets)
            if redelivered:
                self._redelivered.add(key, redelivered)


def _rewind(file: Any) -> None:
    """Go to the beginning of a file that can seek."""
    if hasattr(file, "seekable") and file.seekable():
        file.seek(0)


def _arguments(dialect: str | ModuleType) -> list[str]:
    """The arguments in a `MethodRow` that methods of a dialect have."""
    dialects: dict[str, Any] = {} if dialect == "auto" else {"dialects": (dialect,)}
    there = {field.name for field in arrow.schema("methods", **dialects).field("args").type}
    return [name for name in MethodRow._fields[len(_METHODS) :] if name in there]


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Rows as dicts, some at a time; times in microseconds."""
    for batch in batches:
        for index, field in enumerate(batch.schema):
            if pa.types.is_timestamp(field.type):
                batch = batch.set_column(index, field.name, batch.column(index).cast(pa.int64()))
        for begin in range(0, batch.num_rows, _FEW_ROWS):
            yield from batch.slice(begin, _FEW_ROWS).to_pylist()


def _with_octets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Messages, with the octets of the body of those that are complete, and 1 for those that are not."""
    nothing = constant(0)
    complete = compute.fill_null(batch.column("complete"), constant(False, pa.bool_()))
    octets = compute.if_else(complete, compute.fill_null(batch.column("body_size"), nothing), nothing)
    cut = compute.invert(complete).cast(pa.int64())
    return batch.append_column("octets", octets).append_column("cut", cut)
