"""The asyncio adapter, and the blocking example, against our own server and a real broker."""

from __future__ import annotations

import asyncio
import runpy
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.certificates import self_signed
from support.hurry import hurry

from amqpcodec import AmqpError, aio
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, connect, serve
from amqpcodec.connection import (
    ChannelOpened,
    ClientLogin,
    Connection,
    ConnectionClosed,
    ConnectionLimits,
    MessageReceived,
    MethodReceived,
    Outstanding,
    ServerLogin,
    Settled,
    Violation,
)
from amqpcodec.reply_errors import AmqpAccessRefused

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "blocking.py"
LOGIN = ServerLogin(lambda name, password: password == "guest")
OPENING = (Outstanding(1, awaited=(amqp.Channel.Open(),)),)


async def confirm(stream: AmqpStream) -> None:
    """Open what is asked for, and confirm what is published."""
    connection = stream.connection
    async for event in stream:
        match event:
            case MethodReceived(channel, amqp.Channel.Open()):
                connection.send(channel, amqp.Channel.OpenOk())
            case MethodReceived(channel, amqp.Confirm.Select()):
                connection.send(channel, amqp.Confirm.SelectOk())
            case MethodReceived(channel, amqp.Queue.Declare(queue=name)):
                connection.send(channel, amqp.Queue.DeclareOk(name, 0, 0))
            case MessageReceived(channel, sequence_number=int(number)):
                connection.send(channel, amqp.Basic.Ack(number))


def with_server(
    client: Callable[[int], Awaitable[Any]],
    handler: Callable[[AmqpStream], Awaitable[None]] = confirm,
    **options: Any,
) -> Any:
    """Run a client beside a server of its own."""

    async def run() -> Any:
        server = await serve(handler, "127.0.0.1", 0, login=LOGIN, **options)
        try:
            return await asyncio.wait_for(client(server.sockets[0].getsockname()[1]), 60)
        finally:
            server.close()

    return asyncio.run(run())


async def publish(stream: AmqpStream, bodies: list[bytes], queue: str = "") -> list[int]:
    """Publish, and wait until all is confirmed; the sequence numbers in the order of their confirmation."""
    connection = stream.connection
    channel = connection.open_channel()
    connection.send(channel, amqp.Confirm.Select())
    for body in bodies:
        message = amqp.Basic.Publish(routing_key=queue)
        connection.send_message(channel, message, amqp.BasicProperties(headers={"n": len(body)}), body)
        await stream.drain()
    confirmed: list[int] = []
    async for event in stream:
        if isinstance(event, Settled):
            assert isinstance(event.method, amqp.Basic.Ack)
            confirmed += event.tags
        if len(confirmed) == len(bodies):
            break
    assert connection.unconfirmed(channel) == ()
    return confirmed


def test_a_client_publishes_to_a_server_with_confirms() -> None:
    async def client(port: int) -> list[int]:
        async with await connect("127.0.0.1", port) as stream:
            return await publish(stream, [b"x" * size for size in range(0, 200000, 1000)])

    assert with_server(client) == list(range(1, 201))


def test_closing_says_what_was_not_confirmed() -> None:
    async def never_confirm(stream: AmqpStream) -> None:
        async for event in stream:
            if isinstance(event, MethodReceived) and isinstance(event.method, amqp.Channel.Open):
                stream.connection.send(1, amqp.Channel.OpenOk())

    async def client(port: int) -> None:
        stream = await connect("127.0.0.1", port)
        channel = stream.connection.open_channel()
        confirm = amqp.Confirm.Select()
        stream.connection.send(channel, confirm)
        stream.connection.send_message(channel, amqp.Basic.Publish(), None, b"body")
        closed = await stream.close()
        assert closed is not None
        assert closed.outstanding == (Outstanding(1, (1,), (), (amqp.Channel.Open(), confirm)),)
        assert (closed.by, closed.reply_code, closed.reply_text) == ("local", 200, "")
        assert await stream.close() is None

    with_server(client, never_confirm)


