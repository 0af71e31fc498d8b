"""`amqpcodec.connection` on asyncio: a stream of events for each connection, for clients and servers.

    async with await connect("localhost", login=ClientLogin("guest", "guest")) as stream:
        channel = stream.connection.open_channel()
        async for event in stream:
            ...

What is sent through `AmqpStream.connection` is written soon. `drain` waits for a peer that reads slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from ._generated.codes import CONNECTION_FORCED, INTERNAL_ERROR
from .connection import ClientLogin, Connection, ConnectionClosed, Event, Opened, ServerLogin
from .errors import ConnectionLostError, LocalProtocolError, ReplyError
from .reply_errors import REPLY_ERRORS

BUFFER_SIZE = 65536
UNREAD_BYTES = 1 << 20  # received and not yet asked for, beyond which reading pauses
LINGER_SECONDS = 10.0  # for the peer to read the rest, once all is over


class AmqpStream(asyncio.BufferedProtocol):
    """One connection on a transport: an asynchronous iterator over its events.

    Args:
        connection: the connection without I/O. Its clock is that of the running loop.
        login: answers the events of the handshake; what it answers is not returned.
        handler: called with the stream once there is a transport, as a task; the connection is closed when
            it is done. Its exception goes to the exception handler of the loop, and not to the peer.
    """

    def __init__(
        self,
        connection: Connection,
        login: ClientLogin | ServerLogin | None = None,
        handler: Callable[[AmqpStream], Awaitable[None]] | None = None,
    ) -> None:
        self.connection = connection
        self._login = login
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._task: asyncio.Task[None] | None = None
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._unread = 0
        self._received = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = False
        self._reason: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- what asyncio calls

    def connection_made(self, transport: Any) -> None:
        """There is a transport: the protocol header goes out, and from now on whatever is sent."""
        self._transport = transport
        self._flush()
        self.connection.on_queued = partial(self._loop.call_soon, self._flush)
        if self._handler is not None:
            self._task = self._loop.create_task(self._handle(self._handler))

    async def _handle(self, handler: Callable[[AmqpStream], Awaitable[None]]) -> None:
        with suppress(Exception):  # reported by then, at once: the closing may take its time
            async with self:
                try:
                    await handler(self)
                except Exception as error:
                    self._loop.call_exception_handler({"message": "AMQP handler", "exception": error})
                    raise

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to receive into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Octets have come."""
        self.connection.receive_data(self._buffer[:nbytes])
        self._unread += nbytes
        if self._unread > UNREAD_BYTES:
            self._transport.pause_reading()
        self._received.set()

    def eof_received(self) -> None:
        """The peer sends no more."""
        self.connection.receive_eof()
        self._received.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        self._ended = True
        self._reason = exc
        self.connection.on_queued = None
        self.connection.receive_eof()
        self._received.set()
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        """The transport has enough to write: `drain` waits."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The transport has written: it takes what has waited, and `drain` goes on."""
        self._writable.set()
        self._flush()

    # -- what programs call

    def __aiter__(self) -> AmqpStream:
        return self

    async def __anext__(self) -> Event:
        while True:
            for event in self.connection:
                if self._login is None or not self._login.handle(self.connection, event):
                    return event
            self._flush()
            state = self.connection.state
            if state == "open":
                self._login = None  # it has done its work
            elif state == "closed":
                self._end()
                raise StopAsyncIteration
            if self._unread > UNREAD_BYTES:
                self._transport.resume_reading()
                self.connection.receive_data(b"")
            self._unread = 0
            self._received.clear()
            await self._received.wait()

    @property
    def writable(self) -> bool:
        """False while the transport has enough to write: `drain` would wait."""
        return self._writable.is_set()

    async def drain(self) -> None:
        """Write at once what was sent, and wait while the transport has enough to write.

        Raises:
            ConnectionLostError: the transport is gone.
        """
        self._flush()
        await self._writable.wait()
        if self._transport.is_closing():
            raise ConnectionLostError("the connection is lost") from self._reason

    async def close(self, reply_code: int = 200, reply_text: str = "") -> ConnectionClosed | None:
        """Close the connection, and wait for the peer's answer. Events until then are dropped.

        Args:
            reply_code, reply_text: as in connection.close.

        Returns:
            The last event, which has what was open; None if it was taken before.
        """
        self._send_close(reply_code, reply_text)
        return await self._wait_closed()

    def _send_close(self, reply_code: int, reply_text: str) -> None:
        try:
            if self.connection.state in ("handshake", "open"):
                self.connection.close(reply_code, reply_text)
        except LocalProtocolError:  # too early, or nobody reads it
            self._end()

    async def _wait_closed(self) -> ConnectionClosed | None:
        closed = None
        async for event in self:
            if isinstance(event, ConnectionClosed):
                closed = event
        return closed

    async def __aenter__(self) -> AmqpStream:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the connection. A task that is cancelled does not wait for the peer's answer."""
        try:
            self._send_close(*self._close_arguments(error))
            if error is None or isinstance(error, Exception):
                await self._wait_closed()
        finally:
            self._end()

    def _close_arguments(self, error: BaseException | None) -> tuple[int, str]:
        """The code and text of a close: what has gone wrong is not the peer's to read."""
        if isinstance(error, Exception):
            return INTERNAL_ERROR, "INTERNAL_ERROR"
        if error is not None and self.connection.role == "server":
            return CONNECTION_FORCED, "CONNECTION_FORCED - the server ends"
        return 200, ""

    # -- writing and time

    def _flush(self) -> None:
        """Give what is to be sent to the transport, and see to the next deadline.

        While the transport has enough to write, the rest waits in the connection, which limits it.
        """
        if self._ended:
            return
        if self.connection.bytes_to_send and self._writable.is_set():
            # Not `writelines`: releases of Python 3.12 and 3.13 forget to pause then (CVE-2024-12254).
            self._transport.write(self.connection.data_to_send())
        deadline = self.connection.next_deadline()
        timer = self._timer
        if deadline is not None and (timer is None or deadline < timer.when()):
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._unread > UNREAD_BYTES:  # nothing is read, so nothing is known of the peer
            self.connection.receive_data(b"")
        self.connection.on_time()
        if self.connection.state == "closed":
            self._received.set()
            self._end()
        else:
            self._flush()

    def _end(self) -> None:
        """Close the transport once the rest is written, and without that if the peer does not read it."""
        if self._ended:
            return
        self._ended = True
        if not self._transport.is_closing():
            self._transport.write(self.connection.data_to_send())
            self._transport.close()
        self._writable.set()  # `drain` must not wait for what nobody reads
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.abort)


