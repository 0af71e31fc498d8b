"""How clients take frames from what they have read: as without, however octets come; errors are their own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from support.tiers import few

pytest.importorskip("aiormq")
pytest.importorskip("amqpstorm")

import aiormq.connection
import amqpstorm.connection
import pamqp.commands
import pamqp.frame

from amqpcodec import IMPL, compat

if IMPL != "c":
    pytest.skip("the pure build replaces nothing", allow_module_level=True)

from amqpcodec.compat import _aiormq, _amqpstorm, _patches, _relied

EDGES = {
    "whole": b"",
    "heartbeat": b"\x08\0\0\0\0\0\0\xce",
    "heartbeat without its end": b"\x08\0\0\0\0\0\0",
    "protocol header": b"AMQP\0\0\x09\1",
    "part of a method": b"\x01\0\x01\0\0\0\x0d\0\x3c",
    "part of an envelope": b"\x03\0\x01",
    "wrong end": b"\x01\0\x01\0\0\0\x04\0\x3c\0\x0b\x00",
    "unknown method": b"\x01\0\x01\0\0\0\x04\0\x3c\xff\xff\xce",
    "no payload": b"\x03\0\x01\0\0\0\0\xce",
    "short method": b"\x01\0\x01\0\0\0\x02\0\x3c\xce",
    "unknown type": b"\x07\0\x01\0\0\0\x01x\xce",
}


def traffic(count: int, longest: int = 5000, heartbeats: bool = True) -> bytes:
    """Messages on three channels, with replies and perhaps heartbeats in between."""
    source = random.Random(count)
    commands, marshal = pamqp.commands, pamqp.frame.marshal
    octets = []
    for number in range(count):
        channel = source.randrange(1, 4)
        body = source.randbytes(source.choice((1, 100, min(longest, 5000))))
        properties = commands.Basic.Properties(headers={"number": number}, message_id=f"m-{number}")
        octets += [
            marshal(commands.Basic.Deliver("c1", number + 1, False, "orders", "eu"), channel),
            marshal(pamqp.header.ContentHeader(0, len(body), properties), channel),
            marshal(pamqp.body.ContentBody(body), channel),
        ]
        if number % 7 == 0:
            octets += [EDGES["heartbeat"]] * heartbeats
            octets += [marshal(commands.Basic.QosOk(), channel)]
    return b"".join(octets)


@pytest.fixture(params=[False, True], ids=["stock", "accelerated"])
def accelerated(request: pytest.FixtureRequest) -> Iterator[bool]:
    if not request.param:
        yield False
        return
    with compat.installed("pamqp") as status:
        for name in (
            "aiormq.connection.FrameReceiver.get_frame",
            "amqpstorm.connection.Connection._read_buffer",
        ):
            assert name in status["pamqp"].originals
        yield True


def shown(frame: Any) -> Any:
    """A frame as values."""
    names = [*getattr(type(frame), "__slots__", ()), *getattr(frame, "__dict__", ())]
    values = {name: getattr(frame, name) for name in names}
    return type(frame).__name__, {name: shown(v) if name == "properties" else v for name, v in values.items()}


def received(octets: bytes, size: int, end: bool) -> list[Any]:
    """Frames, and what ends it, of aiormq's receiver, whose reader is fed chunks of one size."""

    async def receive() -> list[Any]:
        reader = asyncio.StreamReader()
        receiver = aiormq.connection.FrameReceiver(reader)
        found: list[Any] = []

        async def feed() -> None:
            for begin in range(0, len(octets), size):
                reader.feed_data(octets[begin : begin + size])
                await asyncio.sleep(0)
            if end:
                reader.feed_eof()

        feeding = asyncio.create_task(feed())
        try:
            async for weight, channel, frame in receiver:
                found.append((weight, channel, shown(frame)))
                if not end and feeding.done() and not reader._buffer:  # type: ignore[attr-defined]
                    break
        except Exception as error:
            cause = error.__cause__
            found.append((type(error), str(error), type(cause), str(cause)))
        await feeding
        found.append(bytes(reader._buffer))  # type: ignore[attr-defined]
        return found

    return asyncio.run(receive())


@pytest.mark.parametrize("size", few([1, 1 << 20, 9, 4096], 2, "further sizes"))
@pytest.mark.parametrize("edge", EDGES)
def test_aiormq_receives_the_same_frames_and_ends_in_the_same_way(edge: str, size: int) -> None:
    octets = traffic(12, size) + EDGES[edge]
    expected = received(octets, size, True)
    assert len(expected) > 36
    with compat.installed("pamqp"):
        assert received(octets, size, True) == expected


def test_aiormq_serves_tasks_that_wait_for_frames_in_their_order(accelerated: bool) -> None:
    async def receive() -> list[int]:
        reader = asyncio.StreamReader()
        receiver = aiormq.connection.FrameReceiver(reader)
        octets = b"".join(
            pamqp.frame.marshal(pamqp.commands.Basic.Ack(number), number) for number in range(1, 41)
        )
        found: list[int] = []

        async def take() -> None:
            for _ in range(10):
                _, channel, _ = await receiver.get_frame()
                found.append(channel)

        tasks = [asyncio.create_task(take()) for _ in range(4)]
        for begin in range(0, len(octets), 50):
            await asyncio.sleep(0)
            reader.feed_data(octets[begin : begin + 50])
        await asyncio.gather(*tasks)
        return found

    assert asyncio.run(receive()) == list(range(1, 41))


