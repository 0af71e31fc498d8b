"""Ordinary traffic through all that is replaced in a library: every kind of frame, written and read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from .engine import in_use
from .pika_offline import consumer, delivery

NOW = datetime(2020, 1, 1, tzinfo=UTC)
TABLE = {"a": 1, "b": "x", "c": {"d": [1, True, None]}}
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
LIBRARIES = {
    "pamqp": (
        "base", "body", "commands", "common", "constants", "decode", "encode", "frame", "header", "heartbeat",
    ),
    "pika": ("amqp_object", "compat", "data", "frame", "spec", "connection", "callback", "channel"),
    "amqp": ("serialization", "basic_message", "method_framing", "utils"),
}  # fmt: skip
"""The modules whose functions and classes the traffic uses."""


def pamqp() -> None:
    names = ("body", "commands", "frame", "header", "heartbeat")
    body, commands, frame, header, heartbeat = (import_module(f"pamqp.{name}") for name in names)
    properties = commands.Basic.Properties(
        content_type="a", headers=TABLE, delivery_mode=2, timestamp=NOW, priority=1
    )
    for held in (
        commands.Basic.Ack(7),
        commands.Basic.Publish(0, "e", "k", True),
        commands.Queue.Declare(0, "q", arguments=TABLE),
        commands.Basic.Deliver("tag", 1, False, "e", "k"),
        header.ContentHeader(0, 5, properties),
        header.ContentHeader(0, 0),
        header.ProtocolHeader(),
        body.ContentBody(b"abc"),
        heartbeat.Heartbeat(),
    ):
        frame.unmarshal(frame.marshal(held, 0))


def pika() -> None:
    peer, channels = in_use("pika"), []
    connection = consumer(peer, lambda channel, *_: channels.append(channel))
    properties = {"headers": TABLE, "content_type": "a", "priority": 1, "delivery_mode": 2, "timestamp": 5}
    connection._on_data_available(delivery(peer, 1, **properties) + delivery(peer, 2))
    channels[0].basic_publish("e", "k", b"body", peer.spec.BasicProperties(**properties))
    channels[0].basic_ack(1)
    connection._on_data_available(HEARTBEAT)


def amqp() -> None:
    names = ("serialization", "basic_message", "method_framing")
    serialization, basic_message, framing = (import_module(f"amqp.{name}") for name in names)
    connection, written = SimpleNamespace(bytes_recv=0, bytes_sent=0, frame_max=131072), []
    handle = framing.frame_handler(connection, lambda *arguments: None)
    write = framing.frame_writer(connection, SimpleNamespace(write=lambda data: written.append(bytes(data))))
    arguments = serialization.dumps("Bssbb", (0, "e", "k", False, False))
    for size, limit in ((5, 131072), (200, 100)):
        connection.frame_max = limit
        message = basic_message.Message("x" * size, application_headers=TABLE, delivery_mode=2)
        write(1, 1, (60, 40), arguments, message)
    write(8, 0, None, None, None)
    deliver = serialization.dumps("sLbss", ("tag", 1, False, "e", "k"))
    serialization.loads("sLbss", deliver, 0)
    handle((1, 1, struct.pack(">HH", 60, 60) + deliver))
    handle(next(frame for frame in frames(written[0]) if frame[0] == 2))
    handle((3, 1, b"xxxxx"))
    handle((8, 0, b""))
    serialization.loads("F", serialization.dumps("F", ({**TABLE, "e": 1.5},)), 0)
    serialization.decode_properties_basic(message._serialize_properties(), 0)


def frames(octets: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Frames as py-amqp's transport gives them."""
    while octets:
        kind, channel, size = struct.unpack_from(">BHI", octets)
        yield kind, channel, octets[7 : 7 + size]
        octets = octets[8 + size :]


TRAFFIC: dict[str, Callable[[], None]] = {"pamqp": pamqp, "pika": pika, "amqp": amqp}


def names_in(library: str) -> Iterator[tuple[Any, str]]:
    """Every name in its modules that a program may rebind: the module or class that has it, and the name."""
    for name in LIBRARIES[library]:
        module = import_module(f"{library}.{name}")
        for key, value in list(vars(module).items()):
            if getattr(value, "__module__", None) == module.__name__ and not key.startswith("__"):
                yield module, key
                if isinstance(value, type):
                    yield from _names_in_class(value)


def _names_in_class(owner: type) -> Iterator[tuple[Any, str]]:
    for key, value in list(vars(owner).items()):
        inner = isinstance(value, type) and value.__module__ == owner.__module__
        if inner or isinstance(value, (staticmethod, classmethod)) or callable(value):
            yield owner, key
        if inner:
            yield from _names_in_class(value)
