"""The proxy passes on octets as they are, holds up the side that is too fast, and enforces its limits."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from support.hurry import hurry

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client, connect
from amqpcodec.capture import CapturedFrame, Fault, read_frames
from amqpcodec.connection import ChannelClosed, MessageReceived, Settled
from amqpcodec.errors import DecodeError
from amqpcodec.record import Proxy, Recorder
from amqpcodec.record.limiting import MessageLimit
from amqpcodec.testing import Broker, certificate, faults

LARGEST = 1000
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

pytestmark = pytest.mark.usefixtures("freed")


def items(path: Path) -> list[CapturedFrame | Fault]:
    return list(read_frames(str(path)))


@asynccontextmanager
async def between(path: Path, url: str, **options: Any) -> AsyncIterator[Proxy]:
    """A proxy that records to a file."""
    with Recorder(path) as recorder:
        async with Proxy(recorder, url, port=0, **options) as proxy:
            yield proxy


@asynccontextmanager
async def served(handler: Handler, **options: Any) -> AsyncIterator[str]:
    """A server of any kind; its URL."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0, **options)
    async with server:
        yield f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture(params=["as here", "3.11.2"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asyncio, also as in CPython 3.11.2: it begins to read after `connection_made`, paused or not."""
    if request.param == "3.11.2":
        from asyncio.selector_events import _SelectorTransport

        def add(self: Any, fd: int, callback: Any, *arguments: Any) -> None:
            if not self._closing:
                self._loop._add_reader(fd, callback, *arguments)

        monkeypatch.setattr(_SelectorTransport, "_add_reader", add)


async def test_octets_pass_as_they_are_both_ways(tmp_path: Path, reading: None) -> None:
    source = random.Random(7)
    sent, answered = source.randbytes(3_000_000), source.randbytes(2_000_000)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answered)
        assert await reader.read(-1) == sent
        writer.write(b"all")  # behind the client's end of the stream
        writer.close()

    async with served(answer) as url, between(tmp_path / "t.pcap", url) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(sent)
        writer.write_eof()
        assert await reader.read(-1) == answered + b"all"
        writer.close()
        await writer.wait_closed()
    done = proxy.recorder.stats()
    assert done.recorded + done.left_out == len(sent) + len(answered) + 3


async def test_a_side_that_does_not_read_holds_up_the_other(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    taken = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        await go_on.wait()
        while octets := await reader.read(1 << 16):
            taken += len(octets)
        writer.close()

    async with served(answer, limit=1 << 12) as url, between(tmp_path / "t.pcap", url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            client.setblocking(False)
            written, quiet = 0, 0
            while quiet < 20:
                try:
                    written += client.send(bytes(1 << 16))
                    quiet = 0
                except BlockingIOError:
                    quiet += 1
                await asyncio.sleep(0.01 if quiet else 0)
                assert written < 64 << 20
            assert proxy.recorder.stats().left_out < written  # it was not read ahead
            go_on.set()
            client.shutdown(socket.SHUT_WR)
            while await asyncio.get_running_loop().sock_recv(client, 10):
                pass
    assert taken == written


async def test_a_connection_that_is_reset_is_reset_in_the_capture(tmp_path: Path) -> None:
    async with Broker() as broker, between(tmp_path / "t.pcap", _place(broker)) as proxy:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        client.sendall(amqp.protocol_header())
        client.setblocking(False)
        await asyncio.get_running_loop().sock_recv(client, 10)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        while proxy._links:
            await asyncio.sleep(0.01)
    flags = [octets[47] for octets in _packets(tmp_path / "t.pcap")]
    assert flags[-1] & 4


def _packets(path: Path) -> list[bytes]:
    octets, at, found = path.read_bytes(), 24, []
    while at < len(octets):
        (size,) = struct.unpack_from("<I", octets, at + 8)
        found.append(octets[at + 16 : at + 16 + size])
        at += 16 + size
    return found


def _place(broker: Broker) -> str:
    return broker.url.replace("guest:guest@", "")


async def test_many_connections_at_once_are_recorded_apart(tmp_path: Path) -> None:
    async def work(port: int, number: int) -> None:
        async with Client(f"amqp://127.0.0.1:{port}") as client:
            queue = await client.call(amqp.Queue.Declare(exclusive=True))
            channel = await client.channel()
            for _ in range(5):
                await channel.publish(b"%d" % number, routing_key=queue.queue)

    async with Broker() as broker, between(tmp_path / "t.pcap", _place(broker)) as proxy:
        await asyncio.gather(*(work(proxy.port, number) for number in range(100)))
        while proxy._links:
            await asyncio.sleep(0.01)
    bodies: dict[int, set[bytes]] = {}
    for item in items(tmp_path / "t.pcap"):
        assert isinstance(item, CapturedFrame)
        if item.frame.type == 3:
            bodies.setdefault(item.connection.number, set()).add(bytes(item.frame.payload))
    assert len(bodies) == 100
    assert sorted(map(len, bodies.values())) == [1] * 100
    assert proxy.recorder.stats().missing_connections == 0


async def test_tls_on_both_sides(tmp_path: Path) -> None:
    pytest.importorskip("trustme")
    (own, own_authority), (brokers, brokers_authority) = certificate.make(), certificate.make()
    authority = tmp_path / "ca.pem"
    authority.write_bytes(brokers_authority)
    trusted = ssl.create_default_context(cadata=own_authority.decode())
    async with Broker(tls=brokers) as broker:
        url = f"{_place(broker)}?cacertfile={authority}"
        async with between(tmp_path / "t.pcap", url, ssl=own) as proxy:
            options: dict[str, Any] = {"ssl": trusted, "server_hostname": "localhost"}
            async with Client(f"amqps://127.0.0.1:{proxy.port}", **options) as client:
                await client.call(amqp.Queue.Declare("q"))
                channel = await client.channel()
                await channel.publish(bytes(300_000), routing_key="q")
    kinds = [each.frame.type for each in items(tmp_path / "t.pcap") if isinstance(each, CapturedFrame)]
    assert kinds.count(3) == 3
    assert not [each for each in items(tmp_path / "t.pcap") if isinstance(each, Fault)]


@pytest.mark.parametrize("client_tls", [False, True])
async def test_a_client_that_is_no_amqp_is_forwarded_and_left_out(client_tls: bool, tmp_path: Path) -> None:
    """A client that speaks TLS to a proxy without it gets the broker's answer."""
    async with Broker() as broker, between(tmp_path / "t.pcap", _place(broker)) as proxy:
        if client_tls:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", proxy.port, ssl=ssl.create_default_context())
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.read(-1))[:4] == b"AMQP"
            writer.close()
            await writer.wait_closed()
        while proxy._links:
            await asyncio.sleep(0.01)
    assert proxy.recorder.stats().left_out > 0


async def test_without_a_broker_the_client_is_sent_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        async with between(tmp_path / "t.pcap", f"amqp://127.0.0.1:{taken.getsockname()[1]}") as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            assert await reader.read(-1) == b""
            writer.close()
            await writer.wait_closed()
    assert "no broker" in caplog.text
    assert proxy.recorder.stats().connections == 0


async def test_a_broker_whose_host_cannot_be_asked_for_sends_the_client_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with between(tmp_path / "t.pcap", "amqp://localhost") as proxy:
        proxy.address = replace(proxy.address, host="a..b")
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        async with asyncio.timeout(5):
            assert await reader.read(-1) == b""
            writer.close()
            await writer.wait_closed()
            while proxy._links:
                await asyncio.sleep(0.01)
    assert "no broker" in caplog.text
    assert "label" in caplog.text  # of the codec idna, whose words each Python chooses


async def test_a_client_that_waits_for_the_broker_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proxy, "connect", lambda proxy, make: asyncio.sleep(60))
    async with between(tmp_path / "t.pcap", "amqp://127.0.0.1") as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port)):
            while not proxy._links:
                await asyncio.sleep(0.01)
            began = monotonic()
            await proxy.close()
    assert monotonic() - began < 5
    assert not proxy._links
    assert proxy.recorder.stats().connections == 0


