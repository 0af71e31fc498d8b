"""Queues: messages that wait, the consumers that take them by turns, and how messages end.

A queue knows its consumers, and nothing of connections. Its virtual host gets what has died in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container
from itertools import count
from typing import TYPE_CHECKING, Any

from .. import reply_errors as refused
from . import messages as states
from .arguments import CLASSIC, NEVER, Settings, weight
from .clock import Timer
from .lines import Lines, Ready
from .messages import UNCOUNTED, Content, Entry, Message

if TYPE_CHECKING:
    from .channels import Subscription
    from .hosts import VirtualHost


POSITIONS = 1 << 62  # in a queue: a message of a higher priority stands so much further in front


class Queue:
    """A queue: a classic one, and what it has in common with others.

    Attributes:
        kind: its type.
        tells: whether it sends more of a message than came.
        heeds_channels: whether a limit for all consumers of a channel is one for its own.
        owner: the only connection that may use it; None for any.
        size: how many objects it counts for.
        consumers: in the order in which they are asked.
        unacknowledged: delivered and not settled.
    """

    kind = CLASSIC
    tells = False
    heeds_channels = True

    def __init__(
        self,
        host: VirtualHost,
        declared: Any,
        name: str,
        arguments: dict[str, Any],
        settings: Settings,
        owner: object,
    ) -> None:
        self.host = host
        self.name = name
        self.durable: bool = declared.durable and not declared.exclusive
        self.auto_delete: bool = declared.auto_delete
        self.arguments = arguments
        self.size = weight(arguments)
        self.settings = settings
        self._begin(declared)
        self.owner = owner
        is_limited = (self.settings.max_length, self.settings.max_length_bytes) != (None, None)
        self._drops = is_limited and self.settings.overflow == "drop-head"
        self._refuses = is_limited and not self._drops
        self.ready = self._make_ready()
        self.unacknowledged: dict[Entry, None] = {}
        self.consumers: list[Subscription] = []
        self.deleted = False
        self._positions = count()
        self._is_timed = False  # no message has had an end so far
        self._expiry: Timer | None = None
        self._used_at = host.clock.time()
        self._idle: Timer | None = None

    def _begin(self, declared: Any) -> None:
        """Refuse what queues of the type cannot be, before there is more of it."""

    def _make_ready(self) -> Ready | Lines:
        """Return what keeps the messages that wait."""
        return Ready()

    # -- messages come

    def put(self, message: Message) -> bool:
        """Take a message; return False if the queue is full and refuses it."""
        settings, ready = self.settings, self.ready
        if self._refuses and self._has_no_room(message):
            message.settled[self.name] = states.REJECTED
            if settings.overflow == "reject-publish-dlx":
                self.host.dead_letters.add(self, message, states.MAXLEN)
            return False
        place = next(self._positions)
        if settings.max_priority:
            place -= min(message.properties.priority or 0, settings.max_priority) * POSITIONS
        expires_at = min(message.lifetime, settings.message_ttl)
        if expires_at != NEVER:
            expires_at += self.host.clock.time()
            self._is_timed = True
        message.settled[self.name] = states.READY
        self.host.store.taken(message.size)
        was_empty = ready.first() is None
        entry = Entry(message, self, place, expires_at)
        if message.carried is not UNCOUNTED:
            self._count_on(entry)
        ready.add(entry)
        if was_empty:  # else no consumer has room
            self.dispatch()  # who has room has it, however short it lives
        has_dropped = self._drops and self._drop_head()
        if self._is_timed and (has_dropped or len(ready) == 1):
            self._expire()
        return True

    def _count_on(self, entry: Entry) -> None:
        """Go on with what other queues have counted."""
        if self.host.version.counts_continue:
            entry.failures, _ = entry.message.carried
            entry.redelivered = entry.failures > 0

    def _has_no_room(self, message: Message) -> bool:
        """Return whether a message is refused."""
        return self._is_full(1, len(message.body))

    def _drop_head(self) -> bool:
        """End what is too much; return whether there was any."""
        before = len(self.ready)
        while self.ready and self._is_full(0, 0):
            self._die(self.ready.take(), states.MAXLEN)
        return len(self.ready) < before

    def put_copy(self, entry: Entry) -> None:
        """Put the same message again where it was, as a broker does that has lost track of it."""
        copy = Entry(entry.message, self, entry.place, entry.expires_at, redelivered=True)
        self.host.store.taken(entry.message.size)
        self.ready.add(copy)
        self.host.clock.call_soon(self.dispatch)

    def _is_full(self, more: int, octets: int) -> bool:
        """Return whether it has too much, with so many more messages of so many octets."""
        messages, size = self.settings.max_length, self.settings.max_length_bytes
        return (messages is not None and len(self.ready) + more > messages) or (
            size is not None and self.ready.octets + octets > size
        )

    # -- messages go

    def dispatch(self) -> None:
        """Deliver as long as there is a message, and a consumer that takes more."""
        while self.ready.first() is not None:
            consumer = self._next_consumer()
            if consumer is None:
                return
            consumer.deliver(self.take())

    def take(self) -> Entry:
        """Take the first message away, to be delivered."""
        entry = self.ready.take()
        entry.message.settled[self.name] = states.UNACKNOWLEDGED
        self.unacknowledged[entry] = None
        if self._is_timed:
            self._moved_on()
        return entry

    def _moved_on(self) -> None:
        """Take note that another message is the first."""
        self._expire()

    def get(self) -> Entry | None:
        """Take the first message away, for somebody who asks; None if there is none."""
        self.used()
        return self.take() if self.ready else None

    def content(self, entry: Entry, fetched: bool = False) -> Message | Content:
        """Return what is sent of a message.

        Args:
            entry: the message.
            fetched: whether by basic.get.
        """
        return entry.message

    def _next_consumer(self) -> Subscription | None:
        """Return the consumer whose turn it is, who comes last of its priority then."""
        consumers = self.consumers
        if self.settings.single_active_consumer:
            first = consumers[0] if consumers else None
            return first if first is not None and first.takes_more() else None
        for place, consumer in enumerate(consumers):
            if consumer.takes_more():
                if len(consumers) > 1:
                    del consumers[place]
                    self._line_up(consumer)
                return consumer
        return None

    def acknowledge(self, entry: Entry) -> None:
        """End a message that was delivered, and has arrived."""
        self._gone(entry, states.ACKNOWLEDGED)

    def discard(self, entry: Entry) -> None:
        """End a message that was delivered, and is not wanted, by basic.nack."""
        self._die(entry, states.REJECTED)

    def reject(self, entry: Entry) -> None:
        """End a message that was delivered, and is not wanted, by basic.reject."""
        if self.host.version.ends_count:
            entry.count(True)
        self._die(entry, states.REJECTED)

    def release(self, entry: Entry) -> None:
        """Put a message back by basic.nack or basic.recover; `dispatch` is the caller's."""
        self._put_back(entry, self.host.version.released_counts)

    def check_recover(self) -> None:
        """Refuse basic.recover, which queues of some types cannot do."""

    def requeue(self, entry: Entry) -> None:
        """Put a message back by basic.reject; `dispatch` is the caller's."""
        self._put_back(entry, True)

    def give_back(self, entry: Entry) -> None:
        """Put a message back as its channel has ended; `dispatch` is the caller's."""
        self._put_back(entry, True, is_lost=True)

    def _put_back(self, entry: Entry, is_failure: bool, is_lost: bool = False) -> None:
        if entry in self.unacknowledged:
            del self.unacknowledged[entry]
            entry.redelivered = True
            entry.count(is_failure)
            entry.message.settled[self.name] = states.READY
            self._line_up_again(entry, is_lost)
            if self._drops:
                self._drop_head()
            self._expire()

    def _line_up_again(self, entry: Entry, is_lost: bool) -> None:
        """Place a message that has come back: where it was.

        Args:
            entry: the message.
            is_lost: whether its channel has ended.
        """
        self.ready.add(entry)

    def _die(self, entry: Entry, reason: str) -> None:
        """End a message; it goes to the dead letter exchange."""
        if self._gone(entry, reason):
            goes_on = entry.failures and self.kind in self.host.version.counts_go_on
            self.host.dead_letters.add(
                self, entry.message, reason, (entry.failures, entry.acquired) if goes_on else UNCOUNTED
            )

    def _gone(self, entry: Entry, state: str) -> bool:
        """End a message; return False if the queue has ended before it."""
        if self.deleted:
            return False
        self.unacknowledged.pop(entry, None)
        entry.message.settled[self.name] = state
        self.host.store.taken(-entry.message.size)
        return True

    def purge(self) -> int:
        """Drop what waits; return how much it was."""
        return self._drop_all(states.PURGED)

    def _drop_all(self, state: str) -> int:
        number = len(self.ready)
        while self.ready:
            self._gone(self.ready.take(), state)
        return number

    # -- time

    def _expire(self) -> None:
        """End what comes first in its line and whose time is over; come back for the next.

        No other ends before the first, even if its own time is over.
        """
        if not self._is_timed or self.deleted:
            return
        now = self.host.clock.time()
        following = NEVER
        for line in self.ready.lines():
            while (first := line.first()) is not None and first.expires_at <= now:
                self._die(line.take(), states.EXPIRED)
            if first is not None:
                following = min(following, first.expires_at)
        if self._expiry is not None:
            if self._expiry.when() == following:
                return
            self._expiry.cancel()
            self._expiry = None
        if following != NEVER:
            self._expiry = self.host.clock.call_at(following, self._on_expiry)

    def _on_expiry(self) -> None:
        self._expiry = None
        self._expire()

    def used(self) -> None:
        """Begin to count anew for ``x-expires``."""
        self._used_at = self.host.clock.time()
        if self.settings.expires is not None and self._idle is None and not self.deleted:
            self._idle = self.host.clock.call_at(self._used_at + self.settings.expires, self._on_idle)

    def _on_idle(self) -> None:
        self._idle = None
        if self.consumers:
            return  # the last of them to leave begins to count
        unused_until = self._used_at + (self.settings.expires or 0)
        if self.host.clock.time() >= unused_until:
            self.host.delete_queue(self)
        else:
            self._idle = self.host.clock.call_at(unused_until, self._on_idle)

    # -- consumers

    @property
    def consumer_count(self) -> int:
        """How many consumers it says it has."""
        return len(self.consumers)

    def check_consumer(self, method: Any, prefetch: int, is_limited: bool) -> None:
        """Refuse a consumer.

        Args:
            method: which asks for it.
            prefetch: its limit; 0 for none.
            is_limited: whether its channel has a limit for all consumers together.

        Raises:
            AmqpAccessRefused: another is the only one, or would be.
            AmqpNotImplemented: queues of this type have no such limit.
        """
        is_shared = self.consumers or self.settings.single_active_consumer
        if self.is_exclusively_used or (method.exclusive and is_shared):
            raise refused.AmqpAccessRefused(f"{self.host.where(self)} in exclusive use")

    def check_delete(self, if_unused: bool, if_empty: bool) -> int:
        """Return how many messages it says it has, unless it is not to be deleted.

        Raises:
            AmqpPreconditionFailed: it is in use, or not empty.
            AmqpNotImplemented: queues of this type are not asked for that.
        """
        if if_unused and self.consumers:
            raise refused.AmqpPreconditionFailed(f"{self.host.where(self)} in use")
        if if_empty and self.ready:
            raise refused.AmqpPreconditionFailed(f"{self.host.where(self)} not empty")
        return len(self.ready)

    def add_consumer(self, consumer: Subscription, arguments: dict[str, Any]) -> None:
        """Let a consumer take its turns, as arguments say; `dispatch` is the caller's."""
        self.used()
        self._line_up(consumer)

    def _line_up(self, consumer: Subscription) -> None:
        """Place a consumer last of its priority; an active single consumer keeps its place."""
        kept = 1 if self.settings.single_active_consumer and self.consumers else 0
        place = bisect_right(self.consumers, -consumer.priority, kept, key=lambda each: -each.priority)
        self.consumers.insert(place, consumer)

    def suspend(self, consumer: Subscription) -> None:
        """Deliver no more to a consumer for now."""
        self.remove_consumers((consumer,))

    def resume(self, consumer: Subscription) -> None:
        """Deliver to a consumer again; `dispatch` is the caller's."""
        self._line_up(consumer)

    def remove_consumers(self, gone: Container[Subscription]) -> None:
        """Deliver no more to consumers; `unused` and `dispatch` are the caller's."""
        self.consumers = [consumer for consumer in self.consumers if consumer not in gone]

    def unused(self) -> None:
        """Take note that consumers have left: with the last one a queue goes that deletes itself."""
        if self.consumers or self.deleted:
            return
        self.used()
        if self.auto_delete:
            self.host.delete_queue(self)

    @property
    def is_exclusively_used(self) -> bool:
        """Return whether a consumer wants to be the only one, and so is."""
        return bool(self.consumers) and self.consumers[0].exclusive

    def end(self) -> None:
        """Drop all there is, and tell consumers: the queue is deleted."""
        self._drop_all(states.DELETED)
        for entry in list(self.unacknowledged):
            self._gone(entry, states.DELETED)
        self.deleted = True
        for timer in (self._expiry, self._idle):
            if timer is not None:
                timer.cancel()
        consumers, self.consumers = self.consumers, []
        for consumer in consumers:
            consumer.cancelled()


__all__ = ["Queue"]
