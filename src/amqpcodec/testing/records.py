"""Records of what was published and of what there is, and assertions that say what differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from .exchanges import Exchange
from .hosts import VirtualHost
from .messages import CONFIRMS, STATES, Message
from .queues import Queue

KNOWN = {"settled": STATES, "confirm": CONFIRMS}  # the values that attributes of messages may have
LISTED = 10  # messages that the text of an assertion lists
LOG_OCTETS = 64 << 20  # that the log keeps
SETTLED_OCTETS = 128  # that a message takes for each of its queues, about


class QueueState(NamedTuple):
    """Describes a queue at one moment.

    Attributes:
        name, virtual_host: which one.
        durable, exclusive, auto_delete, arguments: as declared.
        ready: the messages that wait, in order.
        unacknowledged: those that were delivered and are not settled.
        consumers: consumer tags, in the order in which they are asked.
    """

    name: str
    virtual_host: str
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: dict[str, Any]
    ready: tuple[Message, ...]
    unacknowledged: tuple[Message, ...]
    consumers: tuple[str, ...]

    @classmethod
    def of(cls, queue: Queue) -> QueueState:
        """Return what there is to know of a queue."""
        return cls(
            queue.name, queue.host.name, queue.durable, queue.owner is not None, queue.auto_delete,
            queue.arguments, tuple(entry.message for entry in queue.ready),
            tuple(entry.message for entry in queue.unacknowledged),
            tuple(consumer.tag for consumer in queue.consumers),
        )  # fmt: skip


class ExchangeState(NamedTuple):
    """Describes an exchange.

    Attributes:
        name, virtual_host: which one.
        type, durable, auto_delete, internal, arguments: as declared.
    """

    name: str
    virtual_host: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: dict[str, Any]

    @classmethod
    def of(cls, exchange: Exchange, host: VirtualHost) -> ExchangeState:
        """Return what there is to know of an exchange."""
        return cls(
            exchange.name, host.name, exchange.type, exchange.durable, exchange.auto_delete,
            exchange.internal, exchange.arguments,
        )  # fmt: skip


class BindingState(NamedTuple):
    """Describes a binding.

    Attributes:
        source: the exchange that passes messages on.
        destination: the queue or exchange that gets them.
        to_exchange: whether that is an exchange.
        routing_key, arguments: as bound.
    """

    source: str
    destination: str
    to_exchange: bool
    routing_key: str
    arguments: dict[str, Any]


class ConsumerState(NamedTuple):
    """Describes a consumer.

    Attributes:
        tag: its consumer tag.
        queue: what it consumes from.
        connection, channel: the numbers of where it is.
        no_ack, exclusive, priority: as asked for.
        unacknowledged: how much was delivered to it and is not settled.
    """

    tag: str
    queue: str
    connection: int
    channel: int
    no_ack: bool
    exclusive: bool
    priority: int
    unacknowledged: int


class ConnectionState(NamedTuple):
    """Describes a connection.

    Attributes:
        number: which one, from 1.
        user, virtual_host: who has come, and where to; empty before that is known.
        channels: the numbers of its channels.
        client_properties: what the client tells of itself.
    """

    number: int
    user: str
    virtual_host: str
    channels: tuple[int, ...]
    client_properties: dict[str, Any]


class History:
    """Keeps what was published, the oldest first.

    Args:
        most: messages that are kept; older ones are counted alone.

    Attributes:
        left_out: how many older ones are not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._messages: deque[Message] = deque()
        self._octets = 0
        self.left_out = 0

    def add(self, message: Message) -> None:
        """Keep a message that is in its queues, each of which has a fate for it; drop the oldest for it."""
        messages = self._messages
        messages.append(message)
        self._octets += message.size + len(message.settled) * SETTLED_OCTETS
        while len(messages) > self._most or self._octets > LOG_OCTETS:
            oldest = messages.popleft()
            self._octets -= oldest.size + len(oldest.settled) * SETTLED_OCTETS
            self.left_out += 1

    def find(self, wanted: dict[str, Any]) -> list[Message]:
        """Return the messages that are as wanted.

        Raises:
            TypeError: a name that messages and properties do not have.
            ValueError: a state that no message is ever in.
        """
        for name, states in KNOWN.items():
            value = wanted.get(name, states[0])
            for state in value.values() if isinstance(value, dict) else (value,):
                if state not in states:
                    raise ValueError(
                        f"no message is ever {name}={state!r}, but {', '.join(map(repr, states))}"
                    )
        return [message for message in self._messages if not differences(message, wanted)]

    def check(self, wanted: dict[str, Any], count: int | None) -> list[Message]:
        """Return the messages that are as wanted; at least one, or so many.

        Raises:
            AssertionError: there are fewer or more; the text says in what the others differ.
        """
        found = self.find(wanted)
        if len(found) == count or (count is None and found):
            return found
        asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items()) or "anything"
        lines = [f"published with {asked}: {len(found)} messages, not {'any' if count is None else count}"]
        others = sorted(
            ((differences(message, wanted), place, message) for place, message in enumerate(self._messages)),
            key=lambda each: (len(each[0]), each[1]),
        )
        for differing, place, message in others[:LISTED]:
            lines.append(f"  {place + self.left_out + 1}. {message!r}")
            lines += [f"       {difference}" for difference in differing]
        if len(others) > LISTED:
            lines.append(f"  and {len(others) - LISTED} more")
        if self.left_out:
            lines.append(f"  {self.left_out} older messages are not kept")
        raise AssertionError("\n".join(lines))


