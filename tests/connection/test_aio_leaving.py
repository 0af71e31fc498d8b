"""However a connection ends, its transport is gone by then: none is left to the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, Client, connect, stream
from amqpcodec.connection import ClientLogin, Connection, ConnectionLimits
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import AmqpAccessRefused
from amqpcodec.testing import Broker, certificate, faults, running_broker

QUICK = ConnectionLimits(close_seconds=0.05)
TOO_LONG = 5.0  # seconds; that of TLS is 30 without a word of the peer


@dataclass
class Peer:
    """A broker on another thread, how to connect to it, and how it goes wrong then."""

    broker: Broker
    trusts: ssl.SSLContext | None
    spoil: Callable[[Broker], object] = lambda broker: None

    @property
    def end(self) -> str:
        """Return how a socket of a client says where it is connected to."""
        return f"raddr=('127.0.0.1', {self.broker.port})"

    async def connect(self, **options: Any) -> AmqpStream:
        """Return a connection."""
        connection = await connect(self.broker.url, ssl=self.trusts, connection_limits=QUICK, **options)
        self.spoil(self.broker)
        return connection

    def client(self) -> Client:
        """Return a client that does not wait long."""

        async def connected(client: Client) -> None:
            self.spoil(self.broker)

        return Client(
            self.broker.url,
            ssl=self.trusts,
            connection_limits=QUICK,
            close_seconds=0.05,
            on_connect=connected,
        )


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait as long as a program may."""
    monkeypatch.setattr(stream, "GONE_SECONDS", 0.05)


