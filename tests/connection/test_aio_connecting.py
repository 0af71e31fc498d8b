"""`amqpcodec.aio.connect` by URLs, and a server whose check is a coroutine."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest
from support.broker import free_ports
from support.marks import posix

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import AmqpStream, connect, serve
from amqpcodec.connection import ClientLogin, Connection, ConnectionClosed, MethodReceived, ServerLogin
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import AmqpAccessRefused, AmqpConnectionForced

Client = Callable[[int], Awaitable[Any]]


class Seen:
    """What a server was told."""

    def __init__(self) -> None:
        self.logins: list[tuple[str, str]] = []

    def check(self, name: str, password: str) -> bool:
        self.logins.append((name, password))
        return password != "wrong"


async def wait(stream: AmqpStream) -> None:
    """Serve somebody who wants nothing."""
    async for _ in stream:
        pass


def run(client: Client, login: ServerLogin, **options: Any) -> Any:
    """Run a client beside a server of its own."""

    async def both() -> Any:
        server = await serve(wait, "127.0.0.1", 0, login=login, **options)
        try:
            return await asyncio.wait_for(client(server.sockets[0].getsockname()[1]), 30)
        finally:
            server.close()

    return asyncio.run(both())


def test_a_url_says_who_comes_and_what_is_wished_for() -> None:
    seen = Seen()

    async def client(port: int) -> Any:
        url = f"amqp://me:p%40ss@127.0.0.1:{port}/mine?heartbeat=7&channel_max=9&frame_max=8192"
        async with await connect(url) as stream:
            connection = stream.connection
            return connection.heartbeat, connection.channel_max, connection.frame_max

    assert run(client, ServerLogin(seen.check, virtual_hosts=frozenset(["mine"]))) == (7, 9, 8192)
    assert seen.logins == [("me", "p@ss")]


def test_what_is_said_beside_a_url_counts_more() -> None:
    seen = Seen()

    async def client(port: int) -> Any:
        url = "amqp://me:p@127.0.0.1:1/?heartbeat=7"
        async with await connect(url, port, login=ClientLogin("you", "q"), heartbeat=5) as stream:
            return stream.connection.heartbeat

    assert run(client, ServerLogin(seen.check)) == 5
    assert seen.logins == [("you", "q")]


def test_a_connection_has_a_name() -> None:
    login, names = ServerLogin(Seen().check), []

    async def handler(stream: AmqpStream) -> None:
        async for event in stream:
            if isinstance(event, MethodReceived) and isinstance(event.method, amqp.Connection.StartOk):
                names.append(event.method.client_properties.get("connection_name"))
            login.handle(stream.connection, event)

    async def both() -> None:
        server = await serve(handler, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for url in (f"amqp://127.0.0.1:{port}?name=a%20b", f"amqp://127.0.0.1:{port}"):
            async with await connect(url):
                pass
        server.close()

    asyncio.run(asyncio.wait_for(both(), 30))
    assert names == ["a b", None]


def test_servers_are_tried_in_turn() -> None:
    seen, down = Seen(), free_ports(1)[0]

    async def client(port: int) -> str:
        async with await connect([f"amqp://127.0.0.1:{down}", f"amqp://a:b@127.0.0.1:{port}"]) as stream:
            return stream.connection.state

    assert run(client, ServerLogin(seen.check)) == "open"
    assert seen.logins == [("a", "b")]


def test_if_none_of_several_servers_is_there_the_error_says_why_of_each() -> None:
    down = free_ports(2)

    async def client(port: int) -> None:
        await connect([f"amqp://u:s3cr3t@127.0.0.1:{each}/v" for each in down])

    with pytest.raises(ConnectionLostError) as caught:
        run(client, ServerLogin(Seen().check))
    text = str(caught.value)
    assert all(f"127.0.0.1:{each}, virtual host 'v': " in text for each in down)
    assert text.count("refused") == 2 or text.count("failed") == 2
    assert "s3cr3t" not in text
    assert isinstance(caught.value.__cause__, OSError)


def test_a_server_that_refuses_the_login_is_the_last_that_is_tried() -> None:
    seen = Seen()

    async def client(port: int) -> None:
        url = f"amqp://me:wrong@127.0.0.1:{port}"
        await connect([url, url])

    with pytest.raises(AmqpAccessRefused):
        run(client, ServerLogin(seen.check))
    assert len(seen.logins) == 1


def test_a_server_that_ends_is_passed_over() -> None:
    async def closing(stream: AmqpStream) -> None:
        stream.connection.close(320, "CONNECTION_FORCED - it ends")
        async for _ in stream:
            pass

    async def both() -> str:
        login = ServerLogin(Seen().check)
        ending = await serve(closing, "127.0.0.1", 0, login=login)
        lasting = await serve(wait, "127.0.0.1", 0, login=login)
        urls = [f"amqp://127.0.0.1:{each.sockets[0].getsockname()[1]}" for each in (ending, lasting)]
        try:
            async with await connect(urls) as stream:
                state = stream.connection.state
            with pytest.raises((AmqpConnectionForced, ConnectionLostError)):
                await connect(urls[0])
            return state
        finally:
            ending.close()
            lasting.close()

    assert asyncio.run(asyncio.wait_for(both(), 30)) == "open"


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    async def client(port: int) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            busy = full.getsockname()[1]
            # The queue of those that wait to be taken is full, so nobody answers another one.
            waiting = [socket.socket() for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", busy))
            try:
                with pytest.raises(ConnectionLostError, match=r"no connection to 127.*within 0.2 seconds"):
                    await connect(f"amqp://127.0.0.1:{busy}?connection_timeout=200")
                with pytest.raises(ConnectionLostError, match=r"within 0.1 seconds"):
                    await connect("127.0.0.1", busy, timeout=0.1)
            finally:
                for each in waiting:
                    each.close()

    run(client, ServerLogin(Seen().check))


def test_a_name_that_no_server_has_is_an_os_error() -> None:
    async def client(port: int) -> None:
        await connect("amqp://no-such-host.invalid")

    with pytest.raises(OSError, match=r".") as caught:
        run(client, ServerLogin(Seen().check))
    assert not isinstance(caught.value, ConnectionLostError)


def test_a_socket_that_is_connected_is_used() -> None:
    async def client(port: int) -> str:
        own = socket.create_connection(("127.0.0.1", port))
        async with await connect("amqp://me@elsewhere.invalid", sock=own) as stream:
            return stream.connection.state

    assert run(client, ServerLogin(Seen().check)) == "open"


@pytest.mark.parametrize(
    ("hosts", "why"),
    [([], "name one server, or several"), (["a", "b"], "a socket is of one server: name one")],
)
def test_a_socket_is_of_one_server(hosts: list[str], why: str) -> None:
    async def client(port: int) -> None:
        with socket.socket() as own:
            await connect(hosts, sock=own)

    with pytest.raises(ValueError, match=why):
        run(client, ServerLogin(Seen().check))


@posix
def test_a_url_may_name_a_unix_socket() -> None:
    async def both(path: str) -> str:
        loop = asyncio.get_running_loop()
        login = ServerLogin(Seen().check)
        server = await loop.create_unix_server(
            lambda: AmqpStream(Connection("server", clock=loop.time), login, wait), path
        )
        try:
            async with await connect(f"amqp://{quote(path, safe='')}/v") as stream:
                return stream.connection.state
        finally:
            server.close()

    with TemporaryDirectory(dir="/tmp") as folder:  # a name of a socket may have 104 octets, TMPDIR more
        assert asyncio.run(asyncio.wait_for(both(f"{folder}/socket"), 30)) == "open"


def served_with_tls(client: Client, certificate: Path) -> Any:
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(certificate)
    return run(client, ServerLogin(Seen().check), ssl=theirs)


@pytest.mark.parametrize(
    "query",
    [
        "cacertfile={}&server_name_indication=localhost",
        "cacertfile={}&server_name_indication=localhost&certfile={}",
        "verify=verify_none",
    ],
)
def test_a_url_says_whom_to_trust(certificate: Path, query: str) -> None:
    async def client(port: int) -> str:
        url = f"amqps://127.0.0.1:{port}?" + query.replace("{}", quote(str(certificate), safe=""))
        async with await connect(url) as stream:
            return stream.connection.state

    assert served_with_tls(client, certificate) == "open"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "self.signed certificate"),
        ("?cacertfile={}", "IP address mismatch"),
        ("?cacertfile={}&server_name_indication=another", "Hostname mismatch"),
    ],
)
def test_a_server_that_is_not_trusted_is_not_spoken_to(certificate: Path, query: str, reason: str) -> None:
    async def client(port: int) -> None:
        await connect(f"amqps://127.0.0.1:{port}" + query.replace("{}", quote(str(certificate), safe="")))

    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        served_with_tls(client, certificate)


def test_a_server_that_wants_tls_hangs_up_on_who_has_none(certificate: Path) -> None:
    async def client(port: int) -> None:
        await connect(f"amqp://127.0.0.1:{port}")

    with pytest.raises(ConnectionLostError):
        served_with_tls(client, certificate)


def test_a_check_may_be_a_coroutine() -> None:
    asked = []

    async def check(name: str, password: str) -> bool:
        await asyncio.sleep(0.01)
        asked.append(name)
        return password == "right"

    async def client(port: int) -> str:
        async with await connect(f"amqp://me:right@127.0.0.1:{port}") as stream:
            state = stream.connection.state
        with pytest.raises(AmqpAccessRefused):
            await connect(f"amqp://you:wrong@127.0.0.1:{port}")
        return state

    assert run(client, ServerLogin(check)) == "open"
    assert asked == ["me", "you"]


def test_a_client_that_leaves_while_it_is_checked_is_not_answered() -> None:
    begun, left, ended = asyncio.Event(), asyncio.Event(), []

    async def check(name: str, password: str) -> bool:
        begun.set()
        await left.wait()
        return True

    async def handler(stream: AmqpStream) -> None:
        async for event in stream:
            if isinstance(event, ConnectionClosed):
                ended.append(event.by)

    async def both() -> None:
        server = await serve(handler, "127.0.0.1", 0, login=ServerLogin(check))
        task = asyncio.create_task(connect("127.0.0.1", server.sockets[0].getsockname()[1]))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        left.set()
        await asyncio.sleep(0.05)
        server.close()

    asyncio.run(asyncio.wait_for(both(), 30))
    assert ended == ["eof"]


def test_without_asyncio_a_check_is_no_coroutine() -> None:
    async def check(name: str, password: str) -> bool:
        raise AssertionError("nobody awaits it")

    client, server = Connection("client"), Connection("server")
    own = ServerLogin(check)
    server.receive_data(client.data_to_send())
    for event in server:
        own.handle(server, event)
    for event in client.receive_data(server.data_to_send()):
        ClientLogin().handle(client, event)
    [start_ok] = server.receive_data(client.data_to_send())
    with pytest.raises(TypeError, match=r"only amqpcodec\.aio awaits"):
        own.handle(server, start_ok)
