"""amqpcodec, both builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from corpus import CHANNEL, FRAME_MAX, Content, FrameValues

import amqpcodec
from amqpcodec._backend import load
from amqpcodec.connection import ClientLogin, ServerLogin
from peers.interface import Peer, shared_properties, shared_values


class Ours:
    """One build of amqpcodec."""

    def __init__(self, name: str, impl: str) -> None:
        self.name = name
        self.version = amqpcodec.__version__
        self.amqp: ModuleType = load("amqpcodec._generated.rabbitmq", impl)
        self._impl = impl

    def decode(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        frames: Iterator[Any] = self.amqp.FrameDecoder(frame_max=FRAME_MAX).feed(data)
        return frames

    def decode_raw(self, data: bytes) -> Iterator[Any]:
        """As `decode`, field tables left as octets."""
        frames: Iterator[Any] = self.amqp.FrameDecoder(frame_max=FRAME_MAX, tables="raw").feed(data)
        return frames

    def decode_unlimited(self, data: bytes) -> Iterator[Any]:
        """As `decode`, frames of any size."""
        frames: Iterator[Any] = self.amqp.FrameDecoder(frame_max=0).feed(data)
        return frames

    def values(self, frame: Any) -> FrameValues:
        """See `Peer`."""
        payload = frame.payload
        if frame.type == 1:
            values = tuple(shared_values(getattr(payload, field.attribute)) for field in payload.spec.fields)
            return ("method", frame.channel, payload.spec.name, values)
        if frame.type == 2:
            properties = payload.properties
            fields = (
                (field.attribute, getattr(properties, field.attribute)) for field in properties.spec.fields
            )
            return ("header", frame.channel, payload.body_size, shared_properties(fields))
        return ("body", frame.channel, payload)

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """See `Peer`."""
        decoder = self.amqp.FrameDecoder(frame_max=FRAME_MAX)
        for chunk in chunks:
            yield from decoder.feed(chunk)

    def consume(self, chunks: Iterable[bytes]) -> int:
        """See `Peer`."""
        decoder = self.amqp.FrameDecoder(frame_max=FRAME_MAX)
        total = 0
        for chunk in chunks:
            for frame in decoder.feed(chunk):
                if frame.type == 1:
                    total += frame.payload.delivery_tag
                elif frame.type == 2:
                    total += len(frame.payload.properties.message_id)
                else:
                    total += len(frame.payload)
        return total

    def consume_messages(self, chunks: Iterable[bytes]) -> int:
        """As `consume`, of whole messages."""
        decoder = self.amqp.MessageDecoder(frame_max=FRAME_MAX)
        total = 0
        for chunk in chunks:
            for message in decoder.feed(chunk):
                total += message.method.delivery_tag
                total += len(message.properties.message_id)
                total += len(message.body)
        return total

    def messages(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        messages: Iterator[Any] = self.amqp.MessageDecoder(frame_max=FRAME_MAX).feed(data)
        return messages

    def client(self, consumer_tags: Iterable[str] = (), no_ack: bool = True) -> Any:
        """A client with these consumers on the channel of the corpora."""
        amqp = self.amqp
        client = load("amqpcodec.connection.machine", self._impl).Connection("client", amqp)
        login = ClientLogin()
        answers = [
            (0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US")),
            (0, amqp.Connection.Tune(0, FRAME_MAX, 0)),
            (0, amqp.Connection.OpenOk()),
        ]
        for channel, answer in answers:
            for event in client.receive_data(amqp.encode_method(channel, answer)):
                login.handle(client, event)
        self.open_channel(client, consumer_tags, no_ack)
        return client

    def open_channel(self, client: Any, consumer_tags: Iterable[str], no_ack: bool) -> None:
        """Open the channel of the corpora; if it is open, anew, so that delivery tags start over."""
        amqp = self.amqp
        if CHANNEL in client.channels:
            client.close_channel(CHANNEL)
            list(client.receive_data(amqp.encode_method(CHANNEL, amqp.Channel.CloseOk())))
        client.send(CHANNEL, amqp.Channel.Open())
        for tag in consumer_tags:
            client.send(CHANNEL, amqp.Basic.Consume(consumer_tag=tag, no_ack=no_ack, no_wait=True))
        list(client.receive_data(amqp.encode_method(CHANNEL, amqp.Channel.OpenOk())))
        client.data_to_send()

    def server(self) -> Any:
        """A server whose client has opened the channel of the corpora."""
        amqp = self.amqp
        server = load("amqpcodec.connection.machine", self._impl).Connection("server", amqp)
        login = ServerLogin(lambda name, password: True)
        calls = [
            (0, amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0guest", "en_US")),
            (0, amqp.Connection.TuneOk(2047, FRAME_MAX, 0)),
            (0, amqp.Connection.Open("/")),
            (CHANNEL, amqp.Channel.Open()),
        ]
        octets = b"".join(amqp.encode_method(channel, method) for channel, method in calls)
        for event in server.receive_data(amqp.protocol_header() + octets):
            if not login.handle(server, event):
                server.send(CHANNEL, amqp.Channel.OpenOk())
        server.data_to_send()
        return server

    def body(self, message: Any) -> bytes:
        """See `Peer`."""
        return bytes(message.body)

    def publish(self, content: Content) -> bytes:
        """See `Peer`."""
        amqp = self.amqp
        method = amqp.BasicPublish(exchange=content.exchange, routing_key=content.routing_key)
        properties = amqp.BasicProperties(
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            headers=content.headers,
            timestamp=content.moment,
            message_id=content.message_id,
        )
        octets: bytes = amqp.encode_message(CHANNEL, method, properties, content.body)
        return octets

    def built(self, content: Content) -> tuple[Any, ...]:
        """The arguments of `encode_message` for a publish."""
        amqp = self.amqp
        method = amqp.BasicPublish(exchange=content.exchange, routing_key=content.routing_key)
        properties = amqp.BasicProperties(
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            headers=content.headers,
            timestamp=content.moment,
            message_id=content.message_id,
        )
        return CHANNEL, method, properties, content.body

    def prepared(self, content: Content) -> Callable[[Content], bytes]:
        """As `publish`, for contents that have exchange, content type and delivery mode of this one."""
        amqp = self.amqp
        encode = amqp.prepare_message(
            CHANNEL,
            amqp.BasicPublish(exchange=content.exchange),
            amqp.BasicProperties(content_type=content.content_type, delivery_mode=content.delivery_mode),
        ).encode

        def publish(content: Content) -> bytes:
            octets: bytes = encode(
                content.body,
                routing_key=content.routing_key,
                headers=content.headers,
                timestamp=content.moment,
                message_id=content.message_id,
            )
            return octets

        return publish

    def publish_parts(self, content: Content) -> list[bytes | memoryview]:
        """As `publish`, in buffers that leave the body where it is."""
        parts: list[bytes | memoryview] = self.amqp.encode_message_parts(*self.built(content))
        return parts

    def ack(self, tag: int, multiple: bool) -> bytes:
        """See `Peer`."""
        amqp = self.amqp
        octets: bytes = amqp.encode_method(CHANNEL, amqp.BasicAck(tag, multiple))
        return octets

    def nack(self, tag: int, multiple: bool, requeue: bool) -> bytes:
        """See `Peer`."""
        amqp = self.amqp
        octets: bytes = amqp.encode_method(CHANNEL, amqp.BasicNack(tag, multiple, requeue))
        return octets

    def setup(self, queue: str) -> bytes:
        """See `Peer`."""
        amqp, encode = self.amqp, self.amqp.encode_method
        return b"".join(
            (
                encode(CHANNEL, amqp.BasicQos(prefetch_count=100)),
                encode(CHANNEL, amqp.QueueDeclare(queue=queue, durable=True)),
                encode(CHANNEL, amqp.QueueBind(queue=queue, exchange="orders", routing_key="orders.#")),
                encode(CHANNEL, amqp.BasicConsume(queue=queue, consumer_tag="ctag1")),
            )
        )

    def header_writer(self, properties: dict[str, Any]) -> Callable[[], bytes]:
        """See `Peer`."""
        make, encode = self.amqp.BasicProperties, self.amqp.encode_header
        values = {**properties, "timestamp": datetime.fromtimestamp(properties["timestamp"], UTC)}

        def write() -> bytes:
            octets: bytes = encode(CHANNEL, make(**values), 256)
            return octets

        return write

    def start(self, server_properties: dict[str, Any], mechanisms: bytes, locales: bytes) -> bytes:
        """See `Peer`."""
        amqp = self.amqp
        method = amqp.ConnectionStart(0, 9, server_properties, mechanisms, locales)
        octets: bytes = amqp.encode_method(0, method)
        return octets

    def decode_table(self, octets: bytes) -> dict[str, Any]:
        """See `Peer`."""
        table: dict[str, Any] = self.amqp.decode_table(octets)
        return table

    def encode_table(self, table: dict[str, Any]) -> bytes:
        """See `Peer`."""
        octets: bytes = self.amqp.encode_table(table)
        return octets


def compiled() -> Peer:
    """The compiled build."""
    return Ours("amqpcodec", "c")


def pure() -> Peer:
    """The pure-Python build."""
    return Ours("amqpcodec pure", "py")
