"""The broker for tests: clients that send anything neither end it nor leave anything behind."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from functools import cache
from typing import Any

from promises import demand
from support.hello import HELLO, OPEN

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing import Broker

MAX_STEPS = 100
# From here a program goes somewhere: most single methods at a new broker end in 404.
SET_UP = OPEN + b"".join(
    amqp.encode_method(1, method)
    for method in (
        amqp.Queue.Declare(
            queue="q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"}
        ),
        amqp.Queue.Declare(queue="r", arguments={"x-max-length": 2, "x-dead-letter-exchange": "e"}),
        amqp.Exchange.Declare(exchange="e", type="topic"),
        amqp.Queue.Bind(queue="q", exchange="e", routing_key="#"),
        amqp.Basic.Consume(queue="q"),
        amqp.Confirm.Select(),
    )
)
BEGINNINGS = (SET_UP, OPEN, HELLO, b"")
METHODS = [cls for cls in amqp.METHODS.values() if cls.spec.server is not None and cls.spec.class_id != 10]
# So few that they meet each other.
KEYS = (
    "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow",
    "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-priority",
    "x-single-active-consumer", "x-match", "x-priority", "alternate-exchange",
    "x-queue-type", "x-queue-mode", "x-queue-version", "x-max-age", "x-stream-offset", "CC",
)  # fmt: skip
VALUES = (
    0, 1, 2, 1000, -1, "q", "e", "all", "any", "drop-head", "reject-publish", "classic", "lazy", True, None,
    [1], 1 << 40, b"e", Decimal("2.5"), {"a": ["b"]}, ["q", "amq.rabbitmq.reply-to.1"],
)  # fmt: skip
TEXTS = (
    "", "q", "r", "e", "f", "direct", "fanout", "topic", "headers", "amq.topic", "amq.rabbitmq.reply-to", "5",
    "amq.rabbitmq.reply-to.1",
)  # fmt: skip


class Transport:
    """A transport whose octets are read for the channels that the broker closes.

    Attributes:
        closed: channels that it has closed.
        is_closed: whether the connection is.
    """

    def __init__(self) -> None:
        self._decoder = amqp.FrameDecoder()
        self.closed: list[int] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        """Take octets."""
        for frame in self._decoder.feed(data):
            if isinstance(frame.payload, amqp.Channel.Close):
                self.closed.append(frame.channel)

    def is_closing(self) -> bool:
        """Return whether it was closed."""
        return self.is_closed

    def close(self) -> None:
        """Close."""
        self.is_closed = True

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return nothing."""
        return default

    def pause_reading(self) -> None:
        """Read no more; the program does not ask."""

    resume_reading = pause_reading


class Client:
    """One connection to a broker, without a socket."""

    def __init__(self, broker: Broker, octets: bytes) -> None:
        self._stream = broker._connect()
        self._transport = Transport()
        self._stream.connection_made(self._transport)
        self.send(octets)

    def send(self, octets: bytes) -> None:
        """Send octets as far as the broker takes them, and open the channels again that it closes."""
        while octets and not self._transport.is_closed:
            buffer = self._stream.get_buffer(-1)
            part, octets = octets[: len(buffer)], octets[len(buffer) :]
            buffer[: len(part)] = part
            self._stream.buffer_updated(len(part))
            self._stream.flush()
            for number in self._transport.closed:
                octets += amqp.encode_method(number, amqp.Channel.CloseOk())
                octets += amqp.encode_method(number, amqp.Channel.Open())
            self._transport.closed.clear()

    def leave(self) -> None:
        """Lose the connection."""
        self._transport.close()
        self._stream.connection_lost(None)


class Program:
    """Methods with arguments of a small vocabulary, made of octets."""

    def __init__(self, octets: bytes) -> None:
        self._octets = iter(octets)
        self.is_over = False

    def number(self, below: int) -> int:
        """Return a number; 0 once the octets are used up."""
        octet = next(self._octets, None)
        self.is_over = octet is None
        return (octet or 0) % below

    def frames(self) -> bytes:
        """Return a method, with a content where it has one."""
        cls, channel = METHODS[self.number(len(METHODS))], 1 + (self.number(8) == 0)
        fields = [field for field in cls.spec.fields if not field.reserved and field.type != "longstr"]
        method = cls(**{field.attribute: self.value(field.type) for field in fields})
        if not cls.spec.content:
            return amqp.encode_method(channel, method)
        properties = amqp.BasicProperties(
            priority=self.number(12), expiration=(None, "0", "5", "x")[self.number(4)],
            headers=self.value("table"), reply_to=(None, "amq.rabbitmq.reply-to")[self.number(2)],
        )  # fmt: skip
        return amqp.encode_message(channel, method, properties, bytes(self.number(4)))

    def value(self, kind: str) -> Any:
        """Return a value of a type of the wire."""
        match kind:
            case "bit":
                return self.number(4) == 0
            case "table":
                return {
                    KEYS[self.number(len(KEYS))]: VALUES[self.number(len(VALUES))]
                    for _ in range(self.number(3))
                }
            case "shortstr":
                return TEXTS[self.number(len(TEXTS))]
        return (0, 1, 2, 200)[self.number(4)]


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def broker(data: bytes) -> None:
    """Three clients, by a program of methods or with octets of any kind."""
    if data:
        _loop().run_until_complete(_played(data[0], data[1:]))


async def _played(mode: int, octets: bytes) -> None:
    broker = Broker()
    broker.clock.start()
    broker._begin()
    store, beginning = broker.store, BEGINNINGS[mode % 4]
    clients = [Client(broker, beginning) for _ in range(3)]
    if beginning is SET_UP:
        await _run(Program(octets), broker, clients)
    else:
        for client in clients:
            client.send(octets)
    await asyncio.sleep(0)
    for client in clients:
        client.leave()
    demand(not broker.errors, "the broker failed", broker.errors)
    demand(not broker.sessions and not broker.consumers(), "a client that left is there")
    _works(broker)
    for name in broker.queues():
        broker.hosts["/"].delete_queue(broker.hosts["/"].queue(name))
    demand(store.octets == 0, "octets of messages that are gone", store.octets)
    broker.clock.stop()


async def _run(program: Program, broker: Broker, clients: list[Client]) -> None:
    for _ in range(MAX_STEPS):
        step = program.number(16)
        if program.is_over:
            return
        if step == 0:
            broker.clock.advance(program.number(4) / 2)
        elif step == 1:
            clients[0].leave()
            clients[0] = Client(broker, SET_UP)
        elif step == 2:
            await asyncio.sleep(0)
        else:
            clients[step % 3].send(program.frames())


def _works(broker: Broker) -> None:
    client = Client(broker, OPEN + amqp.encode_method(1, amqp.Queue.Declare(queue="well")))
    client.send(amqp.encode_message(1, amqp.Basic.Publish(routing_key="well"), amqp.BasicProperties(), b"1"))
    client.leave()
    demand([bytes(each.body) for each in broker.queue("well").ready] == [b"1"], "the broker serves no more")
