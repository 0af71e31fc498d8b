"""pamqp on its own, on a socket: what clients on it have in common."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pamqp import body, frame, header

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample

try:
    from pamqp import commands as spec
except ImportError:
    from pamqp import specification as spec  # type: ignore[no-redef]  # before 3.0

CHANNEL = 1


class Session:
    """A connection with one channel."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port or 5672))
        self._octets = b""
        self._socket.sendall(header.ProtocolHeader().marshal())
        self.receive()
        login = f"\0{parts.username}\0{parts.password}"
        self.send(spec.Connection.StartOk({}, "PLAIN", login, "en_US"), 0)
        tune = self.receive()
        self.send(spec.Connection.TuneOk(tune.channel_max, tune.frame_max, 0), 0)
        self.send(spec.Connection.Open("/"), 0)
        self.receive()
        self.call(spec.Channel.Open())

    def send(self, *frames: Any) -> None:
        """Send frames on the channel; on another, if a number is the last."""
        *frames, channel = frames if isinstance(frames[-1], int) else (*frames, CHANNEL)  # type: ignore[assignment]
        self._socket.sendall(b"".join(frame.marshal(each, channel) for each in frames))

    def receive(self) -> Any:
        """The next frame."""
        while True:
            if len(self._octets) >= 7 and len(self._octets) >= 8 + int.from_bytes(self._octets[3:7], "big"):
                consumed, _, found = frame.unmarshal(self._octets)
                self._octets = self._octets[consumed:]
                return found
            self._octets += self._socket.recv(65536) or _closed()

    def call(self, method: Any) -> Any:
        """Send a method; its answer."""
        self.send(method)
        return self.receive()

    def close(self) -> None:
        self.send(spec.Connection.Close(200, "", 0, 0), 0)
        self.receive()
        self._socket.close()


def _closed() -> bytes:
    raise ConnectionError("the broker has closed the connection")


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    session = Session(url)
    with clock:
        for sample in samples:
            properties = spec.Basic.Properties(
                content_type=CONTENT_TYPE,
                headers=sample.headers,
                delivery_mode=1,
                message_id=sample.message_id,
                timestamp=datetime.fromtimestamp(sample.seconds, UTC),
            )
            content = header.ContentHeader(0, len(sample.body), properties)
            session.send(
                spec.Basic.Publish(0, "", queue, False, False), content, body.ContentBody(sample.body)
            )
        session.call(spec.Queue.Declare(0, queue, True))  # all before it has been sent
    session.close()


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    session = Session(url)
    session.call(spec.Basic.Qos(0, PREFETCH, False))
    received: list[Sample] = []
    with clock:
        session.call(spec.Basic.Consume(0, queue, "tag"))
        while len(received) < count:
            deliver, content = session.receive(), session.receive()
            octets = b""
            while len(octets) < content.body_size:
                octets += session.receive().value
            received.append(Sample(octets, content.properties.headers, content.properties.message_id))
            session.send(spec.Basic.Ack(deliver.delivery_tag))
    session.close()
    return received
