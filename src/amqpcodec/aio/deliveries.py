"""Messages from the broker: what is not settled yet, and the consumers that hand them out."""

from __future__ import annotations

import asyncio
import logging
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..errors import ConnectionLostError, LocalProtocolError
from .checks import context
from .failures import AlreadySettledError, ConsumerCancelledError
from .link import elsewhere, in_set_up

if TYPE_CHECKING:
    from .channel import Channel
    from .counters import ClientStats
    from .link import Link

OFFSET = "x-stream-offset"  # of streams: an argument of their consumers, and a header of their messages
RETURNS = "x-delivery-count"  # a header of what has gone back to a quorum queue
MOST_RETURNS = 20  # of quorum queues, where nothing else is set: what goes back once more is dropped
log = logging.getLogger("amqpcodec.aio")


class Unsettled:
    """The deliveries of a channel on one connection that are not settled.

    Acknowledgements of one turn of the event loop are sent together: with ``multiple`` as far as nothing in
    between is open.

    Attributes:
        uncommitted: tags that the transaction has settled, and a rollback opens again; None without one.
    """

    __slots__ = (
        "_acked", "_basic", "_last", "_link", "_loop", "_number", "_open", "_sorted", "_stats", "_thread",
        "uncommitted",
    )  # fmt: skip

    def __init__(
        self, link: Link, number: int, stats: ClientStats, uncommitted: list[int] | None = None
    ) -> None:
        self._link: Link | None = link
        self._basic = link.connection.dialect.Basic
        self._number = number
        self._stats = stats
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._open: dict[int, None] = {}  # a set that keeps the order
        self._acked: list[int] = []  # in this turn
        self._last = 0
        self._sorted = True
        self.uncommitted = uncommitted

    def delivery(
        self, method: Any, properties: Any, body: bytes, no_ack: bool, kind: Callable[..., Delivery]
    ) -> Delivery:
        """Take a message that has come."""
        self._stats.delivered += 1
        if not no_ack:
            tag = method.delivery_tag
            if tag < self._last:
                self._sorted = False  # RabbitMQ sends them in order
            self._last = tag
            self._open[tag] = None
        return kind(method, properties, body, self)

    def ack(self, tag: int) -> bool:
        """Acknowledge a delivery at the end of this turn; return False where its connection is gone."""
        if self._link is None or tag not in self._open or get_ident() != self._thread:
            return self._late(tag)
        del self._open[tag]
        if self.uncommitted is not None:
            self.uncommitted.append(tag)
        if not self._acked:
            self._loop.call_soon(self.flush)
        self._acked.append(tag)
        return True

    def reject(self, tag: int, requeue: bool, nack: bool) -> bool:
        """Refuse a delivery, by basic.nack where there is one; return False where its connection is gone."""
        if self._link is None or tag not in self._open or get_ident() != self._thread:
            return self._late(tag)
        del self._open[tag]
        if self.uncommitted is not None:
            self.uncommitted.append(tag)
        if nack and hasattr(self._basic, "Nack"):
            self._send(self._basic.Nack(tag, False, requeue))
        else:
            self._send(self._basic.Reject(tag, requeue))
        return True

    def give_back(self, tags: Iterable[int]) -> None:
        """Return unread deliveries to their queues: together, as far as nothing in between is open.

        A quorum queue of RabbitMQ 4.3 takes some 32 methods at a time. It counts what is left of them as
        failed deliveries where the channel is closed next.
        """
        self.flush()
        given = sorted(self._open.keys() & tags)
        together = 0
        if self._link is not None and hasattr(self._basic, "Nack"):
            others = self._open.keys() - given
            together = bisect_left(given, min(others)) if others else len(given)
        if together:
            for tag in given[:together]:
                del self._open[tag]
            if self.uncommitted is not None:
                self.uncommitted += given[:together]
            self._send(self._basic.Nack(given[together - 1], together > 1, True))
        for tag in given[together:]:
            self.reject(tag, True, True)

    def _late(self, tag: int) -> bool:
        """Return False for a delivery whose connection is gone; raise an error for one that is settled."""
        if get_ident() != self._thread:  # nothing would wake the event loop to send it
            raise LocalProtocolError(
                "deliveries are settled on the event loop: from another thread, use "
                "loop.call_soon_threadsafe(delivery.ack)"
            )
        if self._link is not None:
            raise AlreadySettledError(f"delivery {tag} is settled already, or needs no acknowledgement")
        self._stats.stale += 1
        log.info("delivery %d comes again: it was settled after its connection was gone", tag)
        return False

    def transact(self, name: str) -> None:
        """Take note of tx.select, tx.commit or tx.rollback, which opens again what the transaction settled.

        It does so from the request on: the broker counts later acknowledgements to the next transaction.
        """
        if name == "tx.rollback" and self.uncommitted:
            tags = [*self._open, *self.uncommitted]
            self._open = dict.fromkeys(sorted(tags) if self._sorted else tags)
        if name != "tx.select" or self.uncommitted is None:
            self.uncommitted = []

    def flush(self) -> None:
        """Send the acknowledgements of this turn."""
        acked = self._acked
        if not acked:
            return
        self._acked = []
        acked.sort()
        together = len(acked)
        if self._open:
            together = bisect_left(acked, next(iter(self._open)) if self._sorted else min(self._open))
        ack = self._basic.Ack
        if together:
            self._send(ack(acked[together - 1], together > 1))
        for tag in acked[together:]:
            self._send(ack(tag))
        self._stats.acknowledged += len(acked)

    def _send(self, method: Any) -> None:
        if self._link is not None:
            self._link.send(self._number, method)

    def forget(self) -> None:
        """Settle nothing any more: the connection or channel is gone, or the broker takes all back."""
        self._link = None
        self._stats.stale += len(self._acked)
        self._acked = []