def differences(message: Message, wanted: dict[str, Any]) -> list[str]:
    """Return in what a message is not as wanted, in words."""
    found = []
    for name, value in wanted.items():
        current = _value(message, name)
        if name == "headers":
            current = {key: current[key] for key in value if key in current}
        if name == "settled" and isinstance(value, str):
            if value not in current.values():
                found.append(f"settled is {current!r}, nowhere {value!r}")
        elif current != value:
            found.append(f"{name} is {current!r}, not {value!r}")
    return found


def _value(message: Message, name: str) -> Any:
    if name in Message.__slots__ or name in ("headers", "properties"):
        return getattr(message, name)
    if name in {field.attribute for field in message.properties.spec.fields}:
        return getattr(message.properties, name)
    raise TypeError(f"messages have no {name!r}")


def check_queue(state: QueueState, wanted: dict[str, Any]) -> None:
    """Compare a queue with what is wanted of it: of messages their number, or their bodies.

    Raises:
        AssertionError: it differs; the text says in what.
        TypeError: a name that queues do not have.
    """
    wrong = []
    for name, value in wanted.items():
        if name not in QueueState._fields:
            raise TypeError(f"queues have no {name!r}")
        current = getattr(state, name)
        if name in ("ready", "unacknowledged"):
            current = [message.body for message in current]
        if isinstance(current, (list, tuple)):
            current = len(current) if isinstance(value, int) else list(current)
        if current != (list(value) if isinstance(value, tuple) else value):
            wrong.append(f"  {name} is {current!r}, not {value!r}")
    if wrong:
        raise AssertionError("\n".join([f"queue {state.name!r} is not as it should be:", *wrong]))


def bindings_of(exchanges: Iterable[Exchange]) -> list[BindingState]:
    """Return the bindings of exchanges."""
    return [
        BindingState(
            exchange.name, binding.destination.name, isinstance(binding.destination, Exchange),
            binding.routing_key, binding.arguments,
        )
        for exchange in exchanges
        for binding in exchange.bindings.values()
    ]  # fmt: skip


__all__ = [
    "BindingState", "ConnectionState", "ConsumerState", "ExchangeState", "History", "QueueState",
]  # fmt: skip
