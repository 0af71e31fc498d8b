"""`amqpcodec.connection` on asyncio: a stream of events for each connection, for clients and servers.

    async with await connect("amqp://guest:guest@localhost/") as stream:
        channel = stream.connection.open_channel()
        async for event in stream:
            ...

What is sent through `AmqpStream.connection` is written soon. `drain` waits for a peer that reads slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ._generated.codes import CONNECTION_FORCED, INTERNAL_ERROR
from .connection import (
    Address,
    ClientLogin,
    Connection,
    ConnectionClosed,
    Event,
    MethodReceived,
    Opened,
    ServerLogin,
)
from .errors import ConnectionLostError, LocalProtocolError, ReplyError
from .reply_errors import REPLY_ERRORS, AmqpConnectionForced, AmqpInternalError

if TYPE_CHECKING:
    from socket import socket
    from ssl import SSLContext

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
                if self._login is None or not await self._answer(self._login, event):
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

    async def _answer(self, login: ClientLogin | ServerLogin, event: Event) -> bool:
        """Answer an event of the handshake; return whether it was one."""
        connection = self.connection
        start_ok = connection.dialect.Connection.StartOk
        if not isinstance(login, ServerLogin) or not isinstance(event, MethodReceived):
            return login.handle(connection, event)
        if not isinstance(event.method, start_ok):
            return login.handle(connection, event)
        admitted = login.checked(connection, event.method)
        if isinstance(admitted, Awaitable):
            admitted = bool(await admitted)
        if connection.state == "handshake":  # the client may be gone by now
            login.admit(connection, admitted)
        return True

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
    host: str | Sequence[str],
    port: int | None = None,
    *,
    login: ClientLogin | None = None,
    ssl: SSLContext | bool | None = None,
    server_hostname: str | None = None,
    sock: socket | None = None,
    timeout: float | None = None,
    **options: Any,
) -> AmqpStream:
    """Connect to a server and log in.

    Args:
        host: where the server is: a host; or a URL, as `Address` describes it; or several of either, to be
            tried in turn.
        port: its port; None for that of the URL, or 5672, or 5671 with TLS.
        login: who comes; None for whom the URL names, or for the default of `ClientLogin`.
        ssl: a context, or True for the system's; None for what the URL says. False is no TLS.
        server_hostname: that the server's certificate has to be of; None for that of the URL, or the host.
        sock: a socket that is connected already; `host` says no more than the name and the login then.
        timeout: seconds within which the connection has to be there, TLS included; None for those of
            the URL, or 30. The handshake of AMQP has a limit of its own, in `ConnectionLimits`.
        options: as for `Connection`; they count more than the URL.

    Returns:
        The stream, with the connection open.

    Raises:
        ReplyError: the server has closed the connection: of the class for its reply code. The next server
            is tried only where this one ends, with 320 or 541.
        ConnectionLostError: the server has ended the stream without a close, or takes too long; or none of
            several could be reached, and the text says why of each.
        OSError: there is no connection. A ConnectionLostError is one, too, as are the errors of TLS.
        ValueError: a URL that cannot be read.
    """
    addresses = [_address(each, port, ssl) for each in ([host] if isinstance(host, str) else host)]
    if not addresses or (sock is not None and len(addresses) > 1):
        raise ValueError("name one server, or several without a socket")
    failures: list[tuple[Address, Exception]] = []
    for address in addresses:
        stream = partial(_stream, login or address.login(), {**address.options(), **options})
        seconds = address.connect_seconds if timeout is None else timeout
        try:
            transport = _transport(stream, address, ssl, server_hostname, sock)
            return await _open(await _in_time(transport, seconds, address))
        except (OSError, AmqpConnectionForced, AmqpInternalError) as error:
            failures.append((address, error))
    if len(failures) == 1:
        raise failures[0][1]
    reasons = "; ".join(f"{address}: {error}" for address, error in failures)
    raise ConnectionLostError(f"no server could be reached: {reasons}") from failures[-1][1]


def _address(host: str, port: int | None, ssl: SSLContext | bool | None) -> Address:
    """Return the address of a host or URL."""
    if "://" in host:
        address = Address.parse(host)
        return address if port is None else replace(address, port=port)
    if port is None:
        port = 5671 if ssl else 5672
    return Address(host=host, port=port)


def _stream(login: ClientLogin, options: dict[str, Any]) -> AmqpStream:
    clock = asyncio.get_running_loop().time
    return AmqpStream(Connection("client", **{"clock": clock, **options}), login)


async def _transport(
    make: Callable[[], AmqpStream],
    address: Address,
    ssl: SSLContext | bool | None,
    server_hostname: str | None,
    sock: socket | None,
) -> AmqpStream:
    """Return a stream on a transport."""
    loop = asyncio.get_running_loop()
    tls = (address.tls_context() if ssl is None else ssl) or None
    name = None if tls is None else server_hostname or address.server_name or address.host
    if sock is not None:
        _, stream = await loop.create_connection(make, sock=sock, ssl=tls, server_hostname=name)
    elif address.socket_path is not None:
        _, stream = await loop.create_unix_connection(
            make, address.socket_path, ssl=tls, server_hostname=name
        )
    else:
        _, stream = await loop.create_connection(
            make, address.host, address.port, ssl=tls, server_hostname=name
        )
    return stream


async def _in_time(
    transport: Coroutine[Any, Any, AmqpStream], seconds: float, address: Address
) -> AmqpStream:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await transport
    except TimeoutError:
        if not limit.expired():
            raise  # the system's own
        raise ConnectionLostError(f"no connection to {address} within {seconds:g} seconds") from None


async def _open(stream: AmqpStream) -> AmqpStream:
    """Wait until the connection is open."""
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