# -- limits


async def test_too_large_a_message_closes_its_channel_on_both_sides(tmp_path: Path) -> None:
    async with (
        Broker() as broker,
        between(tmp_path / "t.pcap", _place(broker), largest=LARGEST) as proxy,
        await connect("127.0.0.1", proxy.port) as stream,
    ):
        connection = stream.connection
        for channel in (1, 2):
            connection.send(channel, amqp.Channel.Open())
            connection.send(channel, amqp.Confirm.Select())
        connection.send(2, amqp.Queue.Declare(queue="queue", exclusive=True))
        publish = amqp.Basic.Publish("", "queue", mandatory=True)
        connection.send_message(1, publish, None, bytes(LARGEST))
        connection.send_message(1, publish, None, bytes(300_000))
        connection.send_message(1, publish, None, b"dropped")
        connection.send_message(2, publish, None, b"passes")
        closed = settled = None
        async for event in stream:
            match event:
                case ChannelClosed():
                    closed = event
                case Settled(channel=2):
                    settled = event
            if closed and settled:
                break
        assert (closed.channel, closed.by, closed.reply_code) == (1, "peer", 311)
        assert (closed.class_id, closed.method_id) == (60, 40)
        # The channel is free again on both sides.
        connection.send(1, amqp.Channel.Open())
        connection.send(1, amqp.Basic.Consume(queue="queue", no_ack=True))
        bodies = []
        async for event in stream:
            if isinstance(event, MessageReceived):
                bodies.append(event.body)
                if event.body == b"passes":
                    break
        assert sorted(bodies, key=len) == [b"passes", bytes(LARGEST)]
    # The capture has what the client has sent and seen.
    found = [each for each in items(tmp_path / "t.pcap") if isinstance(each, CapturedFrame)]
    assert sum(each.frame.type == 2 and each.direction == 0 for each in found) == 4
    closes = [each for each in found if isinstance(each.frame.payload, amqp.Channel.Close)]
    assert [(each.direction, each.frame.payload.reply_code) for each in closes] == [(1, 311)]


