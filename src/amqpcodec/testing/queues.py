"""Queues: messages that wait, the consumers that take them by turns, and how messages end.

A queue knows its consumers, and nothing of connections. Its virtual host gets what has died in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from . import messages as states
from .arguments import expiration, settings, weight
from .clock import Timer
from .messages import Entry, Message

if TYPE_CHECKING:
    from .channels import Subscription
    from .hosts import VirtualHost


class Ready:
    """The messages of a queue that wait: those of higher priorities first, each in the order of positions."""

    def __init__(self) -> None:
        self.octets = 0
        self._heap: list[tuple[int, int, int, Entry]] = []
        self._serial = count()  # of two that have one position the later one stands behind

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Entry]:
        return (entry for *_, entry in sorted(self._heap))

    def add(self, entry: Entry) -> None:
        """Add a message where its position says, mostly last."""
        heappush(self._heap, (-entry.priority, entry.position, next(self._serial), entry))
        self.octets += len(entry.message.body)

    @property
    def ends_at(self) -> float | None:
        """When the first message ends: no other ends before it, even if its own time is over."""
        return self._heap[0][-1].expires_at if self._heap else None

    def take(self) -> Entry:
        """Take the first message away."""
        entry = heappop(self._heap)[-1]
        self.octets -= len(entry.message.body)
        return entry


class Queue:
    """A queue.

    Attributes:
        owner: the only connection that may use it; None for any.
        size: how many objects it counts for.
        consumers: in the order in which they are asked.
        unacknowledged: delivered and not settled.
    """

    def __init__(
        self, host: VirtualHost, declared: Any, name: str, arguments: dict[str, Any], owner: object
    ) -> None:
        self.host = host
        self.name = name
        self.durable: bool = declared.durable
        self.auto_delete: bool = declared.auto_delete
        self.arguments = arguments
        self.size = weight(arguments)
        self.settings = settings(host.where(name), arguments)
        self.owner = owner
        self._is_limited = (self.settings.max_length, self.settings.max_length_bytes) != (None, None)
        self.ready = Ready()
        self.unacknowledged: dict[Entry, None] = {}
        self.consumers: list[Subscription] = []
        self.deleted = False
        self._positions = count()
        self._is_timed = False  # no message has had an end so far
        self._expiry: Timer | None = None
        self._used_at = host.clock.time()
        self._idle: Timer | None = None

    # -- messages come

    def put(self, message: Message) -> bool:
        """Take a message; return False if the queue is full and refuses it."""
        overflow, most = self.settings.overflow, self.settings.max_priority
        if overflow != "drop-head" and self._is_limited and self._is_full(1, len(message.body)):
            message.settled[self.name] = states.REJECTED
            if overflow == "reject-publish-dlx":
                self.host.dead_letters.add(self, message, states.MAXLEN)
            return False
        priority = min(message.properties.priority or 0, most) if most else 0
        entry = Entry(message, next(self._positions), priority, self._ends_at(message))
        message.settled[self.name] = states.READY
        if entry.expires_at is not None:
            self._is_timed = True
        self.host.store.taken(message.size)
        self.ready.add(entry)
        if len(self.ready) == 1:  # else no consumer has room
            self.dispatch()  # who has room has it, however short it lives
        if self._drop_head() or len(self.ready) == 1:
            self._expire()
        return True

    def _drop_head(self) -> bool:
        """End what is too much; return whether there was any."""
        if not self._is_limited or self.settings.overflow != "drop-head":
            return False
        before = len(self.ready)
        while self.ready and self._is_full(0, 0):
            self._die(self.ready.take(), states.MAXLEN)
        return len(self.ready) < before

    def put_copy(self, entry: Entry) -> None:
        """Put the same message again where it was, as a broker does that has lost track of it."""
        copy = Entry(entry.message, entry.position, entry.priority, entry.expires_at)
        copy.redelivered = True
        self.host.store.taken(entry.message.size)
        self.ready.add(copy)
        self.host.clock.call_soon(self.dispatch)

    def _is_full(self, more: int, octets: int) -> bool:
        """Return whether it has too much, with so many more messages of so many octets."""
        messages, size = self.settings.max_length, self.settings.max_length_bytes
        return (messages is not None and len(self.ready) + more > messages) or (
            size is not None and self.ready.octets + octets > size
        )

    def _ends_at(self, message: Message) -> float | None:
        own = expiration(message.properties.expiration)
        shared = self.settings.message_ttl
        if own is None and shared is None:
            return None
        return self.host.clock.time() + min(time for time in (own, shared) if time is not None)

    # -- messages go

    def dispatch(self) -> None:
        """Deliver as long as there is a message, and a consumer that takes more."""
        while len(self.ready):
            consumer = self._next_consumer()
            if consumer is None:
                return
            consumer.deliver(self.take())

    def take(self) -> Entry:
        """Take the first message away, to be delivered."""
        entry = self.ready.take()
        entry.message.settled[self.name] = states.UNACKNOWLEDGED
        self.unacknowledged[entry] = None
        self._expire()
        return entry

    def get(self) -> Entry | None:
        """Take the first message away, for somebody who asks; None if there is none."""
        self.used()
        return self.take() if self.ready else None

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

    def reject(self, entry: Entry) -> None:
        """End a message that was delivered, and is not wanted."""
        self._die(entry, states.REJECTED)

    def requeue(self, entry: Entry) -> None:
        """Put a message that was delivered back to where it was; `dispatch` is the caller's."""
        if entry in self.unacknowledged:
            del self.unacknowledged[entry]
            entry.redelivered = True
            entry.message.settled[self.name] = states.READY
            self.ready.add(entry)
            self._drop_head()
            self._expire()

    def _die(self, entry: Entry, reason: str) -> None:
        """End a message; it goes to the dead letter exchange."""
        if self._gone(entry, reason):
            self.host.dead_letters.add(self, entry.message, reason)

    def _gone(self, entry: Entry, state: str) -> bool:
        """End a message; return False if the queue has ended before it."""
        if self.deleted:
            return False
        self.unacknowledged.pop(entry, None)
        entry.message.settled[self.name] = state
        self.host.store.taken(-entry.message.size)
        return True

    def purge(self, state: str = states.PURGED) -> int:
        """Drop what waits; return how much it was."""
        number = len(self.ready)
        while self.ready:
            self._gone(self.ready.take(), state)
        return number

    # -- time

    def _expire(self) -> None:
        """End what comes first and whose time is over; come back for the next."""
        if not self._is_timed:
            return
        now = self.host.clock.time()
        while (following := self.ready.ends_at) is not None and following <= now:
            self._die(self.ready.take(), states.EXPIRED)
        if self._expiry is not None:
            if self._expiry.when() == following:
                return
            self._expiry.cancel()
            self._expiry = None
        if following is not None:
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

    def add_consumer(self, consumer: Subscription) -> None:
        """Let a consumer take its turns; `dispatch` is the caller's."""
        self.used()
        self._line_up(consumer)

    def _line_up(self, consumer: Subscription) -> None:
        """Place a consumer last of its priority; an active single consumer keeps its place."""
        kept = 1 if self.settings.single_active_consumer and self.consumers else 0
        place = bisect_right(self.consumers, -consumer.priority, kept, key=lambda each: -each.priority)
        self.consumers.insert(place, consumer)

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
        self.purge(states.DELETED)
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
