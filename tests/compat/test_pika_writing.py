"""How transports of pika write, accelerated and with `loops=True`: the same octets, errors and rests."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import repeat, starmap
from random import Random
from typing import Any

import pytest
from support.campaign import in_full
from support.compat.engine import Copy, Pair, pair
from support.implementation import wanted

from amqpcodec import compat
from amqpcodec.testing import running_broker

pytest.importorskip("pika")
pytestmark = pytest.mark.skipif("c" not in wanted(), reason="the pure build changes nothing")

MORE_THAN_A_SOCKET_HOLDS = 4_000_000  # octets
LATE = 0.005  # seconds; more than a millisecond


@pytest.fixture(params=[False, True], ids=["accelerated", "loops"])
def both(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two copies, one of them accelerated."""
    copies = pair("pika")
    with compat.installed("pika", loops=request.param):
        yield copies


with_loops = pytest.mark.parametrize("both", [True], ids=["loops"], indirect=True)


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Writing:
    """A transport of a copy of pika on its loop, and the other end of its socket."""

    def __init__(self, peer: Copy) -> None:
        self.loop = getattr(peer, "adapters.select_connection").IOLoop()
        self.loop.activate_poller()
        adapter = getattr(peer, "adapters.utils.selector_ioloop_adapter").SelectorIOServicesAdapter(self.loop)
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.far.settimeout(5)
        self.watched = 0
        self.lost: list[Any] = []
        set_writer = adapter.set_writer

        def counted(*arguments: Any) -> None:
            self.watched += 1
            set_writer(*arguments)

        adapter.set_writer = counted
        module = getattr(peer, "adapters.utils.io_services_utils")
        self.transport = module._AsyncPlaintextTransport(self.near, self, adapter)
        self.sent: list[int] = []
        send = self.transport._sigint_safe_send

        def counting(to: Any, octets: Any) -> Any:
            self.sent.append(send(to, octets))
            return self.sent[-1]

        self.transport._sigint_safe_send = counting

    def connection_lost(self, error: Any) -> None:
        self.lost.append((type(error).__name__, getattr(error, "errno", None)))

    def eof_received(self) -> bool:
        return True

    def data_received(self, octets: bytes) -> None:
        raise AssertionError("nothing is sent to it")

    def run(self) -> None:
        """Let the loop do what is ready."""
        self.loop.add_callback(lambda: None)
        self.loop.poll()
        self.loop.process_timeouts()

    def write(self, octets: Any) -> str:
        """Write, as fast as the last write; the name of an exception."""
        try:
            self.transport.write(octets)
        except Exception as error:
            return type(error).__name__
        return ""

    def received(self, count: int) -> bytes:
        """So many octets, as the other end receives them while the loop runs."""
        octets = b""
        while len(octets) < count:
            self.run()
            octets += self.far.recv(min(65536, count - len(octets)))
        return octets

    def close(self) -> None:
        self.near.close()
        self.far.close()
        self.loop.deactivate_poller()
        self.loop.close()


@pytest.fixture
def pairs(both: Pair) -> Iterator[tuple[Writing, Writing]]:
    """A transport of each copy."""
    stock, accelerated = (Writing(peer) for peer in both)
    yield stock, accelerated
    stock.close()
    accelerated.close()


def settled(writing: Writing) -> None:
    """Make a first write, which goes to pika's own function."""
    writing.write(b"first")
    assert writing.received(5) == b"first"


def test_the_other_end_receives_the_same_octets(pairs: tuple[Writing, Writing]) -> None:
    for writing in pairs:
        random, sent, received = Random(7), b"", b""
        for _ in range(200):
            octets = random.randbytes(random.choice((1, 30, 300, 40_000)))
            assert not writing.write(octets)
            sent += octets
            if random.random() < 0.4:
                received += writing.received(len(sent) - len(received))
        received += writing.received(len(sent) - len(received))
        assert received == sent
        writing.run()
        assert not writing.transport._tx_buffers
        assert writing.transport.get_write_buffer_size() == 0