def count_dropped(stats: ClientStats, count: int, why: str = "that needed no acknowledgement") -> None:
    """Count unread deliveries that cannot go back, and say so."""
    if count:
        stats.dropped += count
        log.warning("deliveries lost %s: %d", why, count)


def give_back(deliveries: Iterable[Delivery]) -> None:
    """Return unread deliveries to their queue.

    A stream has all its messages, and ends the connection where one is returned: it is acknowledged. A
    message that a stream had may be in another queue by now, with its header: it stays open where that is not
    known.
    """
    tags: dict[Unsettled, list[int]] = {}
    for delivery in deliveries:
        if not has_offset(delivery):
            tags.setdefault(delivery._unsettled, []).append(delivery.method.delivery_tag)
        elif isinstance(delivery, StreamDelivery):
            delivery.pass_over()
    for unsettled, given in tags.items():
        unsettled.give_back(given)


class Kept:
    """Unread deliveries of a channel that their queues would drop if they went back once more.

    They wait for the next consumer or basic.get of their queue on the channel.
    """

    __slots__ = ("_by_queue", "_ever", "_stats")

    def __init__(self, stats: ClientStats) -> None:
        self._stats = stats
        self._by_queue: dict[str, list[Delivery]] = {}
        self._ever: set[int] = set()  # the tags of all that was kept, and is counted

    def keep(self, queue: str, unread: Iterable[Delivery]) -> list[Delivery]:
        """Keep what must not go back of the unread deliveries of a queue; return what may."""
        may: list[Delivery] = []
        kept = self._by_queue.setdefault(queue, [])
        for delivery in unread:
            headers = delivery.properties.headers
            is_at_limit = headers is not None and headers.get(RETURNS) == MOST_RETURNS
            (kept if is_at_limit else may).append(delivery)
        tags = {each.method.delivery_tag for each in kept} - self._ever
        if tags:
            self._ever |= tags
            self._stats.kept += len(tags)
            log.warning(
                "unread messages of queue %r, which would drop or dead-letter them if they went back: %d. "
                "Its next consumer or `get` on this channel gets them",
                queue, len(tags),
            )  # fmt: skip
        return may

    def take(self, queue: str) -> list[Delivery]:
        """Return what was kept of a queue, for a consumer."""
        return self._by_queue.pop(queue, [])

    def take_first(self, queue: str) -> Delivery | None:
        """Return the first that was kept of a queue, if any was, for basic.get."""
        kept = self._by_queue.get(queue)
        return kept.pop(0) if kept else None

    def forget(self) -> None:
        """Count what is kept as dropped: the channel or connection is gone."""
        count_dropped(self._stats, sum(map(len, self._by_queue.values())), "that had gone back too often")
        self._by_queue.clear()
        self._ever.clear()


def has_offset(delivery: Delivery) -> bool:
    """Return whether a delivery is a message that a stream has or had."""
    return OFFSET in (delivery.properties.headers or ())


