"""The port of a broker, which may close and open again."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from ssl import SSLContext

HOST = "127.0.0.1"
BACKLOG = 100  # connections that wait to be accepted


class Listener:
    """Listens on a port, by a running event loop. Opening does not wait: the port is there at once.

    Args:
        port: of 127.0.0.1; 0 for any that is free, which it keeps.
        connect: makes the protocol of a connection.

    Attributes:
        port: the same, once it was open.
    """

    def __init__(self, port: int, connect: Callable[[], asyncio.BaseProtocol]) -> None:
        self.port = port
        self._connect = connect
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self, context: SSLContext | None) -> None:
        """Take connections, unless it does already; with TLS, where there is a context for it.

        Raises:
            OSError: the port is taken.
        """
        if self._socket is not None:
            return
        loop = asyncio.get_running_loop()
        self._socket = _listening(self.port)
        self.port = int(self._socket.getsockname()[1])
        self._task = loop.create_task(self._serve(self._socket, context))

    async def _serve(self, listening: socket.socket, context: SSLContext | None) -> None:
        if listening is not self._socket:
            return  # closed again meanwhile
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._connect, sock=listening, ssl=context, backlog=BACKLOG, start_serving=False
        )
        await self._server.start_serving()

    async def accepting(self) -> None:
        """Wait until the connections are accepted that have come since it was opened."""
        if self._task is not None:
            await self._task

    def close(self) -> None:
        """Take no more connections; those that are there stay, and those that are accepted still come."""
        listening, server = self._socket, self._server
        self._socket = self._server = None
        if listening is None:
            return
        if server is not None:
            # Closing the server would leave those open and unheard that asyncio has accepted, but not made.
            try:
                server.get_loop().remove_reader(listening)
            except (NotImplementedError, RuntimeError):  # a loop that accepts in another way, or is closed
                server.close()
                return
        listening.close()


def _listening(port: int) -> socket.socket:
    """Return a socket that listens. Where it is not named as TCP, asyncio leaves TCP_NODELAY out."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError):
        listening.close()
        raise
    return listening


__all__ = ["Listener"]
