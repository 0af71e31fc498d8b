"""pika's handling of what sockets bring, accelerated and not: the same frames, rests and errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from support.campaign import in_full
from support.compat import inputs
from support.compat.engine import Copy, Pair, pair, play
from support.compat.pika_offline import consumer, delivery, offline
from support.implementation import wanted

from amqpcodec import compat

pytest.importorskip("pika")
pytestmark = pytest.mark.skipif("c" not in wanted(), reason="the pure build changes nothing")

COUNT = in_full(600, 240)
MESSAGE = {"content_type": "text/plain", "delivery_mode": 2, "headers": {"n": 1}}


@pytest.fixture
def both() -> Iterator[Pair]:
    """The two copies, one of them accelerated."""
    copies = pair("pika")
    with compat.installed("pika"):
        yield copies


def fallbacks() -> dict[str, int]:
    return dict(compat.status()["pika"].fallbacks)


def stream(random: Random) -> bytes:
    """Frames in a row, most of them sound."""
    frames = [
        inputs.some_frame(random) if random.random() < 0.04 else random.choice(inputs.frames())
        for _ in range(random.randrange(1, 9))
    ]
    if random.random() < 0.05:
        frames.insert(random.randrange(len(frames)), b"AMQP\0\0\x09\x01")
    return b"".join(frames)


def chunks(random: Random, octets: bytes) -> list[bytes]:
    """The octets as several reads may bring them."""
    cuts = sorted(random.randrange(len(octets) + 1) for _ in range(random.choice((0, 1, 3))))
    return [octets[start:end] for start, end in zip([0, *cuts], [*cuts, len(octets)], strict=True)]


def received(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Octets in chunks for a connection that keeps what it sees, and sometimes disturbs it meanwhile."""
    events: list[Any] = []
    kind = random.choice((offline(peer),) * 8 + (reading_itself(peer),))

    class Watched(kind):  # type: ignore[misc,valid-type]
        def _process_frame(self, frame: Any) -> None:
            events.append((frame, bytes(self._frame_buffer), len(self._frame_buffer), self.bytes_received))
            way = random.randrange(60)
            if way == 0:
                self._on_data_available(stream(random))
                events.append("back")
            elif way == 1:
                self._frame_buffer = b""
            elif way == 2:
                self._frame_buffer = random.choice(inputs.frames())
            elif way == 3:
                raise LookupError("by a callback")
            super()._process_frame(frame)

    def play_all() -> list[Any]:
        connection = Watched()
        for chunk in chunks(random, stream(random) + stream(random)):
            try:
                connection._on_data_available(chunk)
            except Exception as error:
                events.append(error)
            events.append((connection._frame_buffer, connection.bytes_received, connection.frames_received))
        return events

    return (play_all,)


def reading_itself(peer: Copy) -> Any:
    """A class of connections that reads frames in a way of its own."""

    class Reading(offline(peer)):  # type: ignore[misc]
        def _read_frame(self) -> Any:
            consumed, frame = super()._read_frame()
            return consumed, frame

    return Reading


