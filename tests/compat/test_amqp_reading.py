"""How py-amqp reads, accelerated and with `loops=True`: fewer calls, and what comes is the same."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.compat.inputs import enveloped
from support.marks import replaces

from amqpcodec import compat
from amqpcodec.compat.kombu import transport_options

amqp = pytest.importorskip("amqp")
transports = pytest.importorskip("amqp.transport")

DELIVER = struct.pack("!HH", 60, 60) + b"\5ctag1" + struct.pack("!QB", 7, 0) + b"\2ex\3key"


class Line:
    """A connection whose transport reads from a socket pair, which counts calls unless it is a plain one."""

    def __init__(self, *, options: dict[str, Any] | None = None, plain: bool = False) -> None:
        self.calls: list[Any] = []
        self.plain = plain
        self.receives = 0
        self.sockets: list[socket.socket] = []
        self.connection = amqp.Connection(**options or {})
        self.connect()

    def connect(self) -> None:
        """What py-amqp does on connecting, with a socket pair; also on connecting again."""
        self.near, self.far = socket.socketpair()
        self.sockets += self.near, self.far
        self.transport = transports.TCPTransport("localhost")
        self.transport.sock = self.near if self.plain else self
        self.transport._setup_transport()
        self.transport.connected = True
        self.connection.transport = self.transport
        handler = self.connection.frame_handler_cls
        self.connection.on_inbound_frame = handler(self.connection, lambda *call: self.calls.append(call))

    def consume(self) -> None:
        """Take in a first delivery, and forget it."""
        self.far.sendall(enveloped(DELIVER) + enveloped(struct.pack("!HHQH", 60, 0, 0, 0), 2))
        self.connection.blocking_read()
        self.connection.blocking_read()
        self.calls.clear()
        self.receives = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.near, name)

    def recv(self, size: int) -> bytes:
        self.receives += 1
        return self.near.recv(size)

    def close(self) -> None:
        for each in self.sockets:
            each.close()


@pytest.fixture(params=["install", "transport_options"])
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    if request.param == "install":
        with compat.installed("amqp", loops=True):
            made = Line()
    else:
        made = Line(options=transport_options(loops=True))
    made.consume()
    made.connection.bytes_recv = 0
    yield made
    made.close()


ACK = struct.pack("!HHQB", 60, 80, 1, 0)


@replaces
def test_many_frames_are_read_by_one_call(line: Line) -> None:
    line.far.sendall(enveloped(ACK) * 100)
    for _ in range(100):
        assert line.connection.blocking_read() is True
    assert line.receives == 1
    assert line.calls == [(1, (60, 80), ACK, None)] * 100
    assert line.connection.bytes_recv == 100


HEARTBEAT = enveloped(b"", 8, 0)
EMPTY = enveloped(DELIVER) + enveloped(struct.pack("!HHQH", 60, 0, 0, 0), 2)


def test_one_call_takes_what_is_here_up_to_the_end_of_a_message(line: Line) -> None:
    line.far.sendall(enveloped(ACK) + HEARTBEAT * 2 + EMPTY + enveloped(ACK) + HEARTBEAT)
    signatures = []
    for _ in range(3):
        assert line.connection.blocking_read() is True
        signatures.append([call[1] for call in line.calls])
    assert signatures == [[(60, 80)], [(60, 80), (60, 60)], [(60, 80), (60, 60), (60, 80)]]
    assert line.connection.bytes_recv == 6
    assert line.connection.blocking_read() is False
    assert line.connection.bytes_recv == 7


def test_what_follows_a_frame_that_is_refused_is_taken_by_the_next_call(line: Line) -> None:
    line.far.sendall(enveloped(ACK) + HEARTBEAT + enveloped(b"no header", 3) + enveloped(ACK))
    line.connection.blocking_read()
    with pytest.raises(amqp.exceptions.UnexpectedFrame, match="Received frame 3 while expecting type: 1"):
        line.connection.blocking_read()
    assert line.connection.blocking_read() is True
    assert [call[1] for call in line.calls] == [(60, 80)] * 2


def test_a_connection_that_is_closed_between_two_frames_takes_no_more(line: Line) -> None:
    line.far.sendall(enveloped(ACK) + HEARTBEAT + enveloped(ACK))
    line.connection.blocking_read()
    taken = []

    def close(frame: Any) -> None:
        taken.append(frame[0])
        line.transport.sock = None

    line.connection.on_inbound_frame = close
    line.connection.blocking_read()
    assert taken == [8]


@pytest.mark.parametrize(("loops", "consumes"), [(False, True), (True, False)])
def test_each_frame_takes_three_calls_without_loops_and_where_nothing_is_consumed(
    loops: bool, consumes: bool
) -> None:
    with compat.installed("amqp", loops=loops):
        line = Line()
        if consumes:
            line.consume()
        line.far.sendall(enveloped(ACK) * 2)
        line.connection.blocking_read()
        assert line.receives == 3
        line.close()


def test_a_frame_that_is_not_whole_waits_for_the_rest(line: Line) -> None:
    octets = enveloped(ACK) * 2
    line.far.sendall(octets[:-5])
    line.connection.blocking_read()
    with pytest.raises(socket.timeout):
        line.connection.blocking_read(timeout=0.01)
    line.far.sendall(octets[-5:])
    line.connection.blocking_read(timeout=1)
    assert len(line.calls) == 2


def test_errors_come_where_they_would_come_without(line: Line) -> None:
    line.far.sendall(enveloped(ACK) + enveloped(ACK)[:-1] + b"\0" + enveloped(ACK))
    line.connection.blocking_read()
    with pytest.raises(amqp.exceptions.UnexpectedFrame, match="frame_end 0x00 while expecting 0xce"):
        line.connection.blocking_read()
    line.connection.blocking_read()
    line.far.close()
    with pytest.raises(OSError, match="Server unexpectedly closed connection"):
        line.connection.blocking_read()
    assert not line.transport.connected


def test_nothing_is_read_ahead_while_a_channel_waits_for_an_answer(line: Line) -> None:
    """Whoever polls the socket after that sees what came behind the answer."""
    line.connection._pending[60, 80] = object()
    line.far.sendall(enveloped(ACK) * 2)
    line.connection.blocking_read()
    assert line.receives == 3
    assert line.near.recv(100) == enveloped(ACK)


def test_a_transport_that_is_closed_gives_no_more(line: Line) -> None:
    line.far.sendall(enveloped(ACK) * 2)
    line.connection.blocking_read()
    line.transport.sock = None
    line.near.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        line.transport.read_frame()


def test_who_replaces_the_reading_later_is_asked(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports._AbstractTransport, "read_frame", lambda self: (1, 9, ACK))
    line.connection.blocking_read()
    assert line.calls == [(9, (60, 80), ACK, None)]


@replaces
def test_a_connection_that_connects_again_forgets_what_was_read_ahead(line: Line) -> None:
    line.far.sendall(enveloped(ACK) * 3)
    line.connection.blocking_read()
    with compat.installed("amqp", loops=True):
        line.connect()
    line.consume()
    line.far.sendall(enveloped(ACK, 1, 7) * 2)
    line.connection.blocking_read()
    line.connection.blocking_read()
    assert [call[0] for call in line.calls] == [7, 7]
    assert "Fast" not in type(line.connection.blocking_read.original).__name__


# -- looking whether anything has come


@pytest.fixture(params=["reads ahead", "would read ahead", "without loops"])
def plain(request: pytest.FixtureRequest) -> Iterator[Line]:
    with compat.installed("amqp", loops=request.param != "without loops"):
        made = Line(plain=True)
    if request.param != "would read ahead":
        made.consume()
    yield made
    made.close()


def looks_by_py_amqp(line: Line) -> bool:
    """Find that nothing has come; return whether py-amqp's own functions have asked the socket."""
    with pytest.raises(TimeoutError, match=r"^$") as found:
        line.connection.drain_events(timeout=0)
    assert line.near.gettimeout() is None
    return isinstance(found.value.__context__, BlockingIOError)