def test_with_a_limit_nothing_is_kept_without_end() -> None:
    """Of frames, and of publishes whose content does not come."""
    limit = MessageLimit(LARGEST)
    limit.feed(0, amqp.protocol_header())
    publish = amqp.encode_method(1, amqp.Basic.Publish("e" * 255, "k" * 255))
    limit.feed(0, publish)
    longer = publish[:3] + (len(publish) - 7).to_bytes(4, "big") + publish[7:-1] + b"\0\xce"
    assert limit.take() == (b"", amqp.protocol_header())
    limit.feed(0, longer.replace(b"\0\1", b"\0\2", 1))
    [close] = amqp.FrameDecoder().feed(limit.take()[0])
    assert (close.channel, close.payload.reply_code) == (2, 311)
    with pytest.raises(DecodeError, match="frame_size"):
        limit.feed(0, b"\3\0\1" + (17 << 20).to_bytes(4, "big"))


async def test_a_client_that_sends_too_fast_is_held_back(tmp_path: Path) -> None:
    """300,000 octets at once, and as many in each second after that."""
    hurry()
    async with (
        Broker() as broker,
        between(tmp_path / "t.pcap", _place(broker), rate=300_000) as proxy,
        await connect("127.0.0.1", proxy.port) as stream,
    ):
        connection = stream.connection
        connection.send(1, amqp.Channel.Open())
        connection.send(1, amqp.Confirm.Select())
        begin = asyncio.get_running_loop().time()
        for _ in range(16):
            connection.send_message(1, amqp.Basic.Publish("amq.fanout"), None, bytes(40_000))
        confirmed = 0
        async for event in stream:
            confirmed += len(event.tags) if isinstance(event, Settled) else 0
            if confirmed == 16:
                break
        assert 0.7 < asyncio.get_running_loop().time() - begin < 40


async def test_with_a_limit_what_is_no_amqp_is_answered_by_a_close(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Broker() as broker,
        between(tmp_path / "t.pcap", _place(broker), largest=LARGEST) as proxy,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(amqp.protocol_header())
        received = await reader.readexactly(8)
        writer.write(b"\x01\x00\x00\x00\x00\x00\x04none!")
        received += await reader.read(-1)
        writer.close()
        await writer.wait_closed()
    *_, close = amqp.FrameDecoder().feed(received)
    assert isinstance(close.payload, amqp.Connection.Close)
    assert close.payload.reply_code == 501
    assert caplog.records[-1].levelno == logging.WARNING


# -- inside a program


async def test_a_client_of_a_program_is_recorded_with_all_its_connections(tmp_path: Path) -> None:
    async with Broker() as broker:
        with Recorder(tmp_path / "t.pcap") as recorder:
            async with Client(broker.url, record=recorder) as client:
                await client.call(amqp.Queue.Declare("q"))
                channel = await client.channel()
                await channel.publish(bytes(200_000), routing_key="q")
                broker.faults.add(faults.drop())
                for _ in range(3):
                    await channel.publish(bytes(200_000), routing_key="q")
    found = items(tmp_path / "t.pcap")
    assert not [each for each in found if isinstance(each, Fault) and each.kind != "lost"]
    frames = [each for each in found if isinstance(each, CapturedFrame)]
    assert {each.connection.number for each in frames} == {0, 1}
    methods = [each.frame.payload for each in frames if each.frame.type == 1]
    assert sum(isinstance(each, amqp.Basic.Ack) for each in methods) == 4
    [*starts] = [each for each in methods if isinstance(each, amqp.Connection.StartOk)]
    assert [bytes(each.response) for each in starts] == [b"*" * 12] * 2
