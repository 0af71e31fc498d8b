"""Queues: messages that wait, the consumers that take them by turns, and how messages end.

A queue knows its consumers, and nothing of connections. Its virtual host gets what has died in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Container, Iterator
from heapq import heappop, heappush, merge
from itertools import count
from typing import TYPE_CHECKING, Any

from . import messages as states
from .arguments import NEVER, settings, weight
from .clock import Timer
from .messages import Entry, Message

if TYPE_CHECKING:
    from .channels import Subscription
    from .hosts import VirtualHost


POSITIONS = 1 << 62  # in a queue: a message of a higher priority stands so much further in front


class Ready:
    """The messages of a queue that wait, in the order of their places.

    Attributes:
        octets: of their bodies.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._line: deque[Entry] = deque()  # most come in order,
        self._heap: list[tuple[int, int, Entry]] = []  # and others are found when it is their turn
        self._serial = count()  # of two in one place the later one stands behind

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def __iter__(self) -> Iterator[Entry]:
        others = (entry for *_, entry in sorted(self._heap))
        return merge(self._line, others, key=lambda entry: entry.place)

    def add(self, entry: Entry) -> None:
        """Add a message where its place is, mostly last."""
        self.octets += len(entry.message.body)
        line = self._line
        if not line or line[-1].place <= entry.place:
            line.append(entry)
        else:
            heappush(self._heap, (entry.place, next(self._serial), entry))

    def first(self) -> Entry | None:
        """Return the first message; None if there is none."""
        if self._heap and not (self._line and self._line[0].place <= self._heap[0][0]):
            return self._heap[0][-1]
        return self._line[0] if self._line else None

    def take(self) -> Entry:
        """Take the first message away."""
        if self._heap and self.first() is self._heap[0][-1]:
            entry = heappop(self._heap)[-1]
        else:
            entry = self._line.popleft()
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
        self.durable: bool = declared.durable and not declared.exclusive
        self.auto_delete: bool = declared.auto_delete
        self.arguments = arguments
        self.size = weight(arguments)
        self.settings = settings(host.where(name), arguments)
        self.owner = owner
        is_limited = (self.settings.max_length, self.settings.max_length_bytes) != (None, None)
        self._drops = is_limited and self.settings.overflow == "drop-head"
        self._refuses = is_limited and not self._drops
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
        settings, ready = self.settings, self.ready
        if self._refuses and self._is_full(1, len(message.body)):
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
        ready.add(Entry(message, self, place, expires_at))
        if was_empty:  # else no consumer has room
            self.dispatch()  # who has room has it, however short it lives
        has_dropped = self._drops and self._drop_head()
        if self._is_timed and (has_dropped or len(ready) == 1):
            self._expire()
        return True

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
            if self._drops:
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
        """End what comes first and whose time is over; come back for the next.

        No other ends before the first, even if its own time is over.
        """
        if not self._is_timed:
            return
        now = self.host.clock.time()
        while (first := self.ready.first()) is not None and first.expires_at <= now:
            self._die(self.ready.take(), states.EXPIRED)
        following = NEVER if first is None else first.expires_at
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