@pytest.mark.parametrize("part", range(4))
def test_the_same_frames_come_out_of_the_same_octets_and_the_same_is_left(both: Pair, part: int) -> None:
    for number in range(COUNT // 4):
        mismatch = both.compare("received", received, f"loops/{part}/{number}")
        assert mismatch is None, f"\n{mismatch}"


def consumed(peer: Copy, random: Random) -> tuple[Any, ...]:
    """Messages in chunks to the callback of a consumer, who acknowledges them."""
    seen: list[Any] = []

    def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        seen.append((method, properties, body))
        channel.basic_ack(method.delivery_tag)

    def play_all() -> list[Any]:
        connection = consumer(peer, on_message)
        sizes = [random.choice((0, 1, 256, 5000)) for _ in range(20)]
        messages = [delivery(peer, tag, b"x" * size, **MESSAGE) for tag, size in enumerate(sizes, 1)]
        for chunk in chunks(random, b"".join(messages)):
            connection._on_data_available(chunk)
        return [seen, connection.sent, connection.bytes_received, connection.frames_received]

    return (play_all,)


def test_consumers_get_the_same_messages_and_nothing_falls_back(both: Pair) -> None:
    before = fallbacks()
    for number in range(in_full(30, 12)):
        mismatch = both.compare("consumed", consumed, f"consumed/{number}")
        assert mismatch is None, f"\n{mismatch}"
    assert fallbacks() == before


def test_a_call_from_within_a_callback_gets_what_is_left_and_what_it_brings(both: Pair) -> None:
    def nested(peer: Copy, random: Random) -> tuple[Any, ...]:
        tags: list[int] = []

        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            tags.append(method.delivery_tag)
            if method.delivery_tag == 2:
                channel.connection._on_data_available(delivery(peer, 9))
                tags.append(-2)

        def play_all() -> list[int]:
            connection = consumer(peer, on_message)
            connection._on_data_available(b"".join(delivery(peer, tag) for tag in (1, 2, 3)))
            return tags

        return (play_all,)

    stock, accelerated = (play(copy, nested, "") for copy in both)
    assert stock == accelerated
    assert "0x9" in str(accelerated)


def test_a_connection_that_is_reset_by_a_callback_reads_no_further(both: Pair) -> None:
    tags: list[int] = []

    def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        tags.append(method.delivery_tag)
        if method.delivery_tag == 2:
            channel.connection._init_connection_state()

    connection = consumer(both.accelerated, on_message)
    connection._on_data_available(b"".join(delivery(both.accelerated, tag) for tag in (1, 2, 3)))
    assert tags == [1, 2]
    assert connection._frame_buffer == b""


@pytest.mark.parametrize("name", ["_read_frame", "_trim_frame_buffer"])
def test_what_somebody_puts_in_the_place_of_the_parts_of_the_loop_is_called(
    both: Pair, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = both.accelerated
    tags: list[int] = []
    calls: list[Any] = []
    connection = consumer(peer, lambda channel, method, properties, body: tags.append(method.delivery_tag))
    stock = getattr(peer.connection.Connection, name)

    def counted(self: Any, *arguments: Any) -> Any:
        calls.append(arguments)
        return stock(self, *arguments)

    connection._on_data_available(delivery(peer, 1))
    monkeypatch.setattr(peer.connection.Connection, name, counted)
    connection._on_data_available(delivery(peer, 2))
    assert len(calls) == 3
    monkeypatch.undo()
    connection._on_data_available(delivery(peer, 3))
    assert len(calls) == 3
    monkeypatch.setattr(connection, name, lambda *arguments: counted(connection, *arguments))
    connection._on_data_available(delivery(peer, 4))
    assert len(calls) == 6
    assert tags == [1, 2, 3, 4]


def test_a_decode_frame_of_somebody_else_reads_the_frames(
    both: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = both.accelerated
    tags: list[int] = []
    connection = consumer(peer, lambda channel, method, properties, body: tags.append(method.delivery_tag))
    given: list[int] = []
    stock = both.stock.frame.decode_frame
    monkeypatch.setattr(peer.frame, "decode_frame", lambda data: given.append(len(data)) or stock(data))
    connection._on_data_available(delivery(peer, 1)[:-1])
    assert given != []


def test_a_callback_may_put_pika_back(both: Pair) -> None:
    tags: list[int] = []
    peer = both.accelerated

    def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        tags.append(method.delivery_tag)
        if method.delivery_tag == 2:
            compat.uninstall("pika")
            channel.connection._on_data_available(delivery(peer, 4))

    connection = consumer(peer, on_message)
    connection._on_data_available(b"".join(delivery(peer, tag) for tag in (1, 2, 3)))
    assert tags == [1, 2, 3, 4]


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


def test_an_adapter_of_the_program_is_given_frame_by_frame(both: Pair) -> None:
    def given(peer: Copy) -> list[bytes]:
        class Adapter(offline(peer)):  # type: ignore[misc]
            def _adapter_emit_data(self, data: bytes) -> None:
                pieces.append(data)
                super()._adapter_emit_data(data)

        pieces: list[bytes] = []
        Adapter()._output_marshaled_frames([b"method", b"header", b"body"])
        return pieces

    assert given(both.accelerated) == given(both.stock) == [b"method", b"header", b"body"]


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


def test_reads_are_larger_only_with_loops() -> None:
    from pika.adapters.utils.io_services_utils import _AsyncTransportBase

    with compat.installed("pika", loops=True):
        assert _AsyncTransportBase._MAX_RECV_BYTES == 65536
    with compat.installed("pika"):
        assert _AsyncTransportBase._MAX_RECV_BYTES == 4096


def test_a_frame_larger_than_agreed_on_is_refused_at_once_if_tolerant() -> None:
    peer = pair("pika").accelerated
    head = struct.pack(">BHI", 3, 1, 200_000)
    with compat.installed("pika", tolerant=True):
        connection = consumer(peer, print)
        connection._on_data_available(head[:6])
        with pytest.raises(
            peer.exceptions.InvalidFrameError, match=r"^Frame of 200008 octets, 131072 were agreed on$"
        ):
            connection._on_data_available(head[6:])
    with compat.installed("pika"):
        connection = consumer(peer, print)
        connection._on_data_available(head)
        assert connection._frame_buffer == head


def test_octets_that_pika_refuses_one_by_one_do_not_cost_more_the_more_there_are(both: Pair) -> None:
    """Each frame falls back; what is handed to pika is that frame, not all that is behind it."""
    import time

    def seconds(count: int) -> float:
        connection = consumer(both.accelerated, print)
        connection._process_frame = lambda frame: None
        octets = b"AMQP\0\0\x09\x01" * count
        start = time.process_time()
        connection._on_data_available(octets)
        assert connection.bytes_received > len(octets)
        return time.process_time() - start

    few = min(seconds(2000) for _ in range(3))
    assert min(seconds(16000) for _ in range(3)) < 20 * few
