"""The proxy of the examples closes channels that break its limit, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from support.examples import serving
from support.implementation import Implementation

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import connect
from amqpcodec.connection import ChannelClosed, MessageReceived, Settled

LARGEST = 1000


@pytest.fixture(scope="module")
def proxy(impl: Implementation) -> Iterator[tuple[int, Path]]:
    """The proxy before the broker of the examples: its port and log."""
    with (
        serving("broker", impl.name) as (broker, _),
        serving("proxy", impl.name, "--broker", f"127.0.0.1:{broker}", "--largest", str(LARGEST)) as found,
    ):
        yield found


def test_too_large_a_message_closes_its_channel_on_both_sides(proxy: tuple[int, Path]) -> None:
    port, log = proxy

    async def work() -> None:
        async with await connect("127.0.0.1", port) as stream:
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

    asyncio.run(asyncio.wait_for(work(), 30))
    assert " basic.publish exchange='' key='queue' 300000 octets" in log.read_text()


def test_a_client_that_sends_too_fast_is_held_back(impl: Implementation) -> None:
    """100,000 octets at once, and as many in each second after that; heartbeats and answers pass as ever."""
    with (
        serving("broker", impl.name) as (broker, _),
        serving("proxy", impl.name, "--broker", f"127.0.0.1:{broker}", "--rate", "100000") as (port, _),
    ):

        async def work() -> float:
            async with await connect("127.0.0.1", port) as stream:
                connection = stream.connection
                connection.send(1, amqp.Channel.Open())
                connection.send(1, amqp.Confirm.Select())
                begin = monotonic()
                for _ in range(16):
                    connection.send_message(1, amqp.Basic.Publish("amq.fanout"), None, bytes(10_000))
                confirmed = 0
                async for event in stream:
                    confirmed += len(event.tags) if isinstance(event, Settled) else 0
                    if confirmed == 16:
                        return monotonic() - begin
            raise AssertionError("the connection has ended")

        assert 0.4 < asyncio.run(asyncio.wait_for(work(), 30)) < 10


def test_what_is_no_amqp_is_answered_by_a_close(proxy: tuple[int, Path]) -> None:
    port, _ = proxy
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(amqp.protocol_header())
        received = b""
        while len(received) < 8:
            received += client.recv(65536)
        client.sendall(b"\x01\x00\x00\x00\x00\x00\x04none!")
        while octets := client.recv(65536):
            received += octets
    *_, close = amqp.FrameDecoder().feed(received)
    assert isinstance(close.payload, amqp.Connection.Close)
    assert close.payload.reply_code == 501


def test_without_a_broker_the_client_is_sent_away(impl: Implementation, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers here
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with serving("proxy", impl.name, "--broker", address) as (port, log):
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                assert client.recv(10) == b""
            assert "no broker" in log.read_text()
