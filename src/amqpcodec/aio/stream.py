"""One connection on a transport of asyncio: `AmqpStream`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .._protocol.codes import CONNECTION_FORCED, INTERNAL_ERROR
from ..connection import ClientLogin, Connection, ConnectionClosed, Event, MethodReceived, ServerLogin
from ..errors import ConnectionLostError, LocalProtocolError

if TYPE_CHECKING:
    from types import TracebackType

    from ..record import Recorder, Recording

BUFFER_SIZE = 65536
UNREAD_BYTES = 1 << 20  # received and not yet asked for, beyond which reading pauses
CLIENT_TO_SERVER, SERVER_TO_CLIENT = 0, 1  # as in captures
LINGER_SECONDS = 10.0  # for the peer to read the rest, once all is over
GONE_SECONDS = 0.5  # the same, where somebody waits for the end


class EventSink(Protocol):
    """Takes the events of a stream as they come, in place of a task that iterates.

    All calls are made by the event loop, between tasks. None of them waits.
    """

    def event_received(self, event: Event) -> None:
        """Take an event. An exception ends the stream, and goes to `stream_ended`."""

    def resume_writing(self) -> None:
        """Send more: what was sent before is written, and the transport takes more."""

    def stream_ended(self, error: Exception | None) -> None:
        """Take the end of the stream, after its last event; `error` is what this sink has raised."""


class AmqpStream(asyncio.BufferedProtocol):
    """One connection on a transport: an asynchronous iterator over its events, unless a sink takes them.

    Args:
        connection: the connection without I/O. Its clock is that of the running loop.
        login: answers the events of the handshake; what it answers is not returned.
        handler: called with the stream once there is a transport, as a task; the connection is closed when
            it is done. Its exception goes to the exception handler of the loop, and not to the peer.
        record: records a client's connection.

    Attributes:
        server_properties: of a client, the table in which the server has told its product and version.
    """

    def __init__(
        self,
        connection: Connection,
        login: ClientLogin | ServerLogin | None = None,
        handler: Callable[[AmqpStream], Awaitable[None]] | None = None,
        record: Recorder | None = None,
    ) -> None:
        self.connection = connection
        self._record = record
        self._recording: Recording | None = None
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
        self._gone = asyncio.Event()
        self._reason: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sink: EventSink | None = None
        self.server_properties: Any = {}

    # -- what asyncio calls

    def connection_made(self, transport: Any) -> None:
        """There is a transport: the protocol header goes out, and from now on whatever is sent."""
        self._transport = transport
        if self._record is not None:
            self._recording = self._record.open(*map(transport.get_extra_info, ("sockname", "peername")))
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
        """Octets have come; those after the end are dropped."""
        if self._ended:
            return
        if self._recording is not None:
            self._recording.data(SERVER_TO_CLIENT, self._buffer[:nbytes])
        self.connection.receive_data(self._buffer[:nbytes])
        if self._sink is not None:
            self._dispatch(self._sink)
            return
        self._unread += nbytes
        if self._unread > UNREAD_BYTES:
            self._transport.pause_reading()
        self._received.set()

    def eof_received(self) -> None:
        """The peer sends no more."""
        if self._recording is not None:
            self._recording.finish(SERVER_TO_CLIENT)
        self.connection.receive_eof()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        self._ended = True
        self._gone.set()
        self._reason = exc
        if self._recording is not None:
            self._recording.close(None if exc is None else SERVER_TO_CLIENT)
        self.connection.on_queued = None
        self.connection.receive_eof()
        self._wake()
        self._writable.set()
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        """Have the events taken that are there."""
        if self._sink is not None:
            self._dispatch(self._sink)
        self._received.set()

    def _dispatch(self, sink: EventSink) -> None:
        """Hand the events that are there to the sink, which is told once where they end."""
        error = None
        try:
            for event in self._events():
                sink.event_received(event)
            if self.connection.state != "closed":
                return
        except Exception as raised:
            error = raised
        self._end_sink(sink, error)

    def _events(self) -> Iterator[Event]:
        """Return the events that are there; a stream of another kind may keep some for later."""
        return iter(self.connection)

    def _end_sink(self, sink: EventSink, error: Exception | None) -> None:
        """Tell the sink that all is over; `error` is what it has raised."""
        if self._sink is None:
            return
        if error is not None:
            self._send_close(*self._close_arguments(error))
        self._sink = None
        self.end()
        self._received.set()
        sink.stream_ended(error)

    def pause_writing(self) -> None:
        """The transport has enough to write: `drain` waits."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The transport has written: it takes what has waited, and `drain` goes on."""
        self._writable.set()
        had_octets = self.connection.bytes_to_send > 0
        self._flush()
        if not had_octets:
            self._resume_sink()

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
                await self.leave()
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
        start, start_ok = connection.dialect.Connection.Start, connection.dialect.Connection.StartOk
        if isinstance(event, MethodReceived) and isinstance(event.method, start):
            self.server_properties = event.method.server_properties
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

    def set_sink(self, sink: EventSink) -> None:
        """Have a sink take the events from now on, those first that are there.

        Iterating is not possible any more. The connection has to be open, as `connect` returns it.
        """
        self._login = None
        self._sink = sink
        self._dispatch(sink)

    @property
    def reason(self) -> Exception | None:
        """Why the transport is gone; None while it is there, or where the peer has ended it."""
        return self._reason

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
        """Close the connection, and wait for the peer's answer and for the end of the transport.

        Events until then are dropped, or the sink's.

        Args:
            reply_code, reply_text: as in connection.close.

        Returns:
            The last event, which has what was open; None if it was taken before, or by a sink.
        """
        self._send_close(reply_code, reply_text)
        return await self._wait_closed()

    def _send_close(self, reply_code: int, reply_text: str) -> None:
        try:
            if self.connection.state in ("handshake", "open"):
                self.connection.close(reply_code, reply_text)
        except LocalProtocolError:  # too early, or nobody reads it
            self.end()

    async def _wait_closed(self) -> ConnectionClosed | None:
        while self._sink is not None:
            self._received.clear()
            await self._received.wait()
        closed = None
        async for event in self:
            if isinstance(event, ConnectionClosed):
                closed = event
        return closed

    async def __aenter__(self) -> AmqpStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, and leave. A task that is cancelled does not wait for the peer's answer."""
        try:
            self._send_close(*self._close_arguments(error))
            if error is None or isinstance(error, Exception):
                await self._wait_closed()
        finally:
            await self.leave()

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
            self._write()
            self._resume_sink()
        deadline = self.connection.next_deadline()
        timer = self._timer
        if deadline is not None and (timer is None or deadline < timer.when()):
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._on_time)

    def _write(self) -> None:
        """Give all that is to be sent to the transport."""
        octets = self.connection.data_to_send()
        if self._recording is not None:
            self._recording.data(CLIENT_TO_SERVER, octets)
        # Not `writelines`: releases of Python 3.12 and 3.13 forget to pause then (CVE-2024-12254).
        self._transport.write(octets)

    def _resume_sink(self) -> None:
        """Have the sink send more, unless the transport has enough to write."""
        if self._sink is not None and self._writable.is_set():
            try:
                self._sink.resume_writing()
            except Exception as error:
                self._loop.call_soon(self._end_sink, self._sink, error)  # the transport is in use

    def _on_time(self) -> None:
        self._timer = None
        if self._unread > UNREAD_BYTES:  # nothing is read, so nothing is known of the peer
            self.connection.receive_data(b"")
        self.connection.on_time()
        if self.connection.state == "closed":
            self._wake()
            self.end()
        else:
            self._flush()

    def end(self) -> None:
        """Close the transport once the rest is written, or soon where the peer does not read it.

        The peer's answer to a close is not waited for. `ConnectionClosed` follows, if it has not come yet.
        """
        if self._ended:
            return
        self._ended = True
        if not self._transport.is_closing():
            self._write()
            if self.connection.role == "server" and self.connection.state == "closed":
                self._finish()
            else:
                self._transport.close()
        self._writable.set()  # `drain` must not wait for what nobody reads
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def _finish(self) -> None:
        """Send no more, and let the client end the connection.

        It may still be sending what it had before its close. If no one reads that, TCP resets the connection,
        and the answer to the close is lost.
        """
        if self._transport.can_write_eof():
            with suppress(OSError):  # the client is gone
                self._transport.write_eof()
                self._transport.resume_reading()
                return
        self._transport.close()

    async def leave(self) -> None:
        """Close the transport, and wait until it is gone.

        It is cut off after half a second, in which a peer has read nothing or not ended TLS; or when the task
        is cancelled.
        """
        if self._transport is None:
            return
        self.end()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(GONE_SECONDS):
                    await self._gone.wait()
        finally:
            if not self._gone.is_set():  # asyncio cannot cut off what it has closed once all was written
                self._transport.abort()
        await self._gone.wait()


__all__ = ["AmqpStream", "EventSink"]