async def connect(
    host: str,
    port: int | None = None,
    *,
    login: ClientLogin | None = None,
    ssl: Any = None,
    **options: Any,
) -> AmqpStream:
    """Connect to a server and log in.

    Args:
        host: where the server is.
        port: its port; None for 5672, or 5671 with TLS.
        login: who comes; None for the default of `ClientLogin`.
        ssl: as for `asyncio.loop.create_connection`: a context, or True; None for no TLS.
        options: as for `Connection`.

    Returns:
        The stream, with the connection open.

    Raises:
        ReplyError: the server has closed the connection: of the class for its reply code.
        ConnectionLostError: the server has ended the stream without a close, or takes too long.
        OSError: there is no connection. A ConnectionLostError is one, too.
    """
    loop = asyncio.get_running_loop()
    if port is None:
        port = 5671 if ssl else 5672

    def make() -> AmqpStream:
        return AmqpStream(Connection("client", clock=loop.time, **options), login or ClientLogin())

    _, stream = await loop.create_connection(make, host, port, ssl=ssl)
    try:
        async for event in stream:
            match event:
                case Opened():
                    return stream
                case ConnectionClosed(by="eof" | "timeout", reply_text=text):
                    raise ConnectionLostError(text) from stream._reason
                case ConnectionClosed(reply_code=code, reply_text=text):
                    raise REPLY_ERRORS.get(code, ReplyError)(text)
        raise ConnectionLostError("the connection is lost") from stream._reason
    except BaseException:
        stream._end()
        raise


async def serve(
    handler: Callable[[AmqpStream], Awaitable[None]],
    host: str | None,
    port: int,
    *,
    login: ServerLogin | None = None,
    ssl: Any = None,
    **options: Any,
) -> asyncio.Server:
    """Serve connections.

    Args:
        handler: called with the stream of each connection, as a task of its own.
        host, port: where to listen.
        login: who may enter; None to leave the handshake to the handler.
        ssl: a context for TLS; None for none.
        options: as for `Connection`.

    Returns:
        The server, which listens.
    """
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: AmqpStream(Connection("server", clock=loop.time, **options), login, handler),
        host, port, ssl=ssl,
    )  # fmt: skip


__all__ = ["AmqpStream", "connect", "serve"]
