"""Reads captures table by table and gathers a summary, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from types import ModuleType
from typing import Any, Protocol, Unpack

import pyarrow as pa
from pyarrow import compute

from .. import arrow
from .._options import among, takes
from ..options import CaptureOptions, StatsOptions, StreamOptions
from .cells import cells
from .counters import KEYS, Durations, Largest, Tally, Timeline
from .matching import DIALECT, Matcher, MethodRow, Sources
from .summary import Ending, Problem, Summary

_LARGE_BATCHES: dict[str, Any] = {"batch_rows": 50_000, "_batch_bytes": 16 << 20}
_MOST_BREAKS = 1_000_000  # with more of them little is left to match

_CONNECTION_KEYS = (
    "file", "flow", "client", "server", "dialect", "ts_first_us", "ts_last_us", "product", "version",
    "client_product", "client_version", "connection_name", "user", "vhost", "closed_by", "close_code",
    "close_text",
)  # fmt: skip
_COUNTS = (
    "octets_sent", "octets_received", "frames_sent", "frames_received", "messages_sent", "messages_received",
    "gaps", "octets_missing", "errors",
)  # fmt: skip
_WHO = ("octets", "connections", "messages")
_TRAFFIC = ("messages", "octets", "published", "octets_published", "delivered", "octets_delivered")
_DELIVERED = ("deliver", "get-ok")
_ERRORS = ("kind", "code", "flow", "direction", "offset", "length", "packet", "ts_ns", "message")
_CONNECTIONS = (*_CONNECTION_KEYS[1:5], "ts_first", "ts_last", *_CONNECTION_KEYS[7:], *_COUNTS)
_MESSAGES = (
    "flow", "channel", "kind", "exchange", "routing_key", "consumer_tag", "offset", "ts_ns", "body_size",
    "complete",
)  # fmt: skip
_METHODS = ("flow", "direction", "ts_ns", "offset", "packet", "channel", "name")
_BREAKS = ("gap", "lost")
_METHOD_ROW = partial(tuple.__new__, MethodRow)  # as MethodRow._make, without a step in Python


class Rereadable(Protocol):
    """A binary file that can be read again."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; none at the end."""

    def seek(self, offset: int, /) -> int:
        """Continue at another byte."""