def test_a_refused_login_raises_the_error_of_its_code() -> None:
    async def client(port: int) -> None:
        with pytest.raises(AmqpAccessRefused, match="login was refused"):
            await connect("127.0.0.1", port, login=ClientLogin("a", "wrong"))

    with_server(client)


def ended(handler: Callable[[AmqpStream], Awaitable[None]]) -> tuple[list[Any], list[Any]]:
    """What a client sees of a handler after channel.open, and what is reported to the loop."""
    reported: list[Any] = []

    async def client(port: int) -> list[Any]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: reported.append(context.get("exception")))
        stream = await connect("127.0.0.1", port)
        stream.connection.open_channel()
        events = [event async for event in stream]
        with pytest.raises(ConnectionResetError):
            await stream.drain()
        return events

    return with_server(client, handler), reported


def test_a_server_that_hangs_up_is_the_end() -> None:
    async def hang_up(stream: AmqpStream) -> None:
        async for _ in stream:
            stream._transport.abort()

    [closed], reported = ended(hang_up)
    assert (type(closed), closed.by, reported) == (ConnectionClosed, "eof", [])


def test_a_handler_that_is_done_closes_the_connection() -> None:
    async def be_done(stream: AmqpStream) -> None:
        await anext(stream)

    assert ended(be_done) == ([ConnectionClosed("peer", 200, "", outstanding=OPENING)], [])


def test_a_handler_that_fails_is_an_internal_error_and_reported() -> None:
    failure = RuntimeError("nothing for the peer to read")

    async def fail(stream: AmqpStream) -> None:
        await anext(stream)
        raise failure

    closed = ConnectionClosed("peer", 541, "INTERNAL_ERROR", outstanding=OPENING)
    assert ended(fail) == ([closed], [failure])


def test_a_handler_that_is_cancelled_forces_the_connection_to_close() -> None:
    async def be_cancelled(stream: AmqpStream) -> None:
        await anext(stream)
        raise asyncio.CancelledError

    [closed], reported = ended(be_cancelled)
    assert (closed.by, closed.reply_code, reported) == ("peer", 320, [])


async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy whose broker is down: it accepts, and hangs up."""
    writer.close()


async def cut_off_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(8)
    writer.write(amqp.encode_method(0, amqp.Connection.Start(0, 9, {}, b"PLAIN", b"en_US")))
    await reader.read(1)
    writer.close()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    linger = struct.pack("ii", 1, 0)  # closing sends RST
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize("answer", [cut_off, cut_off_later, reset, say_nothing])
def test_a_broker_that_is_down_behind_a_proxy_looks_like_one_that_is_down(answer: Any) -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answer(reader, writer)
            ended.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        limits = ConnectionLimits(handshake_seconds=0.2)
        with pytest.raises(ConnectionResetError) as raised:
            await asyncio.wait_for(connect("127.0.0.1", port, connection_limits=limits), 10)
        assert isinstance(raised.value, ConnectionResetError)
        assert isinstance(raised.value, AmqpError)
        silent = answer is say_nothing
        assert str(raised.value) == (
            "no connection within 0.2 seconds"
            if silent
            else "the peer has ended the stream without connection.close"
        )
        await asyncio.wait_for(ended.wait(), 10)  # else a later test is blamed for what this one leaves open
        server.close()

    asyncio.run(run())


def test_a_block_that_is_cancelled_does_not_wait_for_the_peer() -> None:
    """The peer is there, and answers nothing."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        stream, transport = await served(close_seconds=60)
        begin = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), stream:
                await anext(stream)
        assert loop.time() - begin < 5
        close = amqp.Connection.Close(320, "CONNECTION_FORCED - the server ends", 0, 0)
        assert transport.written.endswith(amqp.encode_method(0, close))
        assert transport.closing

    asyncio.run(run())


def test_a_block_that_is_cancelled_while_it_waits_for_the_peer_ends_at_once() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        stream, transport = await served(close_seconds=60)
        begin = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), stream:
                pass
        assert loop.time() - begin < 5
        assert transport.closing

    asyncio.run(run())


