"""A relay of TCP connections between a client and a broker, which can break them in every way."""

from __future__ import annotations

import asyncio
import socket
import struct
from types import TracebackType
from typing import Any

NO_LINGER = struct.pack("ii", 1, 0)  # closing sends RST then


class Relay:
    """Listens on a port of its own, and passes on what comes to the port of a broker.

    Attributes:
        port: where it listens.
        accepted: connections so far.
        refuses: whether it ends each new connection at once, as a proxy without a broker does.
    """

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.port = 0
        self.accepted = 0
        self.refuses = False
        self._pairs: list[Pair] = []

    async def __aenter__(self) -> Relay:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for pair in self._pairs:
            pair.end()
        await self._server.wait_closed()

    def _accept(self) -> Side:
        self.accepted += 1
        self._pairs = [pair for pair in self._pairs if not pair.is_over]
        pair = Pair(self)
        self._pairs.append(pair)
        return pair.client

    @property
    def url(self) -> str:
        """Where a client connects to."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def reset(self) -> None:
        """Cut all connections: both sides get a RST."""
        for pair in self._pairs:
            pair.client.reset()
            pair.broker.reset()

    def finish(self) -> None:
        """End all connections: both sides get a FIN."""
        for pair in self._pairs:
            pair.end()

    def swallow(self) -> None:
        """Pass on nothing more of the connections that are there, in either direction; they stay."""
        for pair in self._pairs:
            pair.swallows = True

    def orphan(self) -> None:
        """Cut the clients, and let the broker believe that they are still there."""
        for pair in self._pairs:
            pair.swallows = True
            pair.keeps_broker = True
            pair.client.reset()


class Pair:
    """A connection of a client, and the one to the broker that belongs to it."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.swallows = False
        self.keeps_broker = False
        self.client = Side(self)
        self.broker = Side(self)
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self.client.is_over and self.broker.is_over

    def begin(self) -> None:
        """Connect to the broker for a client that has come."""
        if self.relay.refuses:
            self.client.transport.close()
        else:
            self.client.transport.pause_reading()
            self.task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self.broker, "127.0.0.1", self.relay.broker)
        except OSError:  # there is no broker
            self.client.transport.close()
        else:
            if self.client.is_over:
                self.broker.transport.close()
            else:
                self.client.transport.resume_reading()

    def end(self) -> None:
        """Close both sides, once what came is passed on."""
        for side in (self.client, self.broker):
            if side.transport is not None:
                side.transport.close()

    def other(self, side: Side) -> Side:
        return self.broker if side is self.client else self.client


class Side(asyncio.Protocol):
    """One side of a pair."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.transport: Any = None
        self.is_over = False

    def reset(self) -> None:
        if self.transport is not None and not self.is_over:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self is self.pair.client:
            self.pair.begin()

    def data_received(self, data: bytes) -> None:
        other = self.pair.other(self)
        if not self.pair.swallows and other.transport is not None:
            other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        other = self.pair.other(self)
        keeps = other is self.pair.broker and self.pair.keeps_broker
        if other.transport is not None and not keeps:
            other.transport.close()

    def pause_writing(self) -> None:
        self.pair.other(self).transport.pause_reading()

    def resume_writing(self) -> None:
        other = self.pair.other(self)
        if not other.is_over:
            other.transport.resume_reading()


__all__ = ["Relay"]