@takes(StatsOptions)
class Collector:
    """Gathers a `Summary` of one file after the other.

    Args:
        options: those of `StatsOptions`.

    Attributes:
        passes: how often a file is read at most; once less if it has no faults.

    Raises:
        TypeError, ValueError: an option that cannot be.
    """

    passes = 4

    def __init__(self, **options: Unpack[StatsOptions]) -> None:
        self._top = top = options["top"]
        read, taken = (
            (arrow.read_capture, CaptureOptions)
            if options["input"] == "capture"
            else (arrow.read_stream, StreamOptions)
        )
        self._read: Any = partial(read, **among(taken, options), **_LARGE_BATCHES)
        self._arguments = _arguments(options["dialect"])
        self._files: list[str] = []
        self._span: list[int] = []
        self._totals = dict.fromkeys(("connections", *_COUNTS), 0)
        self._connections = Largest(_CONNECTION_KEYS, ("octets", *_COUNTS), top)
        self._products = Tally(("product", "client_product"), _WHO)
        self._users = Tally(("user",), _WHO)
        self._vhosts = Tally(("vhost",), _WHO)
        self._kinds = Tally(("kind",), ("messages", "octets", "incomplete"))
        self._exchanges = Tally(("exchange",), _TRAFFIC)
        self._routing_keys = Tally(("exchange", "routing_key"), _TRAFFIC)
        self._queues = Tally(("queue",), ("messages", "octets"))
        self._timeline = Timeline()
        self._confirms, self._acks = Durations(top), Durations(top)
        self._closings = Tally(("scope", "by", "reply_code", "reply_text"), ("times",))
        self._returns = Tally(("reply_code", "reply_text", "exchange", "routing_key"), ("messages",))
        self._endings: list[Ending] = []
        self._faults = Tally(("code",), ("times", "octets"))
        self._problems: list[Problem] = []

    def add(self, file: str | os.PathLike[str] | Rereadable, name: str) -> bool:
        """Read a file, up to `passes` times, and add it to the summary.

        Args:
            file: a path, or a binary file that can seek.
            name: name of the file in the summary.

        Returns:
            Whether the file contains any AMQP, even if damaged.

        Raises:
            CaptureError: the file is no capture, or is damaged before its first packet.
            OSError: the file cannot be opened or read.
        """
        before = self._totals["connections"]
        connections = self._reader(file, "connections", _CONNECTIONS)
        dialects = self._add_connections(name, connections)
        self._files.append(name)
        # Both tables count the same faults.
        breaks = self._add_errors(name, self._reader(file, "errors", _ERRORS)) if connections.faults else {}
        matcher = Matcher(
            name, breaks, dialects, confirms=self._confirms, acks=self._acks, closings=self._closings,
            returns=self._returns, endings=self._endings, top=self._top,
        )  # fmt: skip
        arguments = (f"args.{argument}" for argument in self._arguments)
        for batch in self._reader(file, "methods", (*_METHODS, *arguments)):
            matcher.feed(self._method_rows(batch))
        matcher.finish()
        for batch in self._reader(file, "messages", _MESSAGES):
            self._add_messages(batch)
            self._add_queues(batch, matcher.sources)
        return self._totals["connections"] > before

    def summary(self) -> Summary:
        """The summary of the files added so far."""
        top = self._top
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
            exchanges=self._exchanges.ranking(top),
            routing_keys=self._routing_keys.ranking(top),
            queues=self._queues.ranking(top),
            rates=self._timeline.rates(),
            confirms=self._confirms.latency(),
            acks=self._acks.latency(),
            closings=self._closings.ranking(top),
            endings=list(self._endings),
            returns=self._returns.ranking(top),
            faults=self._faults.ranking(top),
            problems=list(self._problems),
        )

    def _reader(self, file: Any, table: str, columns: Iterable[str]) -> arrow.CaptureReader:
        """The batches of a table, the file read from its beginning."""
        if hasattr(file, "seek"):
            file.seek(0)
        reader: arrow.CaptureReader = self._read(file, table=table, columns=columns)
        return reader

    def _add_errors(self, name: str, batches: Iterable[pa.RecordBatch]) -> _Breaks:
        """Count faults; returns where octets are missing."""
        breaks: _Breaks = {}
        room = _MOST_BREAKS
        for row in _rows(batches):
            self._faults.add((row["code"],), 1, row["length"] or 0)
            if len(self._problems) < self._top:
                self._problems.append(Problem(name, *(row[column] for column in _ERRORS[1:])))
            if row["kind"] in _BREAKS and row["direction"] is not None and room:
                breaks.setdefault(row["flow"], ([], []))[row["direction"]].append(row["offset"])
                room -= 1
        for sides in breaks.values():
            for side in sides:
                side.sort()
        return breaks

    def _add_connections(self, name: str, batches: Iterable[pa.RecordBatch]) -> dict[int | None, str]:
        """Count connections; returns the dialects of those that do not speak the usual one."""
        dialects: dict[int | None, str] = {}
        for row in _rows(batches):
            row["file"] = name
            times = [row.pop("ts_first"), row.pop("ts_last")]
            row["ts_first_us"], row["ts_last_us"] = times
            known = [*self._span, *(time for time in times if time is not None)]
            self._span = [min(known), max(known)] if known else []
            counts = [row[count] for count in _COUNTS]
            octets, messages = sum(counts[:2]), sum(counts[4:6])
            self._totals["connections"] += 1
            for count, amount in zip(_COUNTS, counts, strict=True):
                self._totals[count] += amount
            self._connections.add((row[key] for key in _CONNECTION_KEYS), (octets, *counts))
            self._products.add((row["product"], row["client_product"]), octets, 1, messages)
            self._users.add((row["user"],), octets, 1, messages)
            self._vhosts.add((row["vhost"],), octets, 1, messages)
            if row["dialect"] not in (None, DIALECT) and len(dialects) < KEYS:
                dialects[row["flow"]] = row["dialect"]
        return dialects

    def _method_rows(self, batch: pa.RecordBatch) -> Iterator[MethodRow]:
        columns = {name: batch.column(name) for name in _METHODS}
        columns.update(zip(self._arguments, batch.column("args").flatten(), strict=True))
        lists = (cells(columns[name]) if name in columns else repeat(None) for name in MethodRow._fields)
        return map(_METHOD_ROW, zip(*lists, strict=False))

    def _add_messages(self, batch: pa.RecordBatch) -> None:
        table = _with_octets(batch)
        groups = table.group_by(["kind", "exchange", "routing_key"]).aggregate(
            [([], "count_all"), ("octets", "sum"), ("cut", "sum")]
        )
        for row in groups.to_pylist():
            kind, messages, octets = row["kind"], row["count_all"], row["octets_sum"]
            self._kinds.add((kind,), messages, octets, row["cut_sum"])
            nothing = (0, 0)
            if kind == "publish":
                amounts = (messages, octets, messages, octets, *nothing)
            elif kind in _DELIVERED:
                amounts = (messages, octets, *nothing, messages, octets)
            else:
                continue
            self._exchanges.add((row["exchange"],), *amounts)
            self._routing_keys.add((row["exchange"], row["routing_key"]), *amounts)
        self._add_times(table)

    def _add_times(self, table: pa.Table) -> None:
        timed = table.filter(compute.greater_equal(table["ts_ns"], 0))  # null is no time, too
        if not timed.num_rows:
            return
        span = compute.min_max(timed["ts_ns"]).as_py()
        self._timeline.span(span["min"], span["max"])
        intervals = compute.divide(timed["ts_ns"], self._timeline.width_ns)
        groups = timed.append_column("interval", intervals).group_by(["kind", "interval"])
        sums = groups.aggregate([([], "count_all"), ("octets", "sum")]).to_pydict()
        kinds = (kind or "unknown" for kind in sums["kind"])
        self._timeline.add(zip(kinds, sums["interval"], sums["count_all"], sums["octets_sum"], strict=True))

    def _add_queues(self, batch: pa.RecordBatch, sources: Sources) -> None:
        table = _with_octets(batch)
        delivered = table.filter(compute.is_in(table["kind"], pa.array(_DELIVERED)))
        names = ("flow", "channel", "consumer_tag", "offset", "octets")
        columns = (cells(delivered[name].combine_chunks()) for name in names)
        for flow, channel, tag, offset, octets in zip(*columns, strict=True):
            self._queues.add((sources.queue((flow, channel, tag), offset),), 1, octets)


_Breaks = dict[int | None, tuple[list[int], list[int]]]


def _arguments(dialect: str | ModuleType) -> list[str]:
    """The arguments in a `MethodRow` that methods of a dialect have."""
    dialects: dict[str, Any] = {} if dialect == "auto" else {"dialects": (dialect,)}
    there = {field.name for field in arrow.schema("methods", **dialects).field("args").type}
    return [name for name in MethodRow._fields[len(_METHODS) :] if name in there]


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Rows of a small table as dicts; times in microseconds."""
    for batch in batches:
        for index, field in enumerate(batch.schema):
            if pa.types.is_timestamp(field.type):
                batch = batch.set_column(index, field.name, batch.column(index).cast(pa.int64()))
        yield from batch.to_pylist()


def _with_octets(batch: pa.RecordBatch) -> pa.Table:
    """Messages, with the octets of the body of those that are complete, and 1 for those that are not."""
    complete = compute.fill_null(batch.column("complete"), False)
    octets = compute.if_else(complete, compute.fill_null(batch.column("body_size"), 0), 0)
    cut = compute.invert(complete).cast(pa.int64())
    return pa.Table.from_batches([batch]).append_column("octets", octets).append_column("cut", cut)
