"""Small pieces of work that together call all that is replaced in a library, and what each of them gives.

Frames, and the objects that are written, are made once, while the library is as it came. So a name that
somebody patches afterwards shows in the pieces that look it up, and in no others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

from .engine import Copy, attempt, describe
from .inputs import enveloped
from .traffic import HEARTBEAT, frames

Piece = Callable[[], Any]

WHEN = datetime(2020, 1, 1, tzinfo=UTC)
TABLE: dict[str, Any] = {
    "text": "x", "bool": True, "none": None, "list": [1, "two", {"deep": 3}], "tiny": 5, "short": 300,
    "unsigned": 40000, "int": 70000, "large": 3_000_000_000, "long": 2**40, "negative": -300,
    "decimal": Decimal("1.5"), "when": WHEN, "float": 1.5,
}  # fmt: skip
VALUES = b"".join(
    b"\1" + tag + tag + octets
    for tag, octets in (
        (b"t", b"\1"), (b"b", b"\xff"), (b"B", b"\xff"), (b"s", b"\xff\0"), (b"u", b"\xff\0"),
        (b"I", b"\xff\0\0\0"), (b"i", b"\xff\0\0\0"), (b"l", b"\xff\0\0\0\0\0\0\0"), (b"V", b""),
        (b"L", b"\xff\0\0\0\0\0\0\0"), (b"f", b"\x3f\xc0\0\0"), (b"d", b"\x3f\xf8\0\0\0\0\0\0"),
        (b"D", b"\1\0\0\0\7"), (b"S", b"\0\0\0\1x"), (b"A", b"\0\0\0\2t\1"),
        (b"T", b"\0\0\0\0\x5e\x0b\xe1\0"),
        (b"F", b"\0\0\0\4\1kt\1"), (b"x", b"\0\0\0\1x"),
    )
)  # fmt: skip
TABLE_OCTETS = struct.pack(">I", len(VALUES)) + VALUES
QUEUE_BOUND = enveloped(b"\0\x32\0\x14\0\0\1q\1e\1k\0" + TABLE_OCTETS)
ALL_PROPERTIES = b"\xff\xfc\1a\1b" + TABLE_OCTETS + b"\2\3\1c\1d\1e\1f" + bytes(7) + b"\5\1g\1h\1i\0"
HEADER = enveloped(struct.pack(">HHQ", 60, 0, 3) + ALL_PROPERTIES, 2)
DELIVER = enveloped(b"\0\x3c\0\x3c\4ctag\0\0\0\0\0\0\0\7\1\1e\1k")
READ = (
    DELIVER, QUEUE_BOUND, HEADER, enveloped(b"\0\x3c\0\0" + bytes(7) + b"\3\0\0", 2), enveloped(b"abc", 3),
    enveloped(b"\0\x3c\0\x14\0\0\1q\1c\5\0\0\0\0"), HEARTBEAT, b"AMQP\0\0\x09\1", HEADER[:-3], b"\1\0",
)  # fmt: skip


def outcomes(what: dict[str, Piece], peer: Copy) -> dict[str, Any]:
    """Return the result of each piece, or the exception that it raises."""
    return {name: describe(attempt(piece), peer) for name, piece in what.items()}


def of_pamqp(peer: Copy) -> dict[str, Piece]:
    """Frames read, frames written, and calls of classes."""
    commands, frame, header = peer.commands, peer.frame, peer.header
    properties = commands.Basic.Properties("a", "b", TABLE, 2, 3, "c", "d", "e", "f", WHEN, "g", "h", "i", "")
    written = [
        commands.Basic.Ack(7, True), commands.Basic.Publish(0, "e", "k", True),
        commands.Queue.Declare(0, "q", arguments=TABLE), commands.Connection.StartOk({}, "PLAIN", "x", "en"),
        commands.Connection.TuneOk(1, 2, 3), header.ContentHeader(0, 5, properties),
        header.ContentHeader(0, 0), header.ProtocolHeader(), peer.body.ContentBody(b"abc"),
        peer.heartbeat.Heartbeat(),
    ]  # fmt: skip
    pieces: dict[str, Piece] = {f"read {at}": partial(_read, frame, octets) for at, octets in enumerate(READ)}
    pieces |= {f"write {at}": partial(_write, frame, each) for at, each in enumerate(written)}
    return pieces | {
        "publish": lambda: commands.Basic.Publish(0, "e", "k"),
        "publish to a name that is refused": lambda: commands.Basic.Publish(0, "e!", "k"),
        "declare": lambda: commands.Queue.Declare(0, "q", arguments=None),
        "ack": lambda: commands.Basic.Ack(7, None),
        "properties": lambda: commands.Basic.Properties("a", delivery_mode=2, headers={}),
        "open": lambda: commands.Connection.Open(),
    }


def _read(frame: Any, octets: bytes) -> Any:
    return frame.unmarshal(octets)


def _write(frame: Any, value: Any) -> Any:
    return frame.marshal(value, 1)


def of_pika(peer: Copy) -> dict[str, Piece]:
    """Frames read, frames written, what a connection makes of octets, and the callbacks that it looks for."""
    frame, spec = peer.frame, peer.spec
    table = {**TABLE, "octets": b"x"}
    del table["float"]  # which pika does not write
    properties = spec.BasicProperties("a", "b", table, 2, 3, "c", "d", "e", "f", 5, "g", "h", "i", "j")
    written = [
        frame.Method(1, spec.Basic.Ack(7, True)), frame.Method(1, spec.Basic.Publish(0, "e", "k", True)),
        frame.Method(1, spec.Queue.Declare(0, "q", arguments=table)), frame.Header(1, 5, properties),
        frame.Method(0, spec.Connection.StartOk({}, "PLAIN", "x", "en")), frame.Body(1, b"abc"),
        frame.Heartbeat(),
    ]  # fmt: skip
    emit = getattr(peer, "adapters.base_connection").BaseConnection._adapter_emit_data
    quiet: Any = type("Quiet", (peer.connection.Connection,), {"_adapter_emit_data": emit})
    quiet.__abstractmethods__ = frozenset()
    octets = DELIVER + HEADER + enveloped(b"abc", 3) + HEARTBEAT

    def receive() -> Any:
        connection, seen = quiet.__new__(quiet), []
        connection.bytes_received, connection._frame_buffer, connection._process_frame = 0, b"", seen.append
        connection._on_data_available(octets + DELIVER[:5])
        return seen, connection.bytes_received, bytes(connection._frame_buffer)

    def send() -> Any:
        connection, sent = quiet.__new__(quiet), []
        connection.bytes_sent, connection.frames_sent = 0, 0
        connection._transport = SimpleNamespace(write=sent.append)
        connection._output_marshaled_frames([DELIVER, HEADER])
        return b"".join(sent), connection.bytes_sent, connection.frames_sent

    pieces: dict[str, Piece] = {
        f"read {at}": partial(_decode, frame, octets) for at, octets in enumerate(READ)
    }
    pieces |= {f"write {at}": partial(_marshal, each) for at, each in enumerate(written)}
    callbacks = peer.callback.CallbackManager()
    callbacks.add(1, spec.Basic.Deliver, print)
    asked = (1, spec.Basic.Deliver("", 1)), (1, spec.Basic.Ack()), (0, spec.Tx.SelectOk())
    return pieces | {
        "receive": receive,
        "send": send,
        "pending": lambda: [callbacks.pending(*each) for each in asked],
    }


def _decode(frame: Any, octets: bytes) -> Any:
    return frame.decode_frame(octets)


def _marshal(frame: Any) -> Any:
    return frame.marshal()


def of_amqp(peer: Copy) -> dict[str, Piece]:
    """Arguments and properties read and written, and what connections make of frames."""
    serialization, message = peer.serialization, peer.basic_message.Message
    values = ("s", "tag", b"S", 7, 300, 70000, 2**40, True, False, {**TABLE, "octets": b"x"})
    arguments = serialization.dumps("ssSoBlLbbF", values)
    headers = {
        "content_type": "a",
        "content_encoding": "utf-8",
        "application_headers": TABLE,
        "priority": 2,
        "timestamp": 5,
    }
    large, small, loaded = message("x" * 200, **headers), message(b"abc", **headers), message()

    def write() -> Any:
        written: list[Any] = []
        connection = SimpleNamespace(frame_max=131072, bytes_sent=0)
        transport = SimpleNamespace(write=lambda octets: written.append(bytes(octets)))
        writer = peer.connection.frame_writer(connection, transport)
        for content, limit in ((small, 131072), (large, 100), (None, 131072)):
            connection.frame_max = limit
            writer(1, 1, (60, 40), b"arguments", content)
        writer(8, 0, None, None, None)
        return written, connection.bytes_sent

    def receive() -> Any:
        seen: list[Any] = []
        connection = SimpleNamespace(bytes_recv=0)
        handler = peer.connection.frame_handler(connection, lambda *found: seen.append(found))
        octets = DELIVER + HEADER + enveloped(b"abc", 3) + HEARTBEAT + enveloped(b"\0\x3c\0\x50" + bytes(9))
        return [handler(frame) for frame in frames(octets)], seen, connection.bytes_recv

    def wrong() -> Any:
        return peer.connection.frame_handler(SimpleNamespace(bytes_recv=0), print)((3, 1, b"x"))

    return {
        "dumps": lambda: serialization.dumps("ssSoBlLbbF", values),
        "dumps elsewhere": lambda: peer.abstract_channel.dumps("Bsb", (1, "x", True)),
        "loads": lambda: serialization.loads("ssSoBlLbbF", arguments, 0),
        "loads elsewhere": lambda: peer.abstract_channel.loads(b"F", TABLE_OCTETS, 0),
        "message": lambda: message("x", **headers),
        "message of a frame": lambda: message(frame_method=(60, 60), frame_args=b""),
        "properties read": lambda: serialization.decode_properties_basic(ALL_PROPERTIES, 0),
        "properties loaded": lambda: (loaded._load_properties(60, ALL_PROPERTIES, 0), loaded.properties),
        "properties written": lambda: large._serialize_properties(),
        "write": write, "receive": receive, "wrong": wrong,
    }  # fmt: skip


PIECES: dict[str, Callable[[Copy], dict[str, Piece]]] = {"pamqp": of_pamqp, "pika": of_pika, "amqp": of_amqp}