def test_a_client_that_is_cancelled_closes_by_the_usual_code() -> None:
    seen: list[Any] = []

    async def watch(stream: AmqpStream) -> None:
        seen.extend([event async for event in stream])

    async def client(port: int) -> None:
        stream = await connect("127.0.0.1", port)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), stream:
                await anext(stream)
        while not seen:
            await asyncio.sleep(0.01)

    with_server(client, watch)
    assert seen == [ConnectionClosed("peer", 200, "")]


def test_a_handler_that_is_done_before_the_handshake_ends_the_connection() -> None:
    async def run() -> None:
        done = asyncio.Event()

        async def leave(stream: AmqpStream) -> None:
            done.set()

        server = await serve(leave, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await asyncio.wait_for(done.wait(), 10)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        server.close()

    asyncio.run(run())


def test_a_client_that_fails_says_so() -> None:
    seen: list[Any] = []

    async def watch(stream: AmqpStream) -> None:
        seen.extend([event async for event in stream])

    async def client(port: int) -> None:
        with pytest.raises(KeyError):
            async with await connect("127.0.0.1", port):
                raise KeyError
        while not seen:
            await asyncio.sleep(0.01)

    with_server(client, watch)
    assert seen == [ConnectionClosed("peer", 541, "INTERNAL_ERROR")]


def test_what_is_sent_is_written_whoever_sends_it() -> None:
    """A task that only sends, while another waits for events."""

    async def client(port: int) -> Any:
        async with await connect("127.0.0.1", port) as stream:
            events = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.01)
            stream.connection.open_channel()
            return await asyncio.wait_for(events, 5)

    assert isinstance(with_server(client), ChannelOpened)


def test_a_writer_waits_for_a_reader_that_is_slow() -> None:
    gate: list[asyncio.Event] = []

    async def slow(stream: AmqpStream) -> None:
        gate.append(asyncio.Event())
        async for event in stream:
            if isinstance(event, MethodReceived):
                stream.connection.send(event.channel, amqp.Channel.OpenOk())
                await stream.drain()
                await gate[0].wait()
            if isinstance(event, MessageReceived) and event.method.routing_key == "last":
                return

    async def client(port: int) -> tuple[bool, int]:
        stream = await connect("127.0.0.1", port)
        channel = stream.connection.open_channel()
        await stream.drain()
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for _ in range(400):
                stream.connection.send_message(channel, amqp.Basic.Publish(), None, bytes(1 << 18))
                await stream.drain()
                sent += 1
            stream.connection.send_message(channel, amqp.Basic.Publish(routing_key="last"), None, b"")
            await stream.drain()

        task = asyncio.create_task(flood())
        await asyncio.sleep(0.5)
        held, before = not task.done(), sent
        gate[0].set()
        await task
        async for _ in stream:
            pass
        return held, before

    held, before = with_server(client, slow)
    assert held
    assert before < 300


def test_heartbeats_are_sent_while_nothing_else_is() -> None:
    async def client(port: int) -> str:
        hurry()
        async with await connect("127.0.0.1", port, heartbeat=1) as stream:
            assert stream.connection.heartbeat == 1
            reader = asyncio.create_task(anext(stream))
            await asyncio.sleep(2.6)
            reader.cancel()
            return stream.connection.state

    assert with_server(client) == "open"


