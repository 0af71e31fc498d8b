"""A user's use of connections: without I/O, and on asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from typing import Literal, assert_never, assert_type

from amqpcodec import DecodeError, Frame, Method, connection, record
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, connect, serve
from amqpcodec.connection import Connection, Event, LocalProtocolError


def client(octets: bytes) -> None:
    """One connection, driven by hand."""
    own = Connection("client", "rabbitmq-0-9-1", connection_limits=connection.ConnectionLimits(consumers=10))
    login = connection.ClientLogin("guest", "guest")
    for event in own.receive_data(octets):
        assert_type(event, Event)
        assert_type(login.handle(own, event), bool)
    assert_type(own.receive_eof(), Iterator[Event])
    assert_type(next(own, None), Event | None)
    assert_type(own.state, str)
    assert_type(own.role, str)
    assert_type(own.channels, tuple[int, ...])
    channel = assert_type(own.open_channel(), int)
    try:
        assert_type(own.send(channel, amqp.Confirm.Select()), None)
        number = own.send_message(channel, amqp.Basic.Publish("", "queue"), None, b"body")
        assert_type(number, int | None)
    except LocalProtocolError as error:
        assert_type(error.channel, int)
    assert_type(own.unconfirmed(channel), tuple[int, ...])
    assert_type(own.unacknowledged(channel), tuple[int, ...])
    assert_type(own.consumers(channel), tuple[str, ...])
    assert_type(own.channel_state(channel), str)
    assert_type(own.ignored, int)
    assert_type(own.next_delivery_tag(channel), int)
    assert_type(own.close_channel(channel, 200, "bye"), None)
    assert_type(own.close(), None)
    assert_type(own.bytes_to_send, int)
    assert_type(own.data_to_send(), bytes)
    assert_type(own.buffers_to_send(), list[bytes | memoryview])
    assert_type(own.next_deadline(), float | None)
    assert_type(own.on_time(), Iterator[Event])


def server() -> connection.ServerLogin:
    """Who may enter."""
    return connection.ServerLogin(lambda user, password: user == "guest")


async def knows(user: str, password: str) -> bool:
    """Somebody else knows."""
    return await asyncio.to_thread(user.startswith, password)


def address() -> connection.Address:
    """What a URL says."""
    found = assert_type(connection.Address.parse("amqps://me@broker/mine?heartbeat=5"), connection.Address)
    assert_type(found.host + found.virtual_host, str)
    assert_type(found.login(), connection.ClientLogin)
    assert_type(found.tls_context(), ssl.SSLContext | None)
    assert_type(connection.ServerLogin(knows), connection.ServerLogin)
    Connection("client", **found.options())
    return connection.Address(host="broker", tls=True, port=5671)


def described(event: Event) -> str:
    """Every event; a type checker sees that none is left out."""
    match event:
        case connection.ProtocolHeaderReceived(octets=octets, accepted=accepted):
            return f"{assert_type(octets, bytes)!r} {assert_type(accepted, bool)}"
        case connection.Opened(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat):
            return f"{assert_type(channel_max + frame_max + heartbeat, int)}"
        case connection.ChannelOpened(channel=channel, method=method):
            return f"{assert_type(channel, int)} {assert_type(method, Method)}"
        case connection.MethodReceived(request=request):
            return f"{assert_type(request, Method | None)}"
        case connection.MessageReceived(body=body, sequence_number=number):
            return f"{assert_type(body, bytes)!r} {assert_type(number, int | None)}"
        case connection.Settled(tags=tags):
            return f"{assert_type(tags, tuple[int, ...])}"
        case connection.FlowChanged(active=active):
            return f"{assert_type(active, bool)}"
        case connection.Blocked(reason=reason):
            return assert_type(reason, str)
        case connection.Unblocked():
            return "unblocked"
        case connection.FrameReceived(frame=frame):
            return f"{assert_type(frame, Frame)}"
        case connection.Violation(to_send=to_send, error=error):
            return f"{assert_type(to_send, Method | None)} {assert_type(error, DecodeError | None)}"
        case connection.ChannelClosed(by=by, reply_code=code, unconfirmed=numbers, crossed=crossed):
            assert_type(crossed, Method | None)
            assert_type(numbers, tuple[int, ...])
            return f"{assert_type(by, Literal['peer', 'local'])} {assert_type(code, int)}"
        case connection.ConnectionClosed(reply_text=text, outstanding=outstanding):
            for left in assert_type(outstanding, tuple[connection.Outstanding, ...]):
                assert_type(left.awaited, tuple[Method, ...])
            return assert_type(text, str)
        case _:
            assert_never(event)


async def talk() -> None:
    """The same on asyncio."""

    async def handle(stream: AmqpStream) -> None:
        async for event in stream:
            assert_type(event, Event)
        await stream.drain()

    assert_type(await serve(handle, "localhost", 0, login=server()), asyncio.Server)
    async with await connect(["amqp://localhost", "localhost"], timeout=3.0, ssl=None, sock=None):
        pass
    async with await connect("localhost", login=connection.ClientLogin("guest", "guest")) as stream:
        assert_type(stream, AmqpStream)
        assert_type(stream.connection, Connection)
        assert_type(stream.writable, bool)
        assert_type(await stream.close(200, "bye"), connection.ConnectionClosed | None)


async def recorded(certificate: ssl.SSLContext) -> None:
    """Connections of a program, and of clients that pass a proxy."""
    with record.Recorder("trace.pcap", keep_files=3, include_credentials=False) as recorder:
        async with await connect("amqp://localhost", record=recorder):
            pass
        async with record.Proxy(recorder, "amqps://broker", port=0, ssl=certificate, rate=1000) as proxy:
            assert_type(proxy.port, int)
        made = assert_type(recorder.open(("10.0.0.1", 40001), None), record.Recording)
        made.data(0, b"AMQP")
        made.finish(0)
        made.close(reset_by=1)
    done = assert_type(recorder.stats(), record.RecorderStats)
    assert_type(done.missing, int)