@replaces
def test_that_nothing_has_come_is_found_by_one_call(plain: Line) -> None:
    assert not looks_by_py_amqp(plain)
    plain.far.sendall(enveloped(ACK))
    plain.connection.drain_events(timeout=0)
    assert plain.calls == [(1, (60, 80), ACK, None)]
    assert not looks_by_py_amqp(plain)


def test_part_of_a_frame_is_left_to_py_amqp(plain: Line) -> None:
    octets = enveloped(ACK)
    plain.far.sendall(octets[:3])
    assert looks_by_py_amqp(plain)
    assert looks_by_py_amqp(plain)
    plain.far.sendall(octets[3:])
    plain.connection.drain_events(timeout=0)
    assert plain.calls == [(1, (60, 80), ACK, None)]


def test_a_socket_that_was_closed_is_found(plain: Line) -> None:
    plain.far.close()
    with pytest.raises(OSError, match="Server unexpectedly closed connection"):
        plain.connection.drain_events(timeout=0)


def test_a_connection_that_was_reset_is_found_as_ever(plain: Line) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        plain.transport.sock = near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near:
        plain.transport._setup_transport()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        with pytest.raises(ConnectionResetError):
            plain.connection.drain_events(timeout=0)


@contextmanager
def untimed(self: Any, timeout: Any = None) -> Iterator[None]:
    raise LookupError("asked")
    yield


def asked(*arguments: Any) -> Any:
    raise LookupError("asked")


OWN = {
    "read_frame of the class": (transports._AbstractTransport, "read_frame", asked),
    "_read of the class": (transports.TCPTransport, "_read", asked),
    "having_timeout of the class": (transports._AbstractTransport, "having_timeout", untimed),
    "transport of the class": (amqp.Connection, "transport", property(asked)),
    "blocking_read of the class": (amqp.Connection, "blocking_read", asked),
    "_read of one": (None, "_read", asked),
    "_quick_recv of one": (None, "_quick_recv", asked),
}


@pytest.mark.parametrize("what", OWN)
def test_what_somebody_reads_by_is_asked(plain: Line, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, replacement = OWN[what]
    monkeypatch.setattr(plain.transport if owner is None else owner, name, replacement)
    with pytest.raises(LookupError, match="asked"):
        plain.connection.drain_events(timeout=0)
