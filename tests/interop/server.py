"""``python -m interop.server DIALECT``: a broker of one dialect in a page of code, for clients that speak it.

It has what a client of JMS asks for: exchanges, queues, consumers, acknowledgements, transactions. The
connection of this package judges all of it. Prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from amqpcodec import aio
from amqpcodec.aio import AmqpStream
from amqpcodec.connection import (
    ChannelClosed,
    FlowChanged,
    MessageReceived,
    MethodReceived,
    ServerLogin,
    Settled,
    Violation,
)

PREFETCH = 500


class Message(NamedTuple):
    """A message, as it was published."""

    exchange: str
    routing_key: str
    properties: Any
    body: bytes
    redelivered: bool = False


class Store:
    """What all connections share: exchanges with their bindings, and queues."""

    def __init__(self) -> None:
        self.queues: dict[str, deque[Message]] = {}
        self.bindings: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)  # of exchanges: key, queue
        self.names = count(1)
        self.sessions: list[Session] = []

    def route(self, message: Message) -> bool:
        """Put a message into its queues; whether there is one."""
        found = [name for key, name in self.bindings[message.exchange] if key == message.routing_key]
        if not message.exchange and message.routing_key in self.queues:
            found = [message.routing_key]
        for name in found:
            self.queues[name].append(message)
        return bool(found)

    def deliver(self) -> None:
        """Give consumers what there is for them."""
        for session in self.sessions:
            session.deliver()


class Channel:
    """The state of a channel beside that of the connection."""

    def __init__(self) -> None:
        self.consumers: dict[str, tuple[str, bool]] = {}  # by tag: queue, whether nothing is acknowledged
        self.unsettled: dict[int, tuple[str, Message]] = {}
        self.is_transacted = False
        self.published: list[Message] = []
        self.settled: list[Settled] = []
        self.active = True


class Session:
    """Answers one connection."""

    def __init__(self, store: Store, stream: AmqpStream) -> None:
        self.store = store
        self.connection = stream.connection
        self.amqp = stream.connection.dialect
        self.channels: dict[int, Channel] = defaultdict(Channel)

    def handle(self, event: Any) -> None:
        """Do what an event asks for."""
        match event:
            case Violation():
                print(event, file=sys.stderr, flush=True)
            case MessageReceived(channel, method, properties, body):
                message = Message(method.exchange, method.routing_key, properties, body)
                if self.channels[channel].is_transacted:
                    self.channels[channel].published.append(message)
                else:
                    self.publish(channel, message, method.mandatory)
            case FlowChanged(channel, active):
                self.channels[channel].active = active
            case ChannelClosed(channel):
                self.put_back(channel)
                del self.channels[channel]
            case Settled(channel) if self.channels[channel].is_transacted:
                self.channels[channel].settled.append(event)
            case Settled(channel):
                self.settle(channel, event)
            case MethodReceived(channel, method):
                getattr(self, method.spec.name.replace(".", "_").replace("-", "_"))(channel, method)
        self.store.deliver()

    def publish(self, channel: int, message: Message, mandatory: bool = False) -> None:
        """Route a message, or return it."""
        if not self.store.route(message) and mandatory:
            back = self.amqp.Basic.Return(312, "NO_ROUTE", message.exchange, message.routing_key)
            self.connection.send_message(channel, back, message.properties, message.body)

    def settle(self, channel: int, event: Settled) -> None:
        """Forget deliveries, or put them back."""
        entry = self.channels[channel]
        requeue = getattr(event.method, "requeue", False)
        for tag in event.tags:
            queue, message = entry.unsettled.pop(tag)
            if requeue:
                self.store.queues[queue].appendleft(message._replace(redelivered=True))

    def put_back(self, channel: int) -> None:
        """Put all that is not settled back into its queues."""
        for queue, message in reversed(self.channels[channel].unsettled.values()):
            if queue in self.store.queues:
                self.store.queues[queue].appendleft(message._replace(redelivered=True))
        self.channels[channel].unsettled.clear()

    def deliver(self) -> None:
        """Send the next messages to consumers."""
        for number, entry in self.channels.items():
            for tag, (name, no_ack) in entry.consumers.items():
                queue = self.store.queues.get(name, deque())
                while queue and entry.active and len(entry.unsettled) < PREFETCH:
                    message = queue.popleft()
                    sent = self.connection.next_delivery_tag(number)
                    deliver = self.amqp.Basic.Deliver(
                        tag, sent, message.redelivered, message.exchange, message.routing_key
                    )
                    self.connection.send_message(number, deliver, message.properties, message.body)
                    if not no_ack:
                        entry.unsettled[sent] = (name, message)

    # -- requests, by their names

    def answer(self, channel: int, request: Any, *fields: Any) -> None:
        """Send the answer to a request, unless it wants none."""
        wants_none = getattr(request, "nowait", False) or getattr(request, "no_wait", False)
        if not wants_none:
            owner, method = request.spec.name.split(".")
            answers = getattr(self.amqp, owner.capitalize())
            self.connection.send(channel, getattr(answers, method.capitalize() + "Ok")(*fields))

    def channel_open(self, channel: int, request: Any) -> None:
        self.channels.pop(channel, None)
        self.answer(channel, request)

    def access_request(self, channel: int, request: Any) -> None:
        self.answer(channel, request, 1)

    def exchange_declare(self, channel: int, request: Any) -> None:
        self.answer(channel, request)

    def exchange_bound(self, channel: int, request: Any) -> None:
        bound = (request.routing_key, request.queue) in self.store.bindings[request.exchange]
        self.answer(channel, request, 0 if bound else 2, "")

    def queue_declare(self, channel: int, request: Any) -> None:
        name = request.queue or f"queue-{next(self.store.names)}"
        queue = self.store.queues.setdefault(name, deque())
        self.answer(channel, request, name, len(queue), 0)

    def queue_bind(self, channel: int, request: Any) -> None:
        self.store.bindings[request.exchange][request.routing_key, request.queue] = None
        self.answer(channel, request)

    def queue_delete(self, channel: int, request: Any) -> None:
        self.answer(channel, request, len(self.store.queues.pop(request.queue, ())))

    def basic_qos(self, channel: int, request: Any) -> None:
        self.answer(channel, request)

    def basic_consume(self, channel: int, request: Any) -> None:
        tag = request.consumer_tag or f"tag-{next(self.store.names)}"
        self.channels[channel].consumers[tag] = (request.queue, request.no_ack)
        self.answer(channel, request, tag)

    def basic_cancel(self, channel: int, request: Any) -> None:
        self.channels[channel].consumers.pop(request.consumer_tag)
        self.answer(channel, request, request.consumer_tag)

    def basic_recover(self, channel: int, request: Any) -> None:
        self.put_back(channel)
        if request.spec.responses:
            self.answer(channel, request)

    def tx_select(self, channel: int, request: Any) -> None:
        self.channels[channel].is_transacted = True
        self.answer(channel, request)

    def tx_commit(self, channel: int, request: Any) -> None:
        entry = self.channels[channel]
        for message in entry.published:
            self.publish(channel, message)
        for event in entry.settled:
            self.settle(channel, event)
        entry.published, entry.settled = [], []
        self.answer(channel, request)

    def tx_rollback(self, channel: int, request: Any) -> None:
        entry = self.channels[channel]
        entry.published, entry.settled = [], []
        self.answer(channel, request)


async def main(arguments: Iterable[str]) -> None:
    """Serve the dialect until the standard input ends."""
    (dialect,) = arguments
    store = Store()

    async def handle(stream: AmqpStream) -> None:
        session = Session(store, stream)
        store.sessions.append(session)
        async for event in stream:
            session.handle(event)
        for channel in session.channels:
            session.put_back(channel)
        store.sessions.remove(session)

    login = ServerLogin(lambda name, password: (name, password) == ("guest", "guest"))
    # Properties stay the octets that they are: clients write tags that the text of their dialect has not.
    server = await aio.serve(handle, "127.0.0.1", 0, login=login, dialect=dialect, properties="raw")
    async with server:
        print(f"listening on 127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
