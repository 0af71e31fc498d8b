"""How each library receives a server's stream: chunks in, a call for each message out; no sockets.

A receiver has been through the handshake of its library, with consumers that need not acknowledge. `run`
takes the octets of deliveries and returns once the last message was passed on. `take` is called with what a
consumer gets: method, properties and body, in the library's own form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import corpus
from peers.interface import MissingError, shared_properties

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream
from amqpcodec.connection import MessageReceived

CHANNEL = corpus.CHANNEL
Take = Callable[[Any, Any, Any], None]


def handshake() -> list[bytes]:
    """What a server sends until a channel is open."""
    start = amqp.Connection.Start(0, 9, corpus.SERVER_PROPERTIES, corpus.MECHANISMS, corpus.LOCALES)
    methods = [start, amqp.Connection.Tune(2047, corpus.FRAME_MAX, 0), amqp.Connection.OpenOk()]
    return [
        *(amqp.encode_method(0, method) for method in methods),
        amqp.encode_method(CHANNEL, amqp.Channel.OpenOk()),
    ]


def consume_ok(tag: str) -> bytes:
    """The answer to basic.consume."""
    return bytes(amqp.encode_method(CHANNEL, amqp.Basic.ConsumeOk(tag)))


class Receiver:
    """One way to receive.

    Args:
        ours: the build of amqpcodec, for the ways that are ours.
        tags: consumer tags.
        take: what a consumer does with a message.
    """

    name = ""

    def __init__(self, ours: Any, tags: list[str], take: Take) -> None:
        self.take = take
        self.set_up(ours, tags)

    def set_up(self, ours: Any, tags: list[str]) -> None:
        """Go through the handshake, and consume."""

    def run(self, chunks: list[bytes], messages: int) -> None:
        """Receive so many messages."""
        raise NotImplementedError

    def close(self) -> None:
        """End what works in the background."""

    def values(self, method: Any, properties: Any, body: Any) -> tuple[Any, ...]:
        """Consumer tag, delivery tag, exchange, routing key, properties and body; not timed."""
        fields = ((field.attribute, getattr(properties, field.attribute)) for field in properties.spec.fields)
        return (*_route(method), shared_properties(fields), body)


def _route(method: Any) -> tuple[Any, ...]:
    return method.consumer_tag, method.delivery_tag, method.exchange, method.routing_key


class Decoder(Receiver):
    """`MessageDecoder`: it knows no connection."""

    name = "MessageDecoder"

    def set_up(self, ours: Any, tags: list[str]) -> None:
        self.decoder = ours.amqp.MessageDecoder(frame_max=corpus.FRAME_MAX, expect_header=False)

    def run(self, chunks: list[bytes], messages: int) -> None:
        take, feed = self.take, self.decoder.feed
        for chunk in chunks:
            for message in feed(chunk):
                take(message.method, message.properties, message.body)


class Client(Receiver):
    """`Connection` as a client."""

    name = "Connection"

    def set_up(self, ours: Any, tags: list[str]) -> None:
        self.connection = ours.client(tags)

    def run(self, chunks: list[bytes], messages: int) -> None:
        take, receive = self.take, self.connection.receive_data
        for chunk in chunks:
            for event in receive(chunk):
                if type(event) is MessageReceived:
                    take(event.method, event.properties, event.body)


class Looped(Receiver):
    """A way that needs a loop of asyncio."""

    def set_up(self, ours: Any, tags: list[str]) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.start(ours, tags))

    async def start(self, ours: Any, tags: list[str]) -> None:
        """As `set_up`."""

    async def receive(self, chunks: list[bytes], messages: int) -> None:
        """As `run`."""

    def run(self, chunks: list[bytes], messages: int) -> None:
        self.loop.run_until_complete(self.receive(chunks, messages))

    def close(self) -> None:
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
        self.loop.close()


class Transport:
    """A transport that is fed, and drops what is written."""

    def write(self, octets: bytes) -> None:
        """Octets for the peer."""

    def pause_reading(self) -> None:
        """The protocol has enough; what feeds it waits for its reader anyway."""

    resume_reading = pause_reading


class Adapter(Looped):
    """`AmqpStream` on a transport that is fed: a task iterates over its events."""

    name = "AmqpStream"

    async def start(self, ours: Any, tags: list[str]) -> None:
        self.stream = AmqpStream(ours.client(tags))
        self.stream.connection_made(Transport())

    async def receive(self, chunks: list[bytes], messages: int) -> None:
        reader = asyncio.create_task(self.read(messages))
        for chunk in chunks:
            self.stream.get_buffer(-1)[: len(chunk)] = chunk
            self.stream.buffer_updated(len(chunk))
            await asyncio.sleep(0)
        await reader

    async def read(self, messages: int) -> None:
        take = self.take
        async for event in self.stream:
            if type(event) is MessageReceived:
                take(event.method, event.properties, event.body)
                messages -= 1
                if not messages:
                    break


class AiormqFrames(Looped):
    """aiormq's `FrameReceiver` alone, on a `StreamReader` that is fed; three frames are a message."""

    name = "aiormq FrameReceiver"

    async def start(self, ours: Any, tags: list[str]) -> None:
        try:
            from aiormq.connection import FrameReceiver
        except ImportError as error:
            raise MissingError(str(error)) from None
        self.reader = asyncio.StreamReader()
        self.frames = FrameReceiver(self.reader)

    async def receive(self, chunks: list[bytes], messages: int) -> None:
        task = asyncio.create_task(self.read(messages))
        for chunk in chunks:
            self.reader.feed_data(chunk)
            await asyncio.sleep(0)
        await task

    async def read(self, messages: int) -> None:
        get_frame, take = self.frames.get_frame, self.take
        for _ in range(messages):
            (_, _, method), (_, _, header), (_, _, body) = (
                await get_frame(),
                await get_frame(),
                await get_frame(),
            )
            take(method, header.properties, body.value)

    def values(self, method: Any, properties: Any, body: Any) -> tuple[Any, ...]:
        pairs = ((name.replace("cluster_id", "reserved"), value) for name, value in properties)
        return (*_route(method), shared_properties(pairs), body)