def test_tls_is_that_of_asyncio(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(certificate, key)
    ours = ssl.create_default_context(cafile=certificate)
    ours.check_hostname = False

    async def client(port: int) -> list[int]:
        async with await connect("127.0.0.1", port, ssl=ours) as stream:
            return await publish(stream, [b"x" * 100000] * 3)

    assert with_server(client, ssl=theirs) == [1, 2, 3]


@pytest.mark.slow("needs a RabbitMQ")
def test_a_broker_confirms_and_returns_what_was_published(rabbitmq: str) -> None:
    place = urlsplit(rabbitmq)
    bodies = [b"%d" % size + b"x" * size for size in (*range(300), 5000, 131072, 3 << 20)]

    async def talk() -> list[bytes]:
        login = ClientLogin(place.username or "guest", place.password or "guest")
        async with await connect(place.hostname or "", place.port, login=login) as stream:
            connection = stream.connection
            channel = connection.open_channel()
            connection.send(channel, amqp.Queue.Declare(exclusive=True))
            async for event in stream:
                if isinstance(event, MethodReceived):
                    break
            queue = event.method.queue
            assert sorted(await publish(stream, bodies, queue)) == list(range(1, len(bodies) + 1))
            connection.send(channel, amqp.Basic.Consume(queue=queue, consumer_tag="ct"))
            received = []
            async for event in stream:
                if isinstance(event, MessageReceived):
                    connection.send(channel, amqp.Basic.Ack(event.method.delivery_tag))
                    received.append(event.body)
                if len(received) == len(bodies):
                    break
            assert connection.unacknowledged(channel) == ()
            return received

    assert asyncio.run(asyncio.wait_for(talk(), 120)) == bodies


@pytest.mark.slow("needs a RabbitMQ")
def test_the_blocking_example_publishes(rabbitmq: str) -> None:
    runpy.run_path(str(EXAMPLE))["publish"](rabbitmq, "a message")
    ended = subprocess.run(
        [sys.executable, EXAMPLE, rabbitmq, "another"],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert ended.stdout == "closed: 200 \n"


class Transport:
    """A transport whose peer is the test."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = self.aborted = False
        self.pauses = 0
        self.stream: AmqpStream

    def write(self, octets: bytes) -> None:
        self.written += octets

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        if not self.aborted:
            asyncio.get_running_loop().call_soon(self.stream.connection_lost, None)
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        self.pauses += 1

    def resume_reading(self) -> None:
        pass


def receive(stream: AmqpStream, octets: bytes) -> None:
    stream.get_buffer(-1)[: len(octets)] = octets
    stream.buffer_updated(len(octets))


async def served(heartbeat: int = 60, **limits: Any) -> tuple[AmqpStream, Transport]:
    """A server's end of a connection with channel 1, without any network."""
    clock = asyncio.get_running_loop().time
    connection = Connection("server", clock=clock, connection_limits=ConnectionLimits(**limits))
    stream, transport = AmqpStream(connection, LOGIN), Transport()
    transport.stream = stream
    stream.connection_made(transport)
    start_ok = amqp.Connection.StartOk({}, "PLAIN", b"\0guest\0guest", "en_US")
    methods = [start_ok, amqp.Connection.TuneOk(10, 4096, heartbeat), amqp.Connection.Open("/")]
    octets = b"".join(amqp.encode_method(0, method) for method in methods)
    receive(stream, b"AMQP\0\0\x09\1" + octets + amqp.encode_method(1, amqp.Channel.Open()))
    assert isinstance(await anext(stream), MethodReceived)
    connection.send(1, amqp.Channel.OpenOk())
    await stream.drain()
    return stream, transport


def test_what_a_peer_does_not_read_is_limited() -> None:
    async def flood() -> None:
        stream, transport = await served(send_buffer=1000)
        stream.pause_writing()
        before = transport.written
        for _ in range(200):
            reader = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            receive(stream, amqp.encode_method(1, amqp.Channel.Flow(True)))
            event = await reader
            if isinstance(event, Violation):
                break
        assert isinstance(event, Violation)
        assert (event.reply_code, transport.written) == (506, before)
        stream.resume_writing()
        assert transport.written.endswith(amqp.encode_method(0, event.to_send))

    asyncio.run(flood())


def test_a_peer_that_never_reads_the_rest_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio.stream, "LINGER_SECONDS", 0.01)

    async def linger() -> None:
        stream, transport = await served()
        receive(stream, amqp.encode_method(0, amqp.Connection.Close(200, "", 0, 0)))
        assert isinstance(await anext(stream), ConnectionClosed)
        stream.end()
        assert (transport.closing, transport.aborted) == (True, False)
        await asyncio.sleep(0.05)
        assert transport.aborted

    asyncio.run(linger())


def test_drain_does_not_outlast_the_connection() -> None:
    async def drain() -> None:
        stream, transport = await served(close_seconds=0.05)
        stream.pause_writing()
        stream.connection.close()
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(stream.drain(), 10)
        assert transport.written.endswith(amqp.encode_method(0, amqp.Connection.Close(200, "", 0, 0)))

    asyncio.run(drain())


@pytest.mark.parametrize(("most", "pauses"), [(8, 0), (7, 1)])
def test_a_transport_pauses_when_more_is_unread_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, most: int, pauses: int
) -> None:
    monkeypatch.setattr(aio.stream, "UNREAD_BYTES", most)

    async def begin() -> None:
        stream, transport = AmqpStream(Connection("server"), LOGIN), Transport()
        stream.connection_made(transport)
        receive(stream, b"AMQP\0\0\x09\1")
        assert transport.pauses == pauses

    asyncio.run(begin())