def waiting(writing: Writing, sizes: list[int]) -> bytes:
    """Write such pieces in one turn of a loop that runs by itself; return what the other end receives."""
    octets = Random(5).randbytes(sum(sizes))
    written = []

    def write() -> None:
        begin = 0
        for size in sizes:
            writing.transport.write(octets[begin : begin + size])
            begin += size
        written.append(writing.transport.get_write_buffer_size())
        writing.loop.add_callback(writing.loop.stop)

    writing.loop.add_callback(write)
    writing.loop.deactivate_poller()  # as `start` expects it
    writing.loop.start()
    writing.loop.activate_poller()
    assert written == [len(octets)]
    received = writing.received(len(octets))
    assert received == octets
    assert not writing.transport._tx_buffers
    assert writing.transport.get_write_buffer_size() == 0
    return received


@pytest.mark.parametrize(
    ("sizes", "sent"),
    [
        ([21] * 100, [2100]),
        ([21], [21]),
        ([30_000] * 5, [60_000, 60_000, 30_000]),
        ([65_536, 1, 65_535, 1, 2], [65_536, 1, 65_535, 3]),
        ([1, 2, 40_000, 3, 4], [1, 2, 40_000, 7]),
        ([32_767, 32_767, 2, 1], [65_536, 1]),
    ],
)
def test_what_is_written_in_one_turn_of_a_loop_is_sent_together(
    pairs: tuple[Writing, Writing], sizes: list[int], sent: list[int]
) -> None:
    stock, accelerated = pairs
    assert waiting(accelerated, sizes) == waiting(stock, sizes)
    assert stock.sent == sizes
    assert accelerated.sent == sent


def test_what_waits_for_room_is_not_joined_again_and_again(pairs: tuple[Writing, Writing]) -> None:
    """The time for a backlog is linear in its size."""
    _, writing = pairs
    count = in_full(40_000, 15_000)
    begin = time.process_time()
    received = waiting(writing, [500] * count)
    assert len(received) == 500 * count
    assert len(writing.sent) < 500 * count // 32_768 * 2 + 1000
    assert time.process_time() - begin < 5


