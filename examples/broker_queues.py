"""What the broker in memory keeps: exchanges, queues and messages; it knows nothing of connections.

What cannot be is raised as an exception of `amqpcodec.reply_errors`, which `broker.py` tells the client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from amqpcodec import reply_errors as refused


class Message(NamedTuple):
    """A message in a queue."""

    exchange: str
    routing_key: str
    properties: Any
    body: bytes
    redelivered: bool = False


class Consumer(Protocol):
    """Whoever takes messages from a queue."""

    def takes_more(self) -> bool:
        """Whether a message may be delivered now."""

    def deliver(self, message: Message) -> None:
        """Take a message."""

    def cancelled(self) -> None:
        """The queue is gone."""


@dataclass(eq=False)
class Queue:
    """Messages that wait, and the consumers that take them by turns."""

    name: str
    owner: object = None  # the only connection that may use it
    auto_delete: bool = False
    ready: deque[Message] = field(default_factory=deque)
    consumers: deque[Consumer] = field(default_factory=deque)

    def put(self, message: Message) -> None:
        """Add a message."""
        self.ready.append(message)
        self.dispatch()

    def put_back(self, message: Message) -> None:
        """Add a message that was delivered before, at the front."""
        self.ready.appendleft(message._replace(redelivered=True))

    def purge(self) -> int:
        """Drop what waits; how much it was."""
        count = len(self.ready)
        self.ready.clear()
        return count

    def dispatch(self) -> None:
        """Deliver as long as there is a consumer that takes more."""
        while self.ready:
            self.consumers.rotate(-1)
            consumer = next((each for each in self.consumers if each.takes_more()), None)
            if consumer is None:
                break
            consumer.deliver(self.ready.popleft())


def matches(pattern: str, key: str) -> bool:
    """Whether a routing key has the words of a pattern: ``*`` is one word, ``#`` any number of them."""
    words = key.split(".") if key else []
    reached = {0}  # how many words the pattern so far may stand for
    for part in pattern.split(".") if pattern else []:
        if part == "#":
            reached = set(range(min(reached, default=len(words) + 1), len(words) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(words) and part in ("*", words[at])}
    return len(words) in reached


KINDS: dict[str, Callable[[str, str], bool]] = {
    "direct": str.__eq__,
    "fanout": lambda bound, key: True,
    "topic": matches,
}


@dataclass(eq=False)
class Exchange:
    """Passes messages to the queues that are bound to it."""

    kind: str
    bindings: dict[tuple[str, str], Queue] = field(default_factory=dict)  # by name of the queue and key

    def route(self, key: str) -> set[Queue]:
        """The queues that a message with a routing key goes to."""
        takes = KINDS[self.kind]
        return {queue for (_, bound), queue in self.bindings.items() if takes(bound, key)}


class Store:
    """All exchanges and queues. The default exchange has the empty name."""

    def __init__(self) -> None:
        own = {"": "direct", **{f"amq.{kind}": kind for kind in KINDS}}
        self.own = frozenset(own)
        self.exchanges = {name: Exchange(kind) for name, kind in own.items()}
        self.queues: dict[str, Queue] = {}

    def exchange(self, name: str) -> Exchange:
        """The exchange of a name."""
        if name not in self.exchanges:
            raise refused.AmqpNotFound(f"no exchange '{name}'")
        return self.exchanges[name]

    def declare_exchange(self, name: str, kind: str) -> None:
        """Make an exchange, or find it as it should be."""
        if kind not in KINDS:
            raise refused.AmqpNotImplemented(f"exchanges of type '{kind}'")
        if self.exchanges.setdefault(name, Exchange(kind)).kind != kind:
            raise refused.AmqpPreconditionFailed(f"exchange '{name}' is of another type")

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange, if it is there."""
        if name in self.own:
            raise refused.AmqpAccessRefused(f"exchange '{name}' is the broker's own")
        self.exchanges.pop(name, None)

    def queue(self, name: str, user: object) -> Queue:
        """The queue of a name, for a connection that may use it."""
        if name not in self.queues:
            raise refused.AmqpNotFound(f"no queue '{name}'")
        if self.queues[name].owner not in (None, user):
            raise refused.AmqpResourceLocked(f"queue '{name}' belongs to another connection")
        return self.queues[name]

    def declare_queue(self, name: str, user: object, exclusive: bool, auto_delete: bool) -> Queue:
        """Make a queue, or find it; an empty name makes one up."""
        name = name or f"amq.gen-{uuid4()}"
        if name not in self.queues:
            queue = self.queues[name] = Queue(name, user if exclusive else None, auto_delete)
            self.exchanges[""].bindings[name, name] = queue
        return self.queue(name, user)

    def delete_queue(self, queue: Queue) -> int:
        """Delete a queue; how many messages were in it."""
        self.queues.pop(queue.name, None)
        for exchange in self.exchanges.values():
            exchange.bindings = {key: each for key, each in exchange.bindings.items() if each is not queue}
        for consumer in list(queue.consumers):
            consumer.cancelled()
        return len(queue.ready)
