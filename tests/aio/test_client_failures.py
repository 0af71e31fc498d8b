"""Failures between a client and its broker: each raises what the documentation says, to everybody."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from support.broker import free_ports
from support.hurry import hurry
from support.scripted_broker import CONNECT, Peer, ScriptedBroker, hold
from world import World, cut, numbers, outcomes, published

from amqpcodec import ReplyError
from amqpcodec.aio import Backoff, Client
from amqpcodec.connection import ClientLogin, ConnectionLimits
from amqpcodec.errors import ConnectionLostError, LocalProtocolError
from amqpcodec.reply_errors import (
    AmqpAccessRefused,
    AmqpChannelError,
    AmqpCommandInvalid,
    AmqpFrameError,
    AmqpNotAllowed,
    AmqpPreconditionFailed,
)

TWICE = Backoff(first=0.001, most=0.002, attempts=2)


async def entered(client: Client) -> None:
    async with client:
        pytest.fail("there is no connection")


# -- before there is a connection


async def test_nobody_listens(world: World) -> None:
    with pytest.raises(ConnectionRefusedError):
        await entered(world.client(f"amqp://127.0.0.1:{free_ports(1)[0]}", backoff=TWICE))


async def test_none_of_several_listens(world: World) -> None:
    ports = free_ports(2)
    with pytest.raises(ConnectionLostError) as caught:
        await entered(world.client([f"amqp://127.0.0.1:{port}" for port in ports], backoff=TWICE))
    assert all(str(port) in str(caught.value) for port in ports)


async def test_a_name_that_no_server_has(world: World) -> None:
    with pytest.raises(socket.gaierror):
        await entered(world.client("amqp://no-such-host.invalid", backoff=TWICE))


def test_a_url_that_cannot_be_read_is_refused_at_once(world: World) -> None:
    for url in ("http://host", "amqp://host?no_such_option=1", "amqp://host:port"):
        with pytest.raises(ValueError, match=r"."):
            world.client(url)


def test_a_socket_serves_one_connection_and_no_client(world: World) -> None:
    """A client could not come back with it, and would try for ever."""
    with socket.socket() as own, pytest.raises(ValueError, match="sock"):
        world.client("amqp://localhost", sock=own)


@pytest.mark.parametrize(
    "end", [Peer.abort, Peer.hang_up, Peer.fall_silent], ids=["reset", "closed", "silent"]
)
async def test_a_proxy_without_a_broker_behind_it_is_one_that_is_down(world: World, end: Any) -> None:
    limits = ConnectionLimits(handshake_seconds=0.1 if end is Peer.fall_silent else 10)
    for number in (1, 2):
        world.broker.on(CONNECT, end, connection=number)
    with pytest.raises(ConnectionLostError):
        await entered(world.client(backoff=TWICE, connection_limits=limits))
    for number in (3, 4):
        world.broker.on(CONNECT, end, connection=number)
    async with world.client(connection_limits=limits) as client:
        await (await client.channel()).publish(b"")
    assert len(world.broker.peers) >= 5


@pytest.mark.parametrize("method", ["connection.start-ok", "connection.tune-ok", "connection.open"])
async def test_a_broker_that_goes_amid_the_handshake_is_tried_again(world: World, method: str) -> None:
    world.broker.on(method, lambda received: received.peer.abort(), connection=1)
    async with world.client() as client:
        assert client.stats().connections == 1
    assert len(world.broker.peers) == 2


async def test_a_login_that_is_refused_is_not_tried_again(world: World) -> None:
    with pytest.raises(AmqpAccessRefused, match="Login was refused"):
        await entered(world.client(login=ClientLogin("guest", "wrong")))
    assert len(world.broker.peers) == 1


async def test_a_login_that_is_refused_later_ends_the_client(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = published(channel, 2)
        await world.broker.got("basic.publish", 2)
        world.broker.users.clear()
        await cut(client, world.broker.peers[0])
        assert await outcomes(*sent) == ["AmqpAccessRefused"] * 2
    assert len(world.broker.peers) == 2


async def test_a_token_that_no_server_takes_is_not_sent(world: World) -> None:
    with pytest.raises(LocalProtocolError, match=r"start-ok of 92\d\d octets, handshake_frame_size 8192"):
        await entered(world.client(login=ClientLogin("guest", "x" * 9000)))
    assert world.broker.received("connection.start-ok") == []
    assert len(world.broker.peers) == 1


async def test_a_server_that_ends_at_a_large_token_is_asked_again_and_the_size_is_said(world: World) -> None:
    world.broker.on("connection.start-ok", lambda received: received.peer.abort())
    with pytest.raises(ConnectionLostError, match=r"after a frame of 52\d\d octets"):
        await entered(world.client(login=ClientLogin("guest", "x" * 5000), backoff=TWICE))
    assert len(world.broker.peers) == 2


async def test_a_virtual_host_that_there_is_not(world: World) -> None:
    with pytest.raises(AmqpNotAllowed, match="vhost mine not found"):
        await entered(world.client(f"{world.broker.url}/mine"))
    assert len(world.broker.peers) == 1


@pytest.mark.parametrize(
    "octets", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\0\1\0\0", b"\0" * 8], ids=["HTTP", "1.0", "zeros"]
)
async def test_something_else_that_listens_is_no_broker(world: World, octets: bytes) -> None:
    def react(peer: Peer) -> None:
        peer.send_garbage(octets)
        peer.stop_reading()

    world.broker.on(CONNECT, react)
    with pytest.raises(ReplyError):
        await entered(world.client(backoff=TWICE))
    assert len(world.broker.peers) == 1


async def test_a_server_that_allows_no_frame_of_the_least_size_is_to_blame(world: World) -> None:
    connection = world.amqp.Connection
    answers = (
        connection.Start(0, 9, {}, b"PLAIN", b"en_US"),
        connection.Tune(0, 2048, 0),
        connection.CloseOk(),
    )

    def answer(peer: Peer) -> None:
        peer.send_garbage(b"".join(world.amqp.encode_method(0, method) for method in answers))
        peer.stop_reading()

    world.broker.on(CONNECT, answer)
    with pytest.raises(AmqpNotAllowed, match=r"tune of the server has frame-max 2048, lower than 4096$"):
        await entered(world.client(backoff=TWICE))
    assert len(world.broker.peers) == 1


# -- TLS


def with_tls(world: World, certificate: Path) -> ScriptedBroker:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return ScriptedBroker(world.amqp, tls=context)


async def test_messages_go_over_tls(world: World, certificate: Path) -> None:
    async with with_tls(world, certificate) as broker:
        url = f"amqps://localhost:{broker.port}?cacertfile={certificate}"
        async with world.client(url) as client:
            await asyncio.gather(*published(await client.channel(), 10))
            await cut(client, broker.peers[0])
            await client.call(world.amqp.Queue.Declare("q"))
        assert numbers(broker.bodies()) == [*range(1, 11)]


async def test_a_certificate_that_does_not_hold_is_not_tried_again(world: World, certificate: Path) -> None:
    async with with_tls(world, certificate) as broker:
        for query in ("", f"?cacertfile={certificate}&server_name_indication=another"):
            with pytest.raises(ssl.SSLCertVerificationError):
                await entered(world.client(f"amqps://localhost:{broker.port}{query}"))


async def test_a_broker_without_tls_is_not_spoken_to(world: World, certificate: Path) -> None:
    def answer(peer: Peer) -> None:
        peer.send_garbage(b"AMQP\0\0\x09\1")

    world.broker.on(CONNECT, answer)
    url = world.broker.url.replace("amqp:", "amqps:") + f"?cacertfile={certificate}"
    with pytest.raises(OSError):  # noqa: PT011
        await entered(world.client(url, backoff=TWICE))


def test_a_certificate_file_that_there_is_not_is_said_at_once(world: World) -> None:
    with pytest.raises(FileNotFoundError):
        world.client("amqps://localhost?cacertfile=/nowhere")


# -- amid a connection


async def everybody(world: World, client: Client) -> list[asyncio.Future[Any]]:
    """Have somebody wait for a confirm, a window, a reply and a delivery."""
    world.broker.on("basic.publish", hold)
    world.broker.on("queue.declare", hold)
    channel = await client.channel(window=1)
    consumer = await channel.consume("q").__aenter__()
    waiting = [
        *published(channel, 2),
        asyncio.ensure_future(channel.publish_soon(b"3")),
        asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
        asyncio.ensure_future(anext(consumer)),
    ]
    await world.broker.got("basic.publish")
    await world.broker.got("queue.declare")
    return waiting


async def test_garbage_ends_the_client_and_everybody_is_told(world: World) -> None:
    async with world.client() as client:
        waiting = await everybody(world, client)
        world.broker.peers[0].send_garbage()
        assert await outcomes(*waiting) == ["AmqpFrameError"] * 5
        with pytest.raises(AmqpFrameError):
            await client.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.peers) == 1


@pytest.mark.parametrize("reads", [True, False])
async def test_a_broker_that_breaks_the_rules_ends_the_client_whether_it_answers_or_not(
    world: World, reads: bool
) -> None:
    async with world.client(close_seconds=0.05) as client:
        waiting = await everybody(world, client)
        if not reads:
            world.broker.peers[0].stop_reading()
        octets = world.amqp.encode_method(77, world.amqp.Queue.DeclareOk("q", 0, 0))
        world.broker.peers[0].send_garbage(octets)
        done, _ = await asyncio.wait(waiting, timeout=5)
        late = len(waiting) - len(done)
        with pytest.raises(AmqpChannelError):
            await (await client.channel()).publish(b"4")
        assert late == 0
        assert await outcomes(*waiting) == ["AmqpChannelError"] * 5


async def test_a_broker_that_uses_a_delivery_tag_twice_ends_the_client_and_nothing_else(world: World) -> None:
    async with world.client() as client:
        waiting = await everybody(world, client)
        [consume] = world.broker.received("basic.consume")
        deliver = world.amqp.Basic.Deliver(consume.method.consumer_tag, 1, False, "", "q")
        consume.peer.send_garbage(world.amqp.encode_message(consume.channel, deliver, None, b"") * 2)
        assert await outcomes(*waiting) == ["AmqpCommandInvalid"] * 5
        with pytest.raises(AmqpCommandInvalid, match="delivery tag 1 comes a second time"):
            await client.channel()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_broker_that_breaks_the_rules_of_a_channel_ends_it_whether_it_answers_or_not(
    world: World, reads: bool
) -> None:
    async with world.client(close_seconds=0.05) as client:
        waiting = await everybody(world, client)
        [publish] = world.broker.received("basic.publish")
        if not reads:
            world.broker.peers[0].stop_reading()
        octets = world.amqp.encode_method(publish.channel, world.amqp.Basic.Ack(99))
        world.broker.peers[0].send_garbage(octets)
        done, _ = await asyncio.wait(waiting, timeout=5)
        assert len(done) == len(waiting)
        assert await outcomes(*waiting) == ["AmqpPreconditionFailed"] * 5
        assert AmqpPreconditionFailed.code == 406


@pytest.mark.parametrize(
    ("code", "error"), [(505, "AmqpUnexpectedFrame"), (506, "AmqpResourceError"), (999, "ReplyError")]
)
async def test_a_close_by_another_code_is_final(world: World, code: int, error: str) -> None:
    async with world.client() as client:
        waiting = await everybody(world, client)
        world.broker.peers[0].close(code, "as the test says")
        assert await outcomes(*waiting) == [error] * 5
        with pytest.raises(ReplyError, match="as the test says"):
            await client.channel()
    assert len(world.broker.peers) == 1


async def test_a_broker_that_falls_silent_is_given_up_after_two_heartbeats(world: World) -> None:
    """Half-open: neither octets nor an end come any more."""
    hurry()
    async with world.client(heartbeat=1) as client:
        waiting = await everybody(world, client)
        world.broker.peers[0].fall_silent()
        del world.broker._reactions["basic.publish", 0]
        assert await outcomes(*waiting[:2]) == ["ok", "ok"]
        await (await waiting[2])
        with pytest.raises(ConnectionLostError, match="nothing came for 2 seconds"):
            await waiting[3]
        assert not waiting[4].done()
        waiting[4].cancel()
        await asyncio.wait(waiting)
        assert client.stats().connections == 2
    assert numbers(world.broker.bodies(connection=2)) == [1, 2, 3]


async def test_the_next_broker_of_several_takes_over(world: World) -> None:
    async with ScriptedBroker(world.amqp) as second:
        world.broker.on("basic.publish", hold)
        async with world.client([world.broker.url, second.url]) as client:
            channel = await client.channel()
            sent = published(channel, 5)
            await world.broker.got("basic.publish", 5)
            world.broker.stop_listening()
            world.broker.peers[0].close()
            await asyncio.gather(*sent)
        assert numbers(second.bodies()) == [1, 2, 3, 4, 5]


async def test_a_connection_with_fewer_channels_fails_those_that_it_has_no_room_for(world: World) -> None:
    async with world.client(channel_max=3) as client:
        kept = [await client.channel() for _ in range(3)]
        client._options["channel_max"] = 2
        await cut(client, world.broker.peers[0])
        ends = await outcomes(*(channel.publish(b"") for channel in kept))
    assert ends == ["ok", "ok", "LocalProtocolError"]