class Aiormq(AiormqFrames):
    """aiormq's connection and channel behind its `FrameReceiver`: the consumer is called in a task."""

    name = "aiormq"

    async def start(self, ours: Any, tags: list[str]) -> None:
        await super().start(ours, tags)
        from aiormq import Channel, Connection
        from pamqp import commands

        connection = Connection("amqp://localhost/?heartbeat=0")
        connection.connection_tune = commands.Connection.Tune(2047, corpus.FRAME_MAX, 0)
        channel = Channel(connection, CHANNEL, publisher_confirms=False)
        channel.consumers = dict.fromkeys(tags, self.consume)
        connection.channels[CHANNEL] = channel
        self.task = asyncio.create_task(connection._Connection__reader(self.frames))

    async def consume(self, message: Any) -> None:
        self.take(message.delivery, message.header.properties, message.body)
        self.left -= 1

    async def receive(self, chunks: list[bytes], messages: int) -> None:
        self.left = messages
        for chunk in chunks:
            self.reader.feed_data(chunk)
            await asyncio.sleep(0)
        while self.left:
            await asyncio.sleep(0)


class Pika(Receiver):
    """pika's connection and channel, on an adapter that is fed."""

    name = "pika"

    def set_up(self, ours: Any, tags: list[str]) -> None:
        import pika.connection

        ignored = {
            name: lambda self, *given: None
            for name in pika.connection.Connection.__abstractmethods__
            if name.startswith("_adapter")
        }
        fed = type("Fed", (pika.connection.Connection,), ignored)
        connection = fed(pika.ConnectionParameters(heartbeat=0), internal_connection_workflow=False)
        connection._on_stream_connected()
        self.feed = connection._on_data_available
        *tuning, open_ok = handshake()
        for octets in tuning:
            self.feed(octets)
        channel = connection.channel(CHANNEL)
        self.feed(open_ok)
        for tag in tags:
            channel.basic_consume("q", self.consume, auto_ack=True, consumer_tag=tag)
            self.feed(consume_ok(tag))

    def consume(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.take(method, properties, body)

    def run(self, chunks: list[bytes], messages: int) -> None:
        for chunk in chunks:
            self.feed(chunk)

    def values(self, method: Any, properties: Any, body: Any) -> tuple[Any, ...]:
        pairs = ((name.replace("cluster_id", "reserved"), value) for name, value in vars(properties).items())
        return (*_route(method), shared_properties(pairs), body)


class Socket:
    """A socket that returns octets at hand, and drops what is written."""

    def __init__(self, octets: Iterable[bytes]) -> None:
        self.take(octets)

    def take(self, octets: Iterable[bytes]) -> None:
        """Have these octets at hand."""
        self.chunks = iter(octets)
        self.chunk, self.at = b"", 0

    def recv(self, most: int) -> bytes:
        """Some octets, of one chunk."""
        if self.at == len(self.chunk):
            self.chunk, self.at = next(self.chunks, b""), 0
        begin, self.at = self.at, min(self.at + most, len(self.chunk))
        return self.chunk[begin : self.at]

    def sendall(self, octets: bytes) -> None:
        """Octets for the peer."""

    def gettimeout(self) -> None:
        """None is set."""

    def settimeout(self, seconds: Any) -> None:
        """None is needed."""


class PyAmqp(Receiver):
    """py-amqp's connection and channel on a socket that is fed; it asks that for what it needs next."""

    name = "py-amqp"

    def set_up(self, ours: Any, tags: list[str]) -> None:
        import amqp as pyamqp
        from amqp.transport import TCPTransport

        self.socket = Socket([*handshake(), *map(consume_ok, tags)])

        class Fed(TCPTransport):  # type: ignore[misc]
            def connect(transport) -> None:  # noqa: N805
                transport.sock = self.socket
                transport._setup_transport()
                transport.connected = True

        connection = pyamqp.Connection("localhost", heartbeat=0)
        connection.Transport = lambda host, timeout, ssl, *given, **options: Fed(host, timeout)
        connection.connect()
        self.drain = connection.drain_events
        channel = connection.channel(CHANNEL)
        for tag in tags:
            channel.basic_consume("q", consumer_tag=tag, no_ack=True, callback=self.consume)

    def consume(self, message: Any) -> None:
        self.take(message.delivery_info, message.properties, message.body)

    def run(self, chunks: list[bytes], messages: int) -> None:
        self.socket.take(chunks)
        drain = self.drain
        for _ in range(messages):
            drain()

    def values(self, method: Any, properties: Any, body: Any) -> tuple[Any, ...]:
        names = {"application_headers": "headers", "cluster_id": "reserved"}
        pairs = ((names.get(name, name), value) for name, value in properties.items())
        route = tuple(method[name] for name in ("consumer_tag", "delivery_tag", "exchange", "routing_key"))
        return (*route, shared_properties(pairs), body)


class Server(Receiver):
    """`Connection` as a server, which receives publishes."""

    name = "Connection, server"

    def set_up(self, ours: Any, tags: list[str]) -> None:
        self.connection = ours.server()

    run = Client.run

    def values(self, method: Any, properties: Any, body: Any) -> tuple[Any, ...]:
        fields = ((field.attribute, getattr(properties, field.attribute)) for field in properties.spec.fields)
        return method.exchange, method.routing_key, shared_properties(fields), body


WAYS: tuple[type[Receiver], ...] = (Decoder, Client, Adapter, AiormqFrames, Aiormq, Pika, PyAmqp)