@pytest.fixture(params=["tcp", "tls"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """A broker, without and with TLS."""
    if request.param == "tcp":
        with running_broker() as broker:
            yield Peer(broker, None)
        return
    pytest.importorskip("trustme")
    context, authority = certificate.make()
    with running_broker(tls=context) as broker:
        yield Peer(broker, ssl.create_default_context(cadata=authority.decode()))


def fall_silent(broker: Broker) -> None:
    """Neither read nor write from now on."""
    broker.faults.add(faults.stall())


def answer_the_close_alone(broker: Broker) -> None:
    """Answer what comes next by close-ok, and read nothing more: TLS has no end then."""

    def answer(session: Any, event: Any) -> bool:
        session.is_cut_off = True
        session.send_octets(amqp.encode_method(0, amqp.Connection.CloseOk()))
        return faults.stall()(session, event)

    (session,) = broker.sessions.values()
    broker.faults.add(answer, received=session.wire.received + 1)


def left_behind(run: Callable[[], object]) -> str:
    """Return which sockets were open when a program was over, as Python says."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
        gc.collect()
    return "\n".join(str(each.message) for each in seen)


async def close(peer: Peer) -> None:
    await (await peer.connect()).close()


async def leave_a_block(peer: Peer) -> None:
    async with await peer.connect():
        pass


async def fail_in_a_block(peer: Peer) -> None:
    with pytest.raises(KeyError):
        async with await peer.connect():
            raise KeyError


async def be_cancelled_in_a_block(peer: Peer) -> None:
    async def wait() -> None:
        async with await peer.connect() as stream:
            begun.set()
            await anext(stream)

    begun = asyncio.Event()
    waiting = asyncio.create_task(wait())
    await begun.wait()
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert waiting.cancelled()


async def be_cancelled_twice(peer: Peer) -> None:
    stream = await peer.connect()
    closing = asyncio.create_task(stream.__aexit__(None, None, None))
    for _ in range(2):
        await asyncio.sleep(0)
        closing.cancel()
    await asyncio.wait((closing,))


async def leave(peer: Peer) -> None:
    await (await peer.connect()).leave()


async def read_to_the_end(peer: Peer) -> None:
    stream = await peer.connect()
    peer.broker.close_connections()
    assert [event.reply_code async for event in stream] == [320]


async def lose_it(peer: Peer) -> None:
    stream = await peer.connect()
    peer.broker.faults.add(faults.drop())
    assert [event.by async for event in stream] == ["eof"]


async def be_refused(peer: Peer) -> None:
    with pytest.raises(AmqpAccessRefused):
        await peer.connect(login=ClientLogin("guest", "wrong"))


async def be_cancelled_while_it_connects(peer: Peer) -> None:
    peer.broker.faults.add(faults.ignore(), method="connection.open")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await peer.connect()


async def be_cancelled_as_the_transport_comes(peer: Peer) -> None:
    connecting = asyncio.create_task(peer.connect())
    made = AmqpStream.connection_made

    def connection_made(self: AmqpStream, transport: Any) -> None:
        made(self, transport)
        connecting.cancel()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream.AmqpStream, "connection_made", connection_made)
        await asyncio.wait((connecting,))
    assert connecting.cancelled()


async def leave_a_client(peer: Peer) -> None:
    async with peer.client():
        pass


async def fail_in_a_client(peer: Peer) -> None:
    with pytest.raises(KeyError):
        async with peer.client():
            raise KeyError


async def forget_a_client(peer: Peer) -> None:
    await peer.client().__aenter__()


async def lose_a_clients_connection_as_it_closes(peer: Peer) -> None:
    async with peer.client() as client:
        peer.broker.close_connections()
        with pytest.raises(ConnectionLostError):
            await client.call(amqp.Queue.Declare(queue="q", passive=True))


async def fail_as_a_client_is_set_up(peer: Peer) -> None:
    async def fail(client: Client) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        async with Client(peer.broker.url, ssl=peer.trusts, on_connect=fail):
            pass


# Those whose end is not the broker's, and the others.
ALONE = [
    close, leave_a_block, fail_in_a_block, be_cancelled_in_a_block, be_cancelled_twice, leave, leave_a_client,
    fail_in_a_client, forget_a_client,
]  # fmt: skip
WAYS = [
    *ALONE, read_to_the_end, lose_it, be_refused, be_cancelled_while_it_connects,
    be_cancelled_as_the_transport_comes, lose_a_clients_connection_as_it_closes, fail_as_a_client_is_set_up,
]  # fmt: skip
Way = Callable[[Peer], Awaitable[None]]


async def in_time(way: Way, peer: Peer) -> None:
    async with asyncio.timeout(TOO_LONG):
        await way(peer)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_transport_is_left(peer: Peer, way: Way) -> None:
    assert peer.end not in left_behind(lambda: asyncio.run(in_time(way, peer)))


@pytest.mark.parametrize("spoil", [fall_silent, answer_the_close_alone], ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("way", ALONE, ids=lambda way: way.__name__)
def test_no_transport_is_left_of_a_peer_that_falls_silent(peer: Peer, way: Way, spoil: Any) -> None:
    peer.spoil = spoil
    assert peer.end not in left_behind(lambda: asyncio.run(in_time(way, peer)))


@pytest.mark.parametrize("tls", [False, True])
def test_a_broker_leaves_no_transport_of_clients_that_are_there(tls: bool) -> None:
    context: Any = None
    if tls:
        pytest.importorskip("trustme")
        context, _ = certificate.make()

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def run() -> None:
        with running_broker(tls=context, port=port) as broker:
            reader = socket.create_connection(("127.0.0.1", broker.port))
            if tls:
                reader = ssl._create_unverified_context().wrap_socket(reader)
            reader.sendall(amqp.protocol_header())
            assert reader.recv(1)
        reader.close()

    assert f"laddr=('127.0.0.1', {port})" not in left_behind(run)


def test_leaving_is_no_error_where_the_peer_reads_what_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asyncio closes its transport as it has written all, and has no loop to cut it off with then."""
    monkeypatch.setattr(stream, "GONE_SECONDS", TOO_LONG)

    async def talk() -> int:
        loop, may_read, has_read = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await may_read.wait()
            await reader.read(-1)
            writer.close()
            has_read.set()

        async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
            made = AmqpStream(Connection("client", clock=loop.time), ClientLogin("guest", "guest"))
            transport, _ = await loop.create_connection(lambda: made, *server.sockets[0].getsockname())
            transport.write(bytes(20_000_000))
            waiting = transport.get_write_buffer_size()
            leaving = asyncio.ensure_future(made.leave())
            await asyncio.sleep(0)
            may_read.set()
            await leaving
            await has_read.wait()  # else the server's end is never closed, which a later test is blamed for
            return waiting

    assert asyncio.run(asyncio.wait_for(talk(), TOO_LONG)) > 0
