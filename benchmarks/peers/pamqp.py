"""pamqp: `frame.unmarshal` on exactly one frame at a time, as aiormq calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from struct import Struct
from typing import Any

from corpus import CHANNEL, FRAME_MAX, Content, FrameValues
from pamqp import body, commands, decode, encode, exceptions, frame, header

from peers.interface import NotOfferedError, Peer, as_octets, shared_name, shared_properties, shared_values

_size_at = Struct(">I").unpack_from
_RENAMED = {"message_type": "type", "cluster_id": "reserved"}
_OURS = {ours: theirs for theirs, ours in _RENAMED.items()}


class Pamqp:
    """pamqp as installed."""

    name = "pamqp"
    version = version("pamqp")

    def decode(self, data: bytes) -> Iterator[Any]:
        """See `Peer`; cutting the frames here spares pamqp the copy of everything behind each one."""
        at, end = 0, len(data)
        unmarshal = frame.unmarshal
        while at < end:
            stop = at + _size_at(data, at + 3)[0] + 8
            _, channel, value = unmarshal(data[at:stop])
            at = stop
            yield channel, value

    def values(self, frame: Any) -> FrameValues:
        """See `Peer`."""
        channel, value = frame
        if isinstance(value, header.ContentHeader):
            pairs = ((_RENAMED.get(name, name), entry) for name, entry in value.properties)
            return ("header", channel, value.body_size, shared_properties(pairs))
        if isinstance(value, body.ContentBody):
            return ("body", channel, value.value)
        values = tuple(shared_values(entry) for _, entry in value)
        if value.name == "Connection.Start":
            values = (*values[:3], as_octets(values[3]), as_octets(values[4]))
        return ("method", channel, shared_name(value.name), values)

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """See `Peer`; the way AMQPStorm does it."""
        buffer = b""
        for chunk in chunks:
            buffer += chunk
            while buffer:
                try:
                    consumed, channel, value = frame.unmarshal(buffer)
                except exceptions.UnmarshalingException:
                    break
                buffer = buffer[consumed:]
                yield channel, value

    def consume(self, chunks: Iterable[bytes]) -> int:
        """See `Peer`; frames are cut as in `decode`."""
        unmarshal = frame.unmarshal
        total, rest = 0, b""
        for chunk in chunks:
            data, at = rest + chunk, 0
            last = len(data) - 8
            while at <= last:
                stop = at + _size_at(data, at + 3)[0] + 8
                if stop > len(data):
                    break
                _, _, value = unmarshal(data[at:stop])
                at = stop
                if isinstance(value, body.ContentBody):
                    total += len(value.value)
                elif isinstance(value, header.ContentHeader):
                    total += len(value.properties.message_id)
                else:
                    total += value.delivery_tag
            rest = data[at:]
        return total

    def messages(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        raise NotOfferedError("pamqp leaves putting messages together to its users")

    def body(self, message: Any) -> bytes:
        """See `Peer`."""
        raise NotOfferedError("pamqp leaves putting messages together to its users")

    def publish(self, content: Content) -> bytes:
        """See `Peer`."""
        marshal = frame.marshal
        octets, size = content.body, len(content.body)
        properties = commands.Basic.Properties(
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            headers=content.headers,
            timestamp=content.moment,
            message_id=content.message_id,
        )
        method = commands.Basic.Publish(exchange=content.exchange, routing_key=content.routing_key)
        frames = [marshal(method, CHANNEL), marshal(header.ContentHeader(0, size, properties), CHANNEL)]
        if size <= FRAME_MAX - 8:
            frames.append(marshal(body.ContentBody(octets), CHANNEL))
        else:
            for at in range(0, size, FRAME_MAX - 8):
                frames.append(marshal(body.ContentBody(octets[at : at + FRAME_MAX - 8]), CHANNEL))
        return b"".join(frames)

    def ack(self, tag: int, multiple: bool) -> bytes:
        """See `Peer`."""
        return frame.marshal(commands.Basic.Ack(tag, multiple), CHANNEL)

    def nack(self, tag: int, multiple: bool, requeue: bool) -> bytes:
        """See `Peer`."""
        return frame.marshal(commands.Basic.Nack(tag, multiple, requeue), CHANNEL)

    def setup(self, queue: str) -> bytes:
        """See `Peer`."""
        marshal = frame.marshal
        bind = commands.Queue.Bind(queue=queue, exchange="orders", routing_key="orders.#")
        return b"".join(
            (
                marshal(commands.Basic.Qos(prefetch_count=100), CHANNEL),
                marshal(commands.Queue.Declare(queue=queue, durable=True), CHANNEL),
                marshal(bind, CHANNEL),
                marshal(commands.Basic.Consume(queue=queue, consumer_tag="ctag1"), CHANNEL),
            )
        )

    def header_writer(self, properties: dict[str, Any]) -> Callable[[], bytes]:
        """See `Peer`."""
        values = {_OURS.get(name, name): value for name, value in properties.items()}
        values["timestamp"] = datetime.fromtimestamp(properties["timestamp"], UTC)

        def write() -> bytes:
            return frame.marshal(header.ContentHeader(0, 256, commands.Basic.Properties(**values)), CHANNEL)

        return write

    def start(self, server_properties: dict[str, Any], mechanisms: bytes, locales: bytes) -> bytes:
        """See `Peer`."""
        method = commands.Connection.Start(0, 9, server_properties, mechanisms.decode(), locales.decode())
        return frame.marshal(method, 0)

    def decode_table(self, octets: bytes) -> dict[str, Any]:
        """See `Peer`."""
        return decode.field_table(octets)[1]

    def encode_table(self, table: dict[str, Any]) -> bytes:
        """See `Peer`."""
        return encode.field_table(table)


def peer() -> Peer:
    """The installed pamqp."""
    return Pamqp()