def test_aiormq_lets_the_transport_go_on_when_the_buffer_has_room(accelerated: bool) -> None:
    class Transport(asyncio.Transport):
        paused = False

        def pause_reading(self) -> None:
            self.paused = True

        def resume_reading(self) -> None:
            self.paused = False

    async def receive() -> bool:
        reader = asyncio.StreamReader(limit=1000)
        transport = Transport()
        reader.set_transport(transport)
        receiver = aiormq.connection.FrameReceiver(reader)
        reader.feed_data(traffic(10))
        assert transport.paused
        for _ in range(30):
            await receiver.get_frame()
        return transport.paused

    assert asyncio.run(receive()) is False


@pytest.mark.parametrize("of_class", [True, False])
def test_aiormq_reads_by_what_somebody_has_put_in_the_place_of_readexactly(
    accelerated: bool, of_class: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    exactly = asyncio.StreamReader.readexactly

    async def counted(reader: asyncio.StreamReader, count: int) -> bytes:
        asked.append(count)
        return await exactly(reader, count)

    async def receive() -> None:
        reader = asyncio.StreamReader()
        receiver = aiormq.connection.FrameReceiver(reader)
        ack = pamqp.frame.marshal(pamqp.commands.Basic.Ack(1), 1)
        reader.feed_data(ack * 2)
        await receiver.get_frame()
        if of_class:
            monkeypatch.setattr(asyncio.StreamReader, "readexactly", counted)
        else:
            monkeypatch.setattr(reader, "readexactly", partial(counted, reader))
        await receiver.get_frame()
        assert sum(asked) == len(ack)

    asyncio.run(receive())


class Recorded:
    """As much of AMQPStorm's connection as its loop uses."""

    _handle_amqp_frame = amqpstorm.connection.Connection._handle_amqp_frame

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.reads = 0
        self.exceptions: list[Any] = []
        self.heartbeat = SimpleNamespace(register_read=self._read)
        self._channel0 = SimpleNamespace(on_frame=lambda frame: self.frames.append((0, shown(frame))))
        self._channels = {number: SimpleNamespace(on_frame=self._taker(number)) for number in (1, 2)}

    def _read(self) -> None:
        self.reads += 1

    def _taker(self, number: int) -> Callable[[Any], None]:
        return lambda frame: self.frames.append((number, shown(frame)))


def read(octets: bytes, size: int) -> list[Any]:
    connection, buffer = Recorded(), b""
    rest = []
    try:
        for begin in range(0, len(octets), size):
            buffer += octets[begin : begin + size]
            buffer = amqpstorm.connection.Connection._read_buffer(connection, buffer)  # type: ignore[arg-type]
            rest.append(len(buffer))
    except Exception as error:
        rest.append((type(error), str(error)))
    errors = [(type(error), str(error)) for error in connection.exceptions]
    return [connection.frames, connection.reads, errors, rest, buffer]


@pytest.mark.parametrize("size", few([1, 1 << 20, 9, 4096], 2, "further sizes"))
@pytest.mark.parametrize("edge", EDGES)
def test_amqpstorm_reads_the_same_frames_and_keeps_the_same_octets(edge: str, size: int) -> None:
    # A heartbeat that is cut before its last octet stalls the client for good.
    octets = traffic(12, size, heartbeats=size > 100) + EDGES[edge] + traffic(2, size)
    expected = read(octets, size)
    assert len(expected[0]) > 20
    with compat.installed("pamqp"):
        assert read(octets, size) == expected


@pytest.mark.parametrize("nothing", [None, b"", bytearray()])
def test_amqpstorm_gets_back_what_is_no_octets(accelerated: bool, nothing: Any) -> None:
    read_buffer = amqpstorm.connection.Connection._read_buffer
    assert read_buffer(Recorded(), nothing) is nothing  # type: ignore[arg-type]


def test_what_somebody_puts_in_the_place_of_a_function_that_amqpstorm_calls_is_called(
    accelerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Recorded, "_handle_amqp_frame", lambda self, data_in: (b"", None, None))
    assert read(traffic(2), 1 << 20)[:2] == [[], 0]


def test_what_somebody_gives_one_connection_of_amqpstorm_is_called(accelerated: bool) -> None:
    connection = Recorded()
    vars(connection)["_handle_amqp_frame"] = lambda data_in: (b"", None, None)
    octets = traffic(2)
    assert amqpstorm.connection.Connection._read_buffer(connection, octets) == b""  # type: ignore[arg-type]
    assert connection.frames == []


def test_one_whose_source_is_another_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    get_frame = aiormq.connection.FrameReceiver.get_frame
    monkeypatch.setitem(_relied.LEARNT, "aiormq", {})
    monkeypatch.setattr(_relied, "_compared_once", _relied._compared_once.__wrapped__)
    monkeypatch.setattr(_patches, "_said", set())
    try:
        with pytest.warns(RuntimeWarning, match="left as it is: aiormq"):
            found = compat.install("pamqp")
        assert aiormq.connection.FrameReceiver.get_frame is get_frame
    finally:
        compat.uninstall("pamqp")
    assert found.stock["aiormq.connection.FrameReceiver.get_frame"] == _relied.REASON
    assert "amqpstorm.connection.Connection._read_buffer" in found.originals


def test_they_are_put_back() -> None:
    before = aiormq.connection.FrameReceiver.get_frame, amqpstorm.connection.Connection._read_buffer
    with compat.installed("pamqp"):
        assert aiormq.connection.FrameReceiver.get_frame is not before[0]
    assert (aiormq.connection.FrameReceiver.get_frame, amqpstorm.connection.Connection._read_buffer) == before


def test_each_has_the_name_by_which_it_is_known() -> None:
    for client, name in (("aiormq", _aiormq.GET_FRAME), ("amqpstorm", _amqpstorm.READ_BUFFER)):
        assert [each.name for each in _relied.table(client)] == [name]
