"""A client of this package on a blocking socket, which waits for what it asks for and keeps what comes."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from support.connections import make
from support.implementation import Implementation

from amqpcodec.connection import (
    ChannelOpened,
    ClientLogin,
    ConnectionClosed,
    MessageReceived,
    MethodReceived,
    Opened,
)
from amqpcodec.record import Recorder

SECONDS = 20  # for an answer, on a machine that is busy with other things
ANSWERS = (MethodReceived, MessageReceived)
CLIENT_TO_SERVER, SERVER_TO_CLIENT = 0, 1  # as in captures


class NoAnswerError(Exception):
    """The broker did not say what was waited for; the text has what it said instead."""


class Talk:
    """One connection to a broker.

    Args:
        impl: the build.
        dialect: the name of a dialect.
        url: of the broker. Without a name in it, the login is by ANONYMOUS.
        record: records the connection.
        login: of the client, in place of the one by the URL.
        options: of the connection.

    Attributes:
        connection: the connection without I/O.
        amqp: the module of the dialect.
        made: the build, the dialect and the URL.
        login: of the client.
        wire: what was sent and received, each as one run of octets.
        damaged: whether a test has written octets of its own.
        seen: every event that was not asked for, in order.
    """

    def __init__(
        self,
        impl: Implementation,
        dialect: str,
        url: str,
        record: Recorder | None = None,
        login: ClientLogin | None = None,
        **options: Any,
    ) -> None:
        self.made = impl, dialect, url
        parts = urlsplit(url)
        self.connection = make(impl, "client", dialect, clock=time.monotonic, **options)
        self.amqp = self.connection.dialect
        anonymous = {} if parts.username else {"mechanism": "ANONYMOUS", "response": b""}
        self.login = login or ClientLogin(parts.username or "", parts.password or "", **anonymous)
        self.socket = socket.create_connection((parts.hostname, parts.port), SECONDS)
        self._recording = record and record.open(self.socket.getsockname(), self.socket.getpeername())
        self.wire = (bytearray(), bytearray())
        self.damaged = False
        self.seen: deque[Any] = deque()

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.connection.state == "open":
                self.connection.close()
                self.event(ConnectionClosed)
        finally:
            self.socket.close()
            if self._recording is not None:
                self._recording.close(None)

    def flush(self) -> None:
        """Write what there is to send."""
        if octets := self.connection.data_to_send():
            self._write(octets)

    def write(self, octets: bytes) -> None:
        """Write octets that the connection knows nothing of."""
        self.flush()
        self.damaged = True
        self._write(octets)

    def _write(self, octets: bytes) -> None:
        self._note(CLIENT_TO_SERVER, octets)
        self.socket.sendall(octets)

    def _note(self, direction: int, octets: bytes) -> None:
        self.wire[direction].extend(octets)
        if self._recording is not None:
            self._recording.data(direction, octets)

    def channel(self) -> int:
        """Return a new channel, once it is open."""
        if self.connection.state == "handshake":
            self.event(Opened)
        number = self.connection.open_channel()
        self.event(ChannelOpened)
        return int(number)

    def call(self, channel: int, method: Any, *kinds: type) -> Any:
        """Send a method; returns its answer, or the event of these classes that comes first."""
        self.connection.send(channel, method)
        if kinds:
            return self.event(*kinds)
        return self.event(*ANSWERS, wanted=lambda event: event.request is method)

    def publish(self, channel: int, body: bytes, headers: Any = None, **fields: Any) -> None:
        """Publish a message, by default to the default exchange."""
        properties = (
            self.amqp.BasicProperties() if headers is None else self.amqp.BasicProperties(headers=headers)
        )
        self.connection.send_message(channel, self.amqp.Basic.Publish(**fields), properties, body)

    def queue(self, channel: int, **fields: Any) -> str:
        """Declare a queue of this connection alone; returns its name."""
        declare = self.amqp.Queue.Declare(**{"exclusive": True, **fields})
        return str(self.call(channel, declare).method.queue)

    def get(self, channel: int, queue: str, **fields: Any) -> Any:
        """Ask for a message; returns the event, which is of get-empty where there is none."""
        return self.call(channel, self.amqp.Basic.Get(queue=queue, **fields))

    def event(
        self, *kinds: type, wanted: Callable[[Any], bool] = lambda event: True, seconds: float = SECONDS
    ) -> Any:
        """Return the next event of one of these classes that is wanted; what comes before is kept in `seen`.

        Raises:
            NoAnswerError: it did not come in time, or the connection has ended first.
        """
        for at, event in enumerate(self.seen):
            if isinstance(event, kinds) and wanted(event):
                del self.seen[at]
                return event
        deadline = time.monotonic() + seconds
        self.flush()
        while time.monotonic() < deadline:
            for event in self.connection:
                if isinstance(event, kinds) and wanted(event):
                    return event
                if not self.login.handle(self.connection, event):
                    self.seen.append(event)
            self.flush()
            if self.connection.state == "closed":
                break
            self._receive(deadline)
        names = " or ".join(kind.__name__ for kind in kinds)
        raise NoAnswerError(f"no {names}; {self.connection.state}; seen: {list(self.seen)}")

    def _receive(self, deadline: float) -> None:
        """Take octets, or note that time passes."""
        due = min(self.connection.next_deadline() or deadline, deadline)
        self.socket.settimeout(max(due - time.monotonic(), 0.001))
        try:
            octets = self.socket.recv(1 << 20)
        except TimeoutError:
            self.connection.on_time()
            return
        except ConnectionResetError:
            octets = b""
        self.socket.settimeout(SECONDS)
        if octets:
            self._note(SERVER_TO_CLIENT, octets)
            self.connection.receive_data(octets)
        else:
            self.connection.receive_eof()
