"""How connections of pika send with `loops=True` and without: the same octets, watchers, calls and logs."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from support.compat.engine import Copy, Pair, pair
from support.compat.pika_offline import consumer, offline
from support.implementation import wanted

from amqpcodec import compat

pytest.importorskip("pika")
pytestmark = pytest.mark.skipif("c" not in wanted(), reason="the pure build changes nothing")

POLLERS = ("EPollPoller", "PollPoller", "SelectPoller")


@pytest.fixture
def both() -> Iterator[Pair]:
    """The two copies, one of them with its loop replaced."""
    copies = pair("pika")
    with compat.installed("pika", loops=True):
        yield copies


# -- frames


def published(peer: Copy, size: int) -> tuple[bytes, int, int, int]:
    """Octets of a message, in how many pieces they are sent, and what is counted."""
    connection = consumer(peer, print)
    connection.sent.clear()
    before = connection.bytes_sent, connection.frames_sent
    properties = peer.spec.BasicProperties(headers={"n": 1})
    connection._channels[1].basic_publish("an exchange", "a.routing.key", b"x" * size, properties)
    counted = connection.bytes_sent - before[0], connection.frames_sent - before[1]
    return b"".join(connection.sent), len(connection.sent), *counted


@pytest.mark.parametrize(("size", "pieces"), [(0, 1), (256, 1), (65_000, 1), (66_000, 3), (300_000, 5)])
def test_the_frames_of_a_message_are_sent_as_one_piece_if_they_are_small(
    both: Pair, size: int, pieces: int
) -> None:
    octets, _, *counted = published(both.stock, size)
    assert published(both.accelerated, size) == (octets, pieces, *counted)
    assert counted == [len(octets), octets.count(b"\xce\x03\0\x01") + 2]


@pytest.mark.parametrize("frames", [[b"a", b"b"], [b"a"], [], [b"a", b""], [b"a", "b"], (b"a", b"b")])
def test_a_piece_that_cannot_be_sent_is_counted_as_ever(both: Pair, frames: Any) -> None:
    def sent(peer: Copy) -> tuple[Any, ...]:
        def refuse(octets: Any) -> None:
            raise LookupError("no transport")

        connection = offline(peer)()
        connection._adapter_emit_data = refuse
        try:
            connection._output_marshaled_frames(frames)
        except LookupError:
            return "refused", connection.bytes_sent, connection.frames_sent
        return "sent", connection.bytes_sent, connection.frames_sent

    assert sent(both.accelerated) == sent(both.stock)


# -- watching a socket for room


class Watching:
    """An adapter of a copy of pika, whose callbacks tell their names.

    Args:
        peer: the copy.
        poller: the name of a class.
    """

    def __init__(self, peer: Copy, poller: str) -> None:
        pollers = getattr(peer, "adapters.select_connection")
        self.module = getattr(peer, "adapters.utils.selector_ioloop_adapter")
        self.loop = pollers.IOLoop()
        self.loop._poller.close()
        cls = getattr(pollers, poller)
        self.loop._poller = self.poller = cls(self.loop._get_remaining_interval, self.loop.process_timeouts)
        self.loop.activate_poller()
        self.adapter = self.module.SelectorIOServicesAdapter(self.loop)
        self.said: list[Any] = []

    def do(self, name: str, *arguments: Any) -> None:
        """Call the adapter, and note what comes of it."""
        given = [self.teller(each) if isinstance(each, tuple) else each for each in arguments]
        try:
            self.said.append(getattr(self.adapter, name)(*given))
        except Exception as error:
            self.said.append((type(error).__name__, str(error)))
        watchers = self.adapter._watchers.items()
        self.said.append([(fd, bool(each.reader), bool(each.writer)) for fd, each in watchers])
        self.said.append([sorted(each) for each in self.poller._fd_events.values()])

    def teller(self, event: tuple[str, int]) -> Any:
        return lambda: self.said.append(event)

    def poll(self) -> None:
        """Let what is ready be called."""
        self.loop.add_callback(lambda: None)
        self.loop.poll()
        self.loop.process_timeouts()

    def close(self) -> None:
        self.loop.deactivate_poller()
        self.loop.close()


@pytest.fixture
def descriptors() -> Iterator[list[int]]:
    """Sockets that have room and something to be read."""
    sockets = [each for _ in range(2) for each in socket.socketpair()]
    for each in sockets[::2]:
        each.send(b"x")
    yield [each.fileno() for each in sockets]
    for each in sockets:
        each.close()


def watched(peer: Copy, poller: str, random: Random, descriptors: list[int]) -> list[Any]:
    watching = Watching(peer, poller)
    try:
        for _ in range(60):
            fd: Any = (
                random.choice(descriptors) if random.random() < 0.97 else random.choice([True, "1", None])
            )
            what = random.choice(["reader", "writer", "writer"])
            if random.random() < 0.55:
                callback = (what, fd) if random.random() < 0.97 else None
                watching.do(f"set_{what}", fd, callback)
            else:
                watching.do(f"remove_{what}", fd)
            if random.random() < 0.5:
                watching.poll()
        return watching.said
    finally:
        watching.close()


@pytest.mark.parametrize("poller", POLLERS)
def test_the_same_sockets_are_watched_for_the_same(both: Pair, poller: str, descriptors: list[int]) -> None:
    for seed in range(30):
        stock, accelerated = (watched(peer, poller, Random(seed), descriptors) for peer in both)
        assert accelerated == stock, seed
        assert len(stock) > 150


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_the_same_is_logged(both: Pair, level: int, caplog: pytest.LogCaptureFixture) -> None:
    def logged(peer: Copy) -> list[str]:
        caplog.clear()
        watched(peer, "EPollPoller", Random(1), descriptors)
        return [record.getMessage().partition("<")[0] for record in caplog.records]

    near, far = socket.socketpair()
    descriptors = [near.fileno(), far.fileno()]
    with caplog.at_level(level, "pika"):
        stock, accelerated = logged(both.stock), logged(both.accelerated)
    near.close()
    far.close()
    assert accelerated == stock
    assert bool(stock) == (level == logging.DEBUG)


PATCHED = {
    "check_fd_arg": ("adapters.utils.selector_ioloop_adapter", ""),
    "update_handler": ("adapters.select_connection", "IOLoop"),
    "_set_handler_events": ("adapters.select_connection", "_PollerBase"),
    "_modify_fd_events": ("adapters.select_connection", "EPollPoller"),
}


@pytest.mark.parametrize("name", PATCHED)
def test_what_somebody_puts_in_the_place_of_the_parts_is_called(
    both: Pair, name: str, descriptors: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def calls(peer: Copy, instance: bool) -> int:
        module, cls = PATCHED[name]
        watching = Watching(peer, "EPollPoller")
        owner: Any = getattr(peer, module)
        owner = getattr(owner, cls) if cls else owner
        made: list[Any] = []
        original = getattr(owner, name)
        one = watching.loop if cls == "IOLoop" else watching.poller

        def counted(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            return original(*([one] * (instance and bool(cls))), *arguments, **named)

        watching.do("set_reader", descriptors[0], ("reader", 0))
        with monkeypatch.context() as patch:
            patch.setattr(one if instance and cls else owner, name, counted)
            watching.do("set_writer", descriptors[0], ("writer", 0))
            watching.do("remove_writer", descriptors[0])
        watching.close()
        return len(made)

    for instance in (False, True):
        assert calls(both.accelerated, instance) == calls(both.stock, instance) == 2