class SignalError(Exception):
    """What a handler of a signal raises, as one of Ctrl+C does."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no signals of timers")
@pytest.mark.parametrize("after", [0.0003, 0.001, 0.002])  # seconds
def test_a_signal_while_a_backlog_is_joined_loses_no_octets(
    pairs: tuple[Writing, Writing], after: float
) -> None:
    """The call to the socket itself is never made: pika may lose count where it is interrupted there."""
    _, writing = pairs
    pieces = [b"%06d" % number for number in range(50_000)]
    for piece in pieces:
        writing.transport._buffer_tx_data(piece)

    def interrupt(*_: Any) -> None:
        raise SignalError

    def no_room(*_: Any) -> int:
        raise BlockingIOError(errno.EAGAIN, "no room")

    writing.transport._sigint_safe_send = no_room
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        with suppress(SignalError):
            writing.transport._on_socket_writable()
            time.sleep(1)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert b"".join(writing.transport._tx_buffers) == b"".join(pieces)


def test_what_another_thread_writes_while_a_backlog_is_joined_stays_behind_it(
    pairs: tuple[Writing, Writing], quick_switches: None
) -> None:
    _, writing = pairs
    waiting = writing.transport._tx_buffers
    waiting.extend(b"%06d" % number for number in range(100_000))
    done = threading.Event()

    def write() -> None:
        for number in range(100_000, 200_000):
            waiting.append(b"%06d" % number)
        done.set()

    def no_room(*_: Any) -> int:
        raise BlockingIOError(errno.EAGAIN, "no room")

    writing.transport._sigint_safe_send = no_room
    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        writing.transport._on_socket_writable()
    thread.join()
    assert b"".join(waiting) == b"".join(b"%06d" % number for number in range(200_000))


@with_loops
def test_what_is_written_soon_after_leaves_at_once_without_watching(pairs: tuple[Writing, Writing]) -> None:
    watched = []
    for writing in pairs:
        settled(writing)
        for _ in range(200):
            writing.write(b"more")
            at_once = not writing.transport.get_write_buffer_size()
            assert (writing.far.recv(4) if at_once else writing.received(4)) == b"more"
        watched.append(writing.watched)
    assert watched[0] == 201
    assert watched[1] < 150


def test_a_late_write_waits_for_the_loop_which_reads_as_well(pairs: tuple[Writing, Writing]) -> None:
    for writing in pairs:
        settled(writing)
        time.sleep(LATE)
        writing.write(b"late")
        assert writing.transport.get_write_buffer_size() == 4
        assert writing.received(4) == b"late"


@with_loops
def test_what_a_full_socket_does_not_take_is_sent_when_there_is_room(pairs: tuple[Writing, Writing]) -> None:
    _, writing = pairs
    large = Random(3).randbytes(MORE_THAN_A_SOCKET_HOLDS)
    for _ in range(100):  # one of them comes within the millisecond
        settled(writing)
        before = writing.watched
        writing.write(large)
        at_once = writing.transport.get_write_buffer_size() < len(large)
        writing.write(b"behind")
        assert writing.watched == before + 1
        assert writing.received(len(large) + 6) == large + b"behind"
        writing.run()
        if at_once:
            return
    raise AssertionError("nothing was sent at once")


def test_an_other_end_that_has_gone_is_told_as_ever(pairs: tuple[Writing, Writing]) -> None:
    lost = []
    for writing in pairs:
        settled(writing)
        writing.far.close()
        assert writing.write(b"nobody reads it") == ""
        for _ in range(3):
            writing.run()
        assert writing.write(b"nor that") == ""
        lost.append(writing.lost)
    assert lost[0] == lost[1]
    assert len(lost[0]) == 1


@pytest.mark.parametrize("octets", [b"", None])
def test_nothing_to_write_is_refused_as_ever(pairs: tuple[Writing, Writing], octets: Any) -> None:
    for writing in pairs:
        settled(writing)
    assert pairs[1].write(octets) == pairs[0].write(octets) != ""


def test_who_reads_the_log_finds_every_watcher_in_it(
    pairs: tuple[Writing, Writing], caplog: pytest.LogCaptureFixture
) -> None:
    said = []
    for writing in pairs:
        settled(writing)
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "pika"):
            writing.write(b"logged")
            assert writing.received(6) == b"logged"
        said.append([record.msg for record in caplog.records])
    assert said[1] == said[0]
    assert any("Turned on" in line for line in said[0])


@pytest.mark.parametrize("loops", [False, True])
def test_who_publishes_in_a_row_is_told_of_a_channel_that_the_broker_has_closed(loops: bool) -> None:
    peer = pair("pika").accelerated
    with running_broker() as broker, compat.installed("pika", loops=loops):
        connection = peer.root.BlockingConnection(peer.root.URLParameters(broker.url))
        channel = connection.channel()
        publish = partial(channel.basic_publish, "no such exchange", "key", b"lost")
        with pytest.raises(peer.exceptions.ChannelClosedByBroker, match="404"):
            deque(starmap(publish, repeat((), 100_000)), maxlen=0)
        connection.close()


def test_a_consumer_that_acknowledges_in_its_callback_leaves_nothing_behind() -> None:
    peer = pair("pika").accelerated
    count, received = 300, []
    with running_broker() as broker, compat.installed("pika", loops=True):
        connection = peer.root.BlockingConnection(peer.root.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("orders")
        for number in range(count):
            channel.basic_publish("", "orders", b"%d" % number)

        def take(source: Any, method: Any, _: Any, body: bytes) -> None:
            received.append(int(body))
            source.basic_ack(method.delivery_tag)
            if len(received) == count:
                source.stop_consuming()

        channel.basic_qos(prefetch_count=50)
        channel.basic_consume("orders", take)
        channel.start_consuming()
        connection.close()
        broker.assert_queue("orders", ready=[])
    assert received == list(range(count))
