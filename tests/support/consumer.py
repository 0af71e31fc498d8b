"""A small program that uses the package the way its users would; type checkers must find no fault in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import amqpcodec
from amqpcodec import DecodeError, EncodeError, FieldValue, Limits
from amqpcodec import rabbitmq as amqp


def open_connection(virtual_host: str = "/") -> list[bytes]:
    """What a client says first, frame by frame."""
    client_properties: dict[str, Any] = {"product": "consumer", "version": FieldValue("S", "1")}
    start_ok = amqp.Connection.StartOk(client_properties, "PLAIN", b"\0guest\0guest", "en_US")
    return [
        amqp.protocol_header(),
        amqp.encode_method(0, start_ok),
        amqp.encode_method(0, amqp.Connection.TuneOk(channel_max=2047, frame_max=131072, heartbeat=60)),
        amqp.encode_method(0, amqp.Connection.Open(virtual_host), validate=True),
        amqp.encode_method(1, amqp.Channel.Open()),
    ]


def publish(channel: int, body: bytes, headers: Mapping[str, Any] | None = None) -> bytes:
    """One message as octets."""
    properties = amqp.BasicProperties(
        content_type="application/json",
        headers=headers,
        delivery_mode=2,
        timestamp=datetime(2020, 1, 1),
    )
    method = amqp.Basic.Publish(exchange="orders", routing_key="eu.created", mandatory=True)
    return amqp.encode_message(channel, method, properties, body, frame_max=131072)


def publish_parts(channel: int, body: memoryview) -> list[bytes | memoryview]:
    """One message as buffers."""
    return amqp.encode_message_parts(channel, amqp.BasicPublish(), None, body)


def describe(frame: amqpcodec.Frame) -> str:
    """A frame in a few words."""
    match frame.payload:
        case amqp.Basic.Deliver(tag, number, routing_key=key):
            return f"delivery {number} to {tag} by {key}"
        case amqp.ConnectionClose(code, text):
            return f"closed: {code} {text}"
        case amqp.Queue.DeclareOk(queue=name, message_count=count):
            return f"{name} has {count}"
        case amqpcodec.ContentHeader(properties=properties, body_size=size):
            return f"{properties!r}, {size} octets"
        case bytes() as body:
            return f"{len(body)} octets"
        case amqpcodec.Heartbeat():
            return "heartbeat"
        case amqpcodec.ProtocolHeader() as header:
            return f"version {header.version}"
        case other:
            return repr(other)


def frames(data: bytes) -> Iterator[str]:
    """Every frame of some octets in words; a bad one is left out."""
    decoder = amqp.FrameDecoder(frame_max=131072, tables="raw", limits=Limits(table_depth=32))
    decoder.feed(data)
    while True:
        try:
            for frame in decoder:
                yield f"{frame.channel}: {describe(frame)}"
            return
        except DecodeError as error:
            yield f"{error.reply_code} {error.reply_name} at {error.offset}"
            if error.fatal:
                return
            decoder.skip_frame()


def bodies(data: bytes) -> list[tuple[str, bytes]]:
    """Routing keys and bodies of the deliveries among some octets."""
    found: list[tuple[str, bytes]] = []
    for value in amqp.MessageDecoder(aborted="keep").feed(data):
        match value:
            case amqpcodec.Message(method=amqp.BasicDeliver() as method, body=bytes() as body, complete=True):
                found.append((method.routing_key, body))
            case amqpcodec.Message() | amqpcodec.Frame():
                pass
    return found


class Receiver(asyncio.BufferedProtocol):
    """Octets straight into the decoder's buffer."""

    def __init__(self) -> None:
        self.decoder = amqp.FrameDecoder()
        self.seen: list[str] = []

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.seen += [describe(frame) for frame in self.decoder.buffer_updated(nbytes)]


def facts(method: amqpcodec.Method) -> list[str]:
    """What the specification says of a method."""
    spec = method.spec
    return [f"{spec.name} {spec.class_id}.{spec.method_id}", *(field.name for field in spec.fields)]


def refused(headers: Mapping[str, Any]) -> tuple[str | int, ...]:
    """Where in some headers a value is that cannot be sent."""
    try:
        amqp.encode_header(1, amqp.BasicProperties(headers=headers), 0)
    except EncodeError as error:
        return error.path
    return ()
