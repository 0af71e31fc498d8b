"""py-amqp: `loads` and `dumps` with the format strings of its channels, `frame_handler`, `frame_writer`.

Its Cython build is the same package under the same name. It is imported from a folder of its own
(`BENCH_PYAMQP_CYTHON`, filled by `make bench-peers`) while the pure one is taken out of `sys.modules`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from struct import Struct
from types import ModuleType, SimpleNamespace
from typing import Any

from corpus import CHANNEL, FRAME_MAX, Content, FrameValues

from peers.interface import MissingError, NotOfferedError, Peer, as_octets, shared_properties, shared_values

CYTHON_FOLDER = "build/bench/pyamqp-cython"

_envelope_at = Struct(">BHI").unpack_from
_envelope = Struct(">BHI").pack
_ids_at = Struct(">HH").unpack_from
_ids = Struct(">HH").pack
_body_size_at = Struct(">HxxQ").unpack_from
_header_start = Struct(">HHQ").pack

# The arguments of methods in py-amqp's format letters, by ids, with the name to compare by.
_FORMATS: dict[tuple[int, int], tuple[str, str]] = {
    (10, 10): ("connection.start", "ooFSS"),
    (20, 20): ("channel.flow", "b"),
    (50, 11): ("queue.declare-ok", "sll"),
    (50, 21): ("queue.bind-ok", ""),
    (60, 11): ("basic.qos-ok", ""),
    (60, 21): ("basic.consume-ok", "s"),
    (60, 60): ("basic.deliver", "sLbss"),
    (60, 80): ("basic.ack", "Lb"),
    (60, 120): ("basic.nack", "Lbb"),
}
_RENAMED = {"application_headers": "headers", "cluster_id": "reserved"}
_OURS = {ours: theirs for theirs, ours in _RENAMED.items()}


class PyAmqp:
    """One build of py-amqp."""

    def __init__(self, name: str, version: str, modules: dict[str, ModuleType]) -> None:
        self.name = name
        self.version = version
        serialization = modules["amqp.serialization"]
        self._loads = serialization.loads
        self._dumps = serialization.dumps
        self._properties = serialization.decode_properties_basic
        self._framing = modules["amqp.method_framing"]
        self._message = modules["amqp.basic_message"].Message
        self._written: list[bytes] = []
        self._write = self._writer()

    def _writer(self) -> Callable[..., None]:
        """py-amqp's own writer, on a transport that keeps what is written."""
        connection = SimpleNamespace(frame_max=FRAME_MAX, bytes_sent=0)
        transport = SimpleNamespace(write=lambda octets: self._written.append(bytes(octets)))
        writer: Callable[..., None] = self._framing.frame_writer(connection, transport)
        return writer

    def _take(self) -> bytes:
        written = self._written
        octets = written[0] if len(written) == 1 else b"".join(written)
        written.clear()
        return octets

    def _frames(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Type, channel and payload of each frame, as py-amqp's transport returns them."""
        at, end = 0, len(data)
        while at < end:
            frame_type, channel, size = _envelope_at(data, at)
            stop = at + 7 + size
            if data[stop] != 0xCE:
                raise ValueError(f"frame ends with octet {data[stop]:#04x}")
            yield frame_type, channel, data[at + 7 : stop]
            at = stop + 1

    def decode(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        loads, properties = self._loads, self._properties
        for frame_type, channel, payload in self._frames(data):
            if frame_type == 1:
                ids = _ids_at(payload, 0)
                yield 1, channel, ids, loads(_FORMATS[ids][1], payload, 4)[0]
            elif frame_type == 2:
                yield 2, channel, _body_size_at(payload, 0)[1], properties(payload, 12)[0]
            else:
                yield 3, channel, payload, None

    def values(self, frame: Any) -> FrameValues:
        """See `Peer`."""
        frame_type, channel, first, second = frame
        if frame_type == 1:
            name = _FORMATS[first][0]
            values = tuple(shared_values(value) for value in second)
            if name == "connection.start":
                values = (*values[:3], as_octets(values[3]), as_octets(values[4]))
            return ("method", channel, name, values)
        if frame_type == 2:
            pairs = ((_RENAMED.get(name, name), value) for name, value in second.items())
            return ("header", channel, first, shared_properties(pairs))
        return ("body", channel, first)

    def feed(self, chunks: Iterable[bytes]) -> Iterator[Any]:
        """See `Peer`."""
        raise NotOfferedError("py-amqp reads whole frames from a blocking socket")

    def consume(self, chunks: Iterable[bytes]) -> int:
        """See `Peer`."""
        loads, properties = self._loads, self._properties
        total, rest = 0, b""
        for chunk in chunks:
            data, at = rest + chunk, 0
            last = len(data) - 8
            while at <= last:
                frame_type, _, size = _envelope_at(data, at)
                stop = at + 7 + size
                if stop >= len(data):
                    break
                if data[stop] != 0xCE:
                    raise ValueError(f"frame ends with octet {data[stop]:#04x}")
                payload = data[at + 7 : stop]
                at = stop + 1
                if frame_type == 1:
                    total += loads(_FORMATS[_ids_at(payload, 0)][1], payload, 4)[0][1]
                elif frame_type == 2:
                    total += len(properties(payload, 12)[0]["message_id"])
                else:
                    total += len(payload)
            rest = data[at:]
        return total

    def messages(self, data: bytes) -> Iterator[Any]:
        """See `Peer`."""
        loads = self._loads
        done: list[Any] = []

        def on_message(channel: int, ids: tuple[int, int], payload: bytes, message: Any) -> None:
            done.append((loads(_FORMATS[ids][1], payload, 4)[0], message))

        on_frame = self._framing.frame_handler(SimpleNamespace(bytes_recv=0), on_message)
        for frame in self._frames(data):
            if on_frame(frame):
                yield done.pop()

    def body(self, message: Any) -> bytes:
        """See `Peer`."""
        return bytes(message[1].body)

    def publish(self, content: Content) -> bytes:
        """See `Peer`."""
        message = self._message(
            content.body,
            content_type=content.content_type,
            delivery_mode=content.delivery_mode,
            application_headers=content.headers,
            timestamp=content.seconds,
            message_id=content.message_id,
        )
        arguments = self._dumps("Bssbb", (0, content.exchange, content.routing_key, False, False))
        self._write(1, CHANNEL, (60, 40), arguments, message)
        return self._take()

    def _method(
        self, ids: tuple[int, int], letters: str, values: tuple[Any, ...], channel: int = CHANNEL
    ) -> bytes:
        self._write(1, channel, ids, self._dumps(letters, values), None)
        return self._take()

    def ack(self, tag: int, multiple: bool) -> bytes:
        """See `Peer`."""
        return self._method((60, 80), "Lb", (tag, multiple))

    def nack(self, tag: int, multiple: bool, requeue: bool) -> bytes:
        """See `Peer`."""
        return self._method((60, 120), "Lbb", (tag, multiple, requeue))

    def setup(self, queue: str) -> bytes:
        """See `Peer`."""
        return b"".join(
            (
                self._method((60, 10), "lBb", (0, 100, False)),
                self._method((50, 10), "BsbbbbbF", (0, queue, False, True, False, False, False, {})),
                self._method((50, 20), "BsssbF", (0, queue, "orders", "orders.#", False, {})),
                self._method((60, 20), "BssbbbbF", (0, queue, "ctag1", False, False, False, False, {})),
            )
        )

    def header_writer(self, properties: dict[str, Any]) -> Callable[[], bytes]:
        """See `Peer`; the frame is put together as py-amqp's writer does for a large body."""
        values = {_OURS.get(name, name): value for name, value in properties.items()}

        def write() -> bytes:
            octets = self._message(b"", **values)._serialize_properties()
            frame = _header_start(60, 0, 256) + octets
            return b"".join((_envelope(2, CHANNEL, len(frame)), frame, b"\xce"))

        return write

    def start(self, server_properties: dict[str, Any], mechanisms: bytes, locales: bytes) -> bytes:
        """See `Peer`."""
        return self._method((10, 10), "ooFSS", (0, 9, server_properties, mechanisms, locales), 0)

    def decode_table(self, octets: bytes) -> dict[str, Any]:
        """See `Peer`."""
        table: dict[str, Any] = self._loads("F", octets, 0)[0][0]
        return table

    def encode_table(self, table: dict[str, Any]) -> bytes:
        """See `Peer`."""
        octets: bytes = self._dumps("F", (table,))
        return octets


@contextmanager
def _only(folder: Path | None) -> Iterator[None]:
    """Let `amqp` be imported from one folder, and leave no trace of it in `sys.modules`."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "amqp"}
    if folder is not None:
        sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if folder is not None:
            sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == "amqp"]:
            del sys.modules[name]
        sys.modules.update(kept)


def _load(folder: Path | None) -> tuple[str, dict[str, ModuleType]]:
    with _only(folder):
        names = ("amqp.serialization", "amqp.basic_message", "amqp.method_framing")
        modules = {name: import_module(name) for name in names}
        return import_module("amqp").__version__, modules


def pure() -> Peer:
    """The py-amqp of this environment."""
    version, modules = _load(None)
    return PyAmqp("py-amqp", version, modules)


def cython() -> Peer:
    """The Cython build of py-amqp, where `make bench-peers` has put it."""
    folder = Path(os.environ.get("BENCH_PYAMQP_CYTHON", CYTHON_FOLDER))
    if not folder.is_dir():
        raise MissingError("not built; `make bench-peers` does")
    version, modules = _load(folder)
    if str(modules["amqp.serialization"].__file__).endswith(".py"):
        raise MissingError(f"{folder} holds a py-amqp that is not compiled")
    return PyAmqp("py-amqp Cython", version, modules)
