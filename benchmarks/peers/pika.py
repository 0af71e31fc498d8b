"""pika: `frame.decode_frame` and the `marshal` of its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Any

import pika
from corpus import CHANNEL, FRAME_MAX, Content, FrameValues
from pika import frame, spec
from pika.channel import ContentFrameAssembler
from pika.data import decode_table, encode_table

from peers.interface import Peer, shared_name, shared_properties, shared_values

_size_at = Struct(">I").unpack_from


class Pika:
    """pika as installed."""

    name = "pika"
    version = pika.__version__

    def decode(self, data: bytes) -> Iterator[Any]:
        """See `Peer`; cutting the frames here spares pika the copy of everything behind each one."""
        at, end = 0, len(data)
        decode_frame = frame.decode_frame
        while at < end:
            stop = at + _size_at(data, at + 3)[0] + 8
            yield decode_frame(data[at:stop])[1]
            at = stop

    def values(self, frame: Any) -> FrameValues:
        """See `Peer`."""
        channel = frame.channel_number
        if frame.NAME == "Header":
            pairs = (
                (name.replace("cluster_id", "reserved"), value)
                for name, value in vars(frame.properties).items()
            )
            return ("header", channel, frame.body_size, shared_properties(pairs))
        if frame.NAME == "Body":
            return ("body", channel, frame.fragment)
        values = tuple(shared_values(value) for value in vars(frame.method).values())
        return ("method", channel, shared_name(frame.method.NAME), values)

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """See `Peer`; the way pika's own connection does it."""
        buffer = b""
        for chunk in chunks:
            buffer += chunk
            while buffer:
                consumed, value = frame.decode_frame(buffer)
                if value is None:
                    break
                buffer = buffer[consumed:]
                yield value

    def consume(self, chunks: Iterable[bytes]) -> int:
        """See `Peer`; frames are cut as in `decode`."""
        decode_frame = frame.decode_frame
        total, rest = 0, b""
        for chunk in chunks:
            data, at = rest + chunk, 0
            last = len(data) - 8
            while at <= last:
                stop = at + _size_at(data, at + 3)[0] + 8
                if stop > len(data):
                    break
                value = decode_frame(data[at:stop])[1]
                at = stop
                if isinstance(value, frame.Method):
                    total += value.method.delivery_tag
                elif isinstance(value, frame.Header):
                    total += len(value.properties.message_id)
                else:
                    total += len(value.fragment)
            rest = data[at:]
        return total

    def messages(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        process = ContentFrameAssembler().process
        for value in self.decode(data):
            message = process(value)
            if message is not None:
                yield message

    def body(self, message: Any) -> bytes:
        """See `Peer`."""
        return bytes(message[2])

    def publish(self, content: Content) -> bytes:
        """See `Peer`."""
        octets, size = content.body, len(content.body)
        method = spec.Basic.Publish(exchange=content.exchange, routing_key=content.routing_key)
        properties = spec.BasicProperties(
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            headers=content.headers,
            timestamp=content.seconds,
            message_id=content.message_id,
        )
        frames = [frame.Method(CHANNEL, method).marshal(), frame.Header(CHANNEL, size, properties).marshal()]
        if size <= FRAME_MAX - 8:
            frames.append(frame.Body(CHANNEL, octets).marshal())
        else:
            for at in range(0, size, FRAME_MAX - 8):
                frames.append(frame.Body(CHANNEL, octets[at : at + FRAME_MAX - 8]).marshal())
        return b"".join(frames)

    def ack(self, tag: int, multiple: bool) -> bytes:
        """See `Peer`."""
        octets: bytes = frame.Method(CHANNEL, spec.Basic.Ack(tag, multiple)).marshal()
        return octets

    def nack(self, tag: int, multiple: bool, requeue: bool) -> bytes:
        """See `Peer`."""
        octets: bytes = frame.Method(CHANNEL, spec.Basic.Nack(tag, multiple, requeue)).marshal()
        return octets

    def setup(self, queue: str) -> bytes:
        """See `Peer`."""
        bind = spec.Queue.Bind(queue=queue, exchange="orders", routing_key="orders.#")
        return b"".join(
            (
                frame.Method(CHANNEL, spec.Basic.Qos(prefetch_count=100)).marshal(),
                frame.Method(CHANNEL, spec.Queue.Declare(queue=queue, durable=True)).marshal(),
                frame.Method(CHANNEL, bind).marshal(),
                frame.Method(CHANNEL, spec.Basic.Consume(queue=queue, consumer_tag="ctag1")).marshal(),
            )
        )

    def header_writer(self, properties: dict[str, Any]) -> Callable[[], bytes]:
        """See `Peer`."""
        values = {name.replace("reserved", "cluster_id"): value for name, value in properties.items()}

        def write() -> bytes:
            octets: bytes = frame.Header(CHANNEL, 256, spec.BasicProperties(**values)).marshal()
            return octets

        return write

    def start(self, server_properties: dict[str, Any], mechanisms: bytes, locales: bytes) -> bytes:
        """See `Peer`."""
        method = spec.Connection.Start(0, 9, server_properties, mechanisms, locales)
        octets: bytes = frame.Method(0, method).marshal()
        return octets

    def decode_table(self, octets: bytes) -> dict[str, Any]:
        """See `Peer`."""
        table: dict[str, Any] = decode_table(octets, 0)[0]
        return table

    def encode_table(self, table: dict[str, Any]) -> bytes:
        """See `Peer`."""
        chunks: list[bytes] = []
        encode_table(chunks, table)
        return b"".join(chunks)


def peer() -> Peer:
    """The installed pika."""
    return Pika()
