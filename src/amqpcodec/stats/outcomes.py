"""Rows of `deliveries` added up: how long answers took, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from .cells import cells
from .counters import Durations, Parties
from .summary import Slow

_REFUSED = ("nack", "reject", "requeued", "refused")
_DELIVERED = ("deliver", "get-ok")
_LOST = ("unknown", "dropped")


class Delivery(NamedTuple):
    """A row of the table `deliveries`, with the columns that matter here."""

    flow: int | None
    direction: int
    client: str | None
    ts_ns: int | None
    packet: int | None
    channel: int | None
    kind: str | None
    queue: str | None
    consumer_tag: str | None
    exchange: str | None
    routing_key: str | None
    delivery_tag: int | None
    redelivered: bool | None
    outcome: str | None
    ts_outcome_ns: int | None
    packet_outcome: int | None


_DELIVERY = partial(tuple.__new__, Delivery)  # as Delivery._make, without a step in Python


class Outcomes:
    """Adds up what became of the messages of files.

    Args:
        top: how many of the slowest answers to keep.

    Attributes:
        confirms, acks: how long answers took to publishes and to deliveries.
        queues, consumers, publishers: the same by who took part.
    """

    def __init__(self, top: int) -> None:
        self.confirms, self.acks = Durations(top), Durations(top)
        self.queues = Parties(("queue",))
        self.consumers = Parties(("queue", "client", "channel", "consumer_tag"))
        self.publishers = Parties(("exchange", "client", "channel"))
        self._open: dict[int | None, list[Durations]] = {}  # without an answer when their connection ended

    def add(self, file: str, batch: pa.RecordBatch) -> None:
        """Add rows of a file."""
        for row in _rows(batch):
            if row.kind == "publish":
                who = (row.exchange, row.client, row.channel)
                self._count(file, row, self.confirms, [self.publishers.of(who)])
            elif row.kind in _DELIVERED:
                consumer = (row.queue, row.client, row.channel, row.consumer_tag)
                parties = [self.queues.of((row.queue,)), self.consumers.of(consumer)]
                self._count(file, row, self.acks, parties)

    def end(self, flow: int | None, by_recording: bool) -> None:
        """There are no more rows of a connection, perhaps because the recording ended."""
        for durations in self._open.pop(flow, ()):
            durations.waiting += by_recording

    def _count(self, file: str, row: Delivery, answers: Durations, parties: list[Durations]) -> None:
        everyone = [answers, *parties]
        outcome, then, now = row.outcome, row.ts_ns, row.ts_outcome_ns
        for durations in everyone:
            durations.messages += 1
            durations.redelivered += bool(row.redelivered)
            durations.see(then)
        if outcome is None:
            return
        if outcome == "none":
            for durations in everyone:
                durations.unanswered += 1
            if now is None:
                self._open.setdefault(row.flow, []).extend(everyone)
        elif outcome in _LOST or then is None or now is None:
            for durations in everyone:
                durations.unfollowed += 1
        else:
            latency = now - then if now > then else 0
            for durations in everyone:
                durations.negative += outcome in _REFUSED
                is_slow = durations.slow(latency)
                if is_slow and durations.keeps:
                    durations.keep(_slow(file, row, latency))


def _slow(file: str, row: Delivery, latency: int) -> Slow:
    return Slow(
        file, row.flow or 0, row.channel or 0, row.delivery_tag or 0, row.packet or 0, row.ts_ns or 0,
        row.packet_outcome or 0, latency, row.outcome or "", row.exchange, row.routing_key, row.queue,
        row.consumer_tag,
    )  # fmt: skip


def _rows(batch: pa.RecordBatch) -> Iterator[Delivery]:
    columns = (cells(batch.column(name)) for name in Delivery._fields)
    return map(_DELIVERY, zip(*columns, strict=True))