def test_a_peer_is_not_taken_for_gone_while_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio.stream, "UNREAD_BYTES", 10)

    async def busy() -> None:
        hurry()
        stream, _ = await served(heartbeat=1)
        receive(stream, amqp.encode_method(1, amqp.Queue.Declare(queue="q")))
        await asyncio.sleep(2.3)
        assert stream.connection.state == "open"
        assert isinstance(await anext(stream), MethodReceived)

    asyncio.run(busy())


def test_a_client_answers_the_close_that_refuses_it() -> None:
    seen: list[Any] = []

    async def watch(stream: AmqpStream) -> None:
        seen.extend([event async for event in stream])

    async def client(port: int) -> None:
        with pytest.raises(AmqpAccessRefused):
            await connect("127.0.0.1", port, login=ClientLogin("a", "wrong"))
        while not seen:
            await asyncio.sleep(0.01)

    with_server(client, watch)
    assert [event.by for event in seen] == ["local"]


def test_a_close_that_is_cancelled_closes_the_transport() -> None:
    async def leave() -> None:
        stream, transport = await served()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.__aexit__(None, None, None), 0.01)
        assert transport.closing

    asyncio.run(leave())


@pytest.mark.parametrize(
    ("end", "by"),
    [(lambda stream: stream.connection.close(), "timeout"), (lambda stream: stream.eof_received(), "eof")],
)
def test_a_reader_that_waits_is_told_when_time_or_the_peer_ends_the_connection(end: Any, by: str) -> None:
    async def wait(stream: AmqpStream) -> list[Any]:
        return [event async for event in stream]

    async def run() -> None:
        stream, transport = await served(close_seconds=0.05)
        reader = asyncio.ensure_future(wait(stream))
        await asyncio.sleep(0)
        end(stream)
        [closed] = await asyncio.wait_for(reader, 10)
        assert (closed.by, transport.closing) == (by, True)

    asyncio.run(run())


async def log_in(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection over plain streams, and its first channel."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection, login = Connection("client"), ClientLogin("guest", "guest")
    while connection.state != "open":
        writer.write(connection.data_to_send())
        connection.receive_data(await reader.read(1 << 16))
        for event in connection:
            login.handle(connection, event)
    connection.open_channel()
    writer.write(connection.data_to_send())
    await reader.read(1 << 16)
    return reader, writer


def test_what_a_client_still_sends_after_its_close_does_not_cost_it_the_answer() -> None:
    async def client(port: int) -> bytes:
        reader, writer = await log_in(port)
        writer.write(amqp.encode_method(0, amqp.Connection.Close(200, "", 0, 0)))
        writer.write(amqp.encode_method(1, amqp.Basic.Publish()) * (4 << 20 >> 4))
        try:
            return await reader.read()
        finally:
            writer.close()

    assert with_server(client) == amqp.encode_method(0, amqp.Connection.CloseOk())
