"""Rows of `deliveries` added up: how long answers took, and for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .._columns.origins import NO_TIME
from .._columns.steps import PUBLISH
from .cells import cells
from .durations import Answers, Durations
from .flows import named
from .parties import MOST_PARTIES, Parties, Share
from .summary import Client, Publishers, Slow
from .waits import Waits

if TYPE_CHECKING:
    from .._columns.following_py import Message

_REFUSED = ("nack", "reject", "requeued", "refused")
_DELIVERED = ("deliver", "get-ok")
_LOST = ("unknown", "dropped")
_CLIENTS = 3  # of an exchange that are named


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
    body_size: int | None
    message_id: str | None
    wait_us: int | None
    wait_by: str | None
    publish_flow: int | None
    publish_offset: int | None


_DELIVERY = partial(tuple.__new__, Delivery)  # as Delivery._make, without a step in Python


class Outcomes:
    """Adds up what became of the messages of files.

    Args:
        top: how many of the slowest answers to keep.

    Attributes:
        confirms, acks: how long answers took to publishes and to deliveries.
        queues, consumers, publishers: the same by who took part.
        waits: how long messages waited.
    """

    def __init__(self, top: int) -> None:
        self.confirms, self.acks = Answers(top), Answers(top)
        self.queues = Parties(("queue",))
        self.consumers = Parties(("queue", "client", "channel", "consumer_tag"))
        self.publishers = Parties(("exchange", "client", "channel"))
        self.waits = Waits()
        self._sizes: dict[str | None, Durations] = {}  # of bodies, by exchange
        self._open: dict[int | None, list[Durations]] = {}  # without an answer when their connection ended
        self._held: dict[Message, tuple[Share, ...]] = {}

    def watch(self, message: Message, begins: bool, time_ns: int) -> None:
        """Take a message that begins to wait for an answer or no longer does; see `Follower.watch`."""
        if begins:
            shares = self._held[message] = tuple(self._shares(message))
            for share in shares:
                share.wait(time_ns)
        else:
            for share in self._held.pop(message):
                share.settle(None if time_ns == NO_TIME else time_ns)

    def add(self, file: str, batch: pa.RecordBatch, in_tunnels: Mapping[int | None, str | None]) -> None:
        """Add rows of a file, with the clients of its connections in tunnels."""
        for row in _rows(batch):
            client = in_tunnels.get(row.flow, row.client)
            if row.kind == "publish":
                publisher = self.publishers.of((row.exchange, client, row.channel))
                if row.body_size is not None:
                    publisher.sizes.add(row.body_size)
                    self._size_of(row.exchange, row.body_size)
                self._count(file, row, self.confirms, [publisher])
            elif row.kind in _DELIVERED:
                consumer = (row.queue, client, row.channel, row.consumer_tag)
                queue = self.queues.of((row.queue,))
                if not row.redelivered:
                    wait_ns = None if row.wait_us is None else row.wait_us * 1000
                    self.waits.add((row.queue, row.exchange, row.routing_key), row.wait_by, wait_ns)
                    if wait_ns is not None:
                        queue.waits.add(wait_ns)
                self._count(file, row, self.acks, [queue, self.consumers.of(consumer)])

    def limit(self, client: str | None, channel: int, prefetch: int) -> None:
        """Say how many messages may wait on a channel at once."""
        for _, share in self.consumers.on_channel(client, channel):
            share.prefetch = prefetch

    def stop(self, client: str | None, channel: int, time_ns: int | None, tag: str | None = None) -> None:
        """Take the end of a consumer, or of a channel and all its consumers."""
        for known, share in self.consumers.on_channel(client, channel):
            if tag is None or tag == known:
                share.stop(time_ns)

    def end(self, row: dict[str, Any], by_recording: bool, end_ns: int | None) -> None:
        """Take the row of a connection that has ended, perhaps because the recording did, and when."""
        for durations in self._open.pop(row["flow"], ()):
            durations.waiting += by_recording
        for parties in (self.consumers, self.publishers):
            parties.end(row["client"], row["connection_name"] or row["client_product"], end_ns)

    def published_by(self, exchanges: Iterable[str | None]) -> list[Publishers]:
        """Return who publishes to some exchanges."""
        found: dict[object, Counter[str | None]] = {exchange: Counter() for exchange in exchanges}
        for (exchange, client, _), messages in self.publishers.messages():
            if exchange in found:
                found[exchange][client] += messages
        return [self._publishers(exchange, clients) for exchange, clients in found.items()]

    def _publishers(self, exchange: Any, clients: Counter[str | None]) -> Publishers:
        ordered = sorted(clients.items(), key=lambda item: (-item[1], str(item[0])))
        shown = [
            Client(client, self.publishers.name_of(client), count) for client, count in ordered[:_CLIENTS]
        ]
        sizes = self._sizes.get(exchange) or Durations()
        found = sizes.percentiles()
        return Publishers(
            exchange, shown, len(ordered) - len(shown), found.get("p50"), found.get("p99"), sizes.most
        )

    def _size_of(self, exchange: str | None, octets: int) -> None:
        """Count the body of a message published to an exchange, if it is one of the first ones."""
        sizes = self._sizes.get(exchange)
        if sizes is None:
            if len(self._sizes) >= MOST_PARTIES:
                return
            sizes = self._sizes[exchange] = Durations()
        sizes.add(octets)

    def _shares(self, message: Message) -> Iterator[Share]:
        """Yield the shares of those who take part in a message."""
        who = (named(message.connection.client), message.channel)
        if message.step == PUBLISH:
            yield self.publishers.of((message.exchange, *who))
        else:
            yield self.queues.of((message.queue,))
            yield self.consumers.of((message.queue, *who, message.consumer_tag))

    def _count(self, file: str, row: Delivery, answers: Answers, shares: list[Share]) -> None:
        everyone: list[Durations] = [answers, *shares]
        outcome, then, now = row.outcome, row.ts_ns, row.ts_outcome_ns
        for durations in everyone:
            durations.messages += 1
            durations.redelivered += bool(row.redelivered)
        if then is not None:
            for share in shares:
                share.see(then)
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
            latency = max(now - then, 0)
            if outcome in _REFUSED:
                for durations in everyone:
                    durations.negative += 1
                answers.refuse(_identity(row), bool(row.redelivered))
            for share in shares:
                share.add(latency)
            if answers.answer(latency, now):
                answers.keep(_slow(file, row, latency))


def _identity(row: Delivery) -> object:
    """Return what tells a message from others, however often it comes; None where nothing does."""
    if row.message_id is not None:
        return row.exchange, row.routing_key, row.message_id
    return None if row.publish_flow is None else (row.publish_flow, row.publish_offset)


def _slow(file: str, row: Delivery, latency: int) -> Slow:
    return Slow(
        file, row.flow or 0, row.channel or 0, row.delivery_tag or 0, row.packet or 0, row.ts_ns or 0,
        row.packet_outcome or 0, latency, row.outcome or "", row.exchange, row.routing_key, row.queue,
        row.consumer_tag,
    )  # fmt: skip


def _rows(batch: pa.RecordBatch) -> Iterator[Delivery]:
    columns = (cells(batch.column(name)) for name in Delivery._fields)
    return map(_DELIVERY, zip(*columns, strict=True))