class Delivery:
    """A message from a queue, to be settled once.

    Attributes:
        method: basic.deliver, or basic.get-ok.
        properties: the properties of the message.
        body: the body.
    """

    __slots__ = ("_unsettled", "body", "method", "properties")

    def __init__(self, method: Any, properties: Any, body: bytes, unsettled: Unsettled) -> None:
        self.method = method
        self.properties = properties
        self.body = body
        self._unsettled = unsettled

    def ack(self) -> bool:
        """Acknowledge the message: the broker forgets it.

        Returns:
            False if the connection or channel by which it came is gone: the message comes again.

        Raises:
            AlreadySettledError: it is settled, or was consumed with `no_ack`.
            LocalProtocolError: it is called from another thread than the client's; or `nack` or `reject`, of
                a message from a stream.
        """
        return self._unsettled.ack(self.method.delivery_tag)

    def nack(self, *, requeue: bool = True) -> bool:
        """Refuse the message by basic.nack; returns and raises as `ack`.

        Args:
            requeue: whether it goes back to its queue; else it is dropped or dead-lettered.
        """
        return self._unsettled.reject(self.method.delivery_tag, requeue, True)

    def reject(self, *, requeue: bool = False) -> bool:
        """Refuse the message by basic.reject; takes, returns and raises as `nack`."""
        return self._unsettled.reject(self.method.delivery_tag, requeue, False)

    def __repr__(self) -> str:
        return f"Delivery({self.method!r}, {self.properties!r}, {len(self.body)} octets)"


class Offsets:
    """How far a consumer of a stream has come."""

    __slots__ = ("_next", "_open")

    def __init__(self) -> None:
        self._next: int | None = None  # after the last that was settled
        self._open: dict[int, None] = {}  # a set that keeps the order

    def came(self, offset: int) -> None:
        """Take note of a delivery."""
        self._open[offset] = None

    def settled(self, offset: int) -> None:
        """Take note of an acknowledgement."""
        self._open.pop(offset, None)
        self._next = max(offset + 1, self._next or 0)

    @property
    def first(self) -> int | None:
        """Return the offset of the first message that is not settled; None before any has come."""
        return next(iter(self._open), self._next)

    def begin_again(self) -> int | None:
        """Return the first offset to ask for: what is not settled comes again."""
        self._next = self.first
        self._open.clear()
        return self._next


class StreamDelivery(Delivery):
    """A message from a stream, which takes none back."""

    __slots__ = ("_offset", "_offsets")

    def __init__(self, *parts: Any, offsets: Offsets) -> None:
        super().__init__(*parts)
        self._offsets = offsets
        self._offset = (self.properties.headers or {}).get(OFFSET)
        if self._offset is not None:
            offsets.came(self._offset)

    def ack(self) -> bool:
        is_sent = super().ack()
        if is_sent and self._offset is not None:
            self._offsets.settled(self._offset)
        return is_sent

    def pass_over(self) -> None:
        """Acknowledge the message unread."""
        super().ack()

    def nack(self, *, requeue: bool = True) -> bool:
        self._check()
        return super().nack(requeue=requeue)

    def reject(self, *, requeue: bool = False) -> bool:
        self._check()
        return super().reject(requeue=requeue)

    def _check(self) -> None:
        """Refuse to refuse it, for which RabbitMQ would end the connection."""
        if has_offset(self):
            raise LocalProtocolError("a stream takes no delivery back: acknowledge it, to receive more")


