"""The guide's recipes for trio and anyio work beside a broker, and end where a peer is silent or gone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.connections import make
from support.documents import DOCS, examples
from support.examples import serving

from amqpcodec.connection import ClientLogin, ConnectionLimits

anyio = pytest.importorskip("anyio")
trio = pytest.importorskip("trio")

STARTS = {"trio": "\ntrio.run(", "anyio": "\nfor backend in "}  # the part of a program that runs it
BACKENDS = ("asyncio", "trio")
LIMITS = ConnectionLimits(handshake_seconds=0.2)


def recipe(library: str) -> dict[str, Any]:
    """Return the functions of the guide's program for a library."""
    [code] = [each.code for each in examples(DOCS / "codec.md") if f"\nimport {library}\n" in each.code]
    functions, start, _ = code.partition(STARTS[library])
    assert start
    names: dict[str, Any] = {}
    exec(compile(functions, "codec.md", "exec", dont_inherit=True), names)
    return names


class Publisher:
    """Publishes 100 messages to a queue, and closes the connection once all are confirmed.

    Attributes:
        confirmed: how many are.
        closed: how the connection has ended.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.confirmed = 0
        self.closed: tuple[str, int] | None = None

    def handle(self, event: Any) -> None:
        connection = self.connection
        amqp = connection.dialect
        match type(event).__name__:
            case "Opened":
                channel = connection.open_channel()
                connection.send(channel, amqp.Queue.Declare(queue="q", exclusive=True))
                connection.send(channel, amqp.Confirm.Select())
                for _ in range(100):
                    connection.send_message(channel, amqp.Basic.Publish("", "q"), None, bytes(50_000))
            case "Settled":
                self.confirmed += len(event.tags)
                if not connection.unconfirmed(1):
                    connection.close()
            case "ConnectionClosed":
                self.closed = event.by, event.reply_code


def on_trio(impl: Any, port: int) -> Publisher:
    """Run the recipe for trio."""

    async def work() -> Publisher:
        publisher = Publisher(make(impl, "client", clock=trio.current_time, connection_limits=LIMITS))
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            login = ClientLogin("guest", "guest")
            async for event in recipe("trio")["events"](stream, publisher.connection, login):
                publisher.handle(event)
        return publisher

    return trio.run(work)  # type: ignore[no-any-return]


def on_anyio(impl: Any, port: int, backend: str) -> Publisher:
    """Run the recipe for anyio."""

    async def work() -> Publisher:
        publisher = Publisher(make(impl, "client", clock=anyio.current_time, connection_limits=LIMITS))
        stream = await anyio.connect_tcp("127.0.0.1", port)
        login = ClientLogin("guest", "guest")
        await recipe("anyio")["run"](stream, publisher.connection, login, publisher.handle)
        return publisher

    return anyio.run(work, backend=backend)  # type: ignore[no-any-return]


def published(impl: Any, port: int) -> Iterator[Publisher]:
    """Run all recipes."""
    yield on_trio(impl, port)
    for backend in BACKENDS:
        yield on_anyio(impl, port, backend)


def test_messages_are_published_and_confirmed(impl: Any) -> None:
    with serving(impl.name) as (port, _):
        for publisher in published(impl, port):
            assert publisher.closed == ("local", 200)
            assert publisher.confirmed == 100


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "gone"])
def test_a_peer_without_a_word_ends_the_connection(impl: Any, is_silent: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def accept() -> None:
            for _ in range(3):
                accepted, _ = server.accept()
                kept.append(accepted) if is_silent else accepted.close()

        thread = threading.Thread(target=accept)
        thread.start()
        ends = [publisher.closed for publisher in published(impl, server.getsockname()[1])]
        thread.join()
        for each in kept:
            each.close()
    assert ends == [("timeout", 320) if is_silent else ("eof", 0)] * 3