class Consumer:
    """A consumer: a context in which it is there, and an asynchronous iterator over its deliveries.

    Leaving the context cancels it; what was not read goes back to the queue. Several tasks may iterate.
    """

    def __init__(
        self, channel: Channel, method: Any, around: Callable[[Delivery], AbstractContextManager[Any]] | None
    ) -> None:
        self.method = method
        self._offsets: Offsets | None = None
        self.kind: Callable[..., Delivery] = Delivery  # of its deliveries
        if OFFSET in (getattr(method, "arguments", None) or ()):
            self._offsets = Offsets()
            self.kind = partial(StreamDelivery, offsets=self._offsets)
        self.link: Link | None = None  # the connection on which basic.consume was sent
        self.asks = 0  # how often it was sent
        self.started = channel._loop.create_future()  # done once the broker has answered
        self.has_left = False
        self.gone = asyncio.Event()  # set once the broker delivers no more to it
        self._dropped = 0  # of its deliveries, which could not go back
        self._channel = channel
        self._ready: deque[Delivery] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._error: Exception | None = LocalProtocolError(
            "enter the consumer by async with, to iterate over it"
        )
        self._is_entered = False
        self._around = around
        self._entered: dict[asyncio.Task[Any], AbstractContextManager[Any]] = {}
        self._has_warned = False

    @property
    def tag(self) -> str:
        """The consumer tag."""
        return self.method.consumer_tag  # type: ignore[no-any-return]

    @property
    def offset(self) -> int | None:
        """The offset in its stream from which the consumer would go on: what comes before is settled.

        None without the argument ``x-stream-offset``, and before the first delivery.
        """
        return None if self._offsets is None else self._offsets.first

    async def __aenter__(self) -> Consumer:
        """Have the broker deliver.

        Raises:
            ReplyError: there is no such queue, say: the broker closes the channel.
            LocalProtocolError: the channel has a consumer of this tag; or this one was entered before.
        """
        if self._is_entered:
            raise LocalProtocolError("a consumer is entered once")
        self._is_entered = True
        self._error = None
        await self._channel._start(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        try:
            self._leave(kind, *error)
        finally:
            self.end(StopAsyncIteration())
            await self._channel._cancel(self, at_once=kind is not None and not issubclass(kind, Exception))

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Delivery:
        """Return the next delivery.

        Raises:
            ConsumerCancelledError: the broker has cancelled the consumer.
            ReplyError, ConnectionLostError, LocalProtocolError: the channel or the client is closed.
        """
        if get_ident() != self._channel._thread:
            raise elsewhere()
        if self._entered:
            self._leave(None, None, None)
        ready = self._ready
        while not ready:
            if self._error is not None:
                raise self._error.with_traceback(None)
            if (link := in_set_up()) is not None and link.ended.done():
                raise ConnectionLostError("the connection is lost")  # the next one waits for `on_connect`
            waiter = self._channel._loop.create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                elif ready:
                    self._wake()  # somebody else, where this one was about to take it
                raise
        if self._around is not None:
            try:
                around = context("around_delivery", self._around(ready[0]))
                around.__enter__()
            except BaseException:
                self._wake()  # somebody else may take it
                raise
            task = _running_task()
            self._entered[task] = around
            task.add_done_callback(self._leave_for)
        return ready.popleft()

    def _leave(self, *error: Any) -> None:
        """Leave what the client's `around_delivery` has begun for this task."""
        task = _running_task()
        around = self._entered.pop(task, None)
        if around is not None:
            task.remove_done_callback(self._leave_for)
            around.__exit__(*error)

    def _leave_for(self, task: asyncio.Task[Any]) -> None:
        """Leave it for a task that is done."""
        around = self._entered.pop(task)
        leave = partial(around.__exit__, None, None, None)
        try:
            if sys.version_info >= (3, 12):
                task.get_context().run(leave)
            else:
                leave()  # in a copy of the task's context, where context variables cannot be set back
        except Exception as error:
            level = logging.DEBUG if self._has_warned else logging.WARNING  # there may be one a message
            log.log(level, "around_delivery, left for a task that is done: %r", error)
            self._has_warned = True

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    # -- called by the channel

    def go_on(self) -> None:
        """Ask for those messages of a stream that are not settled, where it has delivered any."""
        if self._offsets is not None and (offset := self._offsets.begin_again()) is not None:
            self.method.arguments = {**self.method.arguments, OFFSET: offset}

    def asked(self, link: Link) -> None:
        """Take note that basic.consume is sent, for the first time or again."""
        if self.started.done():
            self.started = self._channel._loop.create_future()
        self.link = link
        self.asks += 1

    def begun(self) -> None:
        """Take note that the broker has answered: it delivers."""
        if not self.started.done():
            self.started.set_result(None)

    def put(self, delivery: Delivery) -> None:
        """Take a delivery."""
        self._ready.append(delivery)
        if self.has_left:
            self.give_back()
        elif self._waiting:
            self._wake()

    def forget_unread(self) -> None:
        """Forget unread deliveries that come again."""
        if not self.method.no_ack:
            self._ready.clear()

    def give_back(self) -> None:
        """Return unread deliveries to the queue, or count those that cannot be returned."""
        if self.method.no_ack:
            self._dropped += len(self._ready)
        else:
            self._channel._give_back(self.method, self._ready)
        self._ready.clear()

    def finish(self) -> None:
        """Take note that no delivery comes any more."""
        self.gone.set()
        count_dropped(self._channel._stats, self._dropped)
        self._dropped = 0

    def end(self, error: Exception) -> None:
        """Raise an error to those that iterate, once all is read, and to who waits for the beginning."""
        self._error = error
        if not self.started.done():
            self.started.set_exception(error)
            self.started.exception()  # who iterates is told as well
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    def end_by_broker(self) -> None:
        """End: the broker has cancelled the consumer."""
        error = ConsumerCancelledError(f"the broker has cancelled consumer {self.tag!r}")
        log.warning("%s", error)
        self.end(error)


def _running_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # coroutines are run by tasks
    return task


__all__ = ["Consumer", "Delivery", "Kept", "Unsettled", "count_dropped", "give_back"]
