"""A proxy between clients and a broker, which records what passes. It forwards octets as they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import rabbitmq as amqp
from ..capture import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from ..connection import Address
from ..errors import DecodeError
from .limiting import MessageLimit, Pace
from .recorder import Recorder, Recording

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger("amqpcodec.record")
_CHUNK = 65536
_LINGER_SECONDS = 10.0  # for a peer to read the rest, once the other is gone
_ANSWER_SECONDS = 0.2  # for a peer with TLS to say the last word, once the other says no more


class Proxy:
    """Listens for clients, and connects each to a broker.

        with Recorder("trace.pcap") as recorder:
            async with Proxy(recorder, "amqps://broker/", port=5673) as proxy:
                await asyncio.sleep(60)

    A side that reads slowly holds up the other, and no other connection. The recorder holds up no one.

    Args:
        recorder: records the connections of the clients, as they see them; None to record nothing.
        broker: a URL as `Address` describes it, of which the place and the parameters of TLS count: clients
            log in themselves.
        host, port: where to listen; 0 for any port that is free.
        ssl: a context for clients; None for no TLS.
        rate: octets a second that a client may send, after those of a first second at once. A client that
            sends faster is read no faster. None for any number.
        largest: octets of the largest message that a client may publish. Its channel is closed otherwise,
            with 311 content-too-large. None for any size.

    Attributes:
        port: where it listens.

    Raises:
        ValueError: a URL that cannot be read.
        OSError: a certificate file that it names cannot be read.
    """

    def __init__(
        self,
        recorder: Recorder | None,
        broker: str,
        *,
        host: str = "127.0.0.1",
        port: int = 5673,
        ssl: SSLContext | None = None,
        rate: int | None = None,
        largest: int | None = None,
    ) -> None:
        self.recorder = recorder
        self.address = Address.parse(broker)
        self.broker_ssl = self.address.tls_context()
        self.rate = rate
        self.largest = largest
        self.host = host
        self.port: int = port
        self._ssl = ssl
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Proxy:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, self.host, self.port, ssl=self._ssl)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more, and end all connections once what came is passed on."""
        if self._server is None:
            return
        self._server.close()
        for link in list(self._links):
            link.end()
        if self._links:
            await asyncio.wait([link.ended for link in self._links], timeout=_LINGER_SECONDS + 1)
        self._server = None

    def _accept(self) -> _Side:
        return _Link(self).sides[CLIENT_TO_SERVER]

    def begun(self, link: _Link) -> None:
        """Take note of a link, until it has ended."""
        self._links.add(link)
        link.ended.add_done_callback(lambda _: self._links.discard(link))

    async def connect(self, make: Callable[[], _Side]) -> None:
        """Connect to the broker.

        Raises:
            OSError: it cannot be reached in time.
        """
        loop, address = asyncio.get_running_loop(), self.address
        name = (address.server_name or address.host) if address.tls else None
        options: dict[str, Any] = {"ssl": self.broker_ssl, "server_hostname": name}
        async with asyncio.timeout(address.connect_seconds):
            if address.socket_path is not None:
                await loop.create_unix_connection(make, address.socket_path, **options)
            else:
                await loop.create_connection(make, address.host, address.port, **options)


class _Link:
    """A client, and its connection to the broker.

    Attributes:
        sides: the client and the broker, by the direction in which they send.
        ended: done once both are gone.
    """

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        pace = None if proxy.rate is None else Pace(proxy.rate)
        self.sides = (_Side(self, CLIENT_TO_SERVER, pace), _Side(self, SERVER_TO_CLIENT, None))
        self._limit = None if proxy.largest is None else MessageLimit(proxy.largest)
        self._recording: Recording | None = None
        self._task: asyncio.Task[None] | None = None
        self._finished: set[int] = set()
        self._reset_by: int | None = None

    def made(self, side: _Side) -> None:
        """Take note that a side is there; the client waits for the broker."""
        if side.direction == SERVER_TO_CLIENT:
            return
        self._proxy.begun(self)
        side.hold("broker")
        self._task = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        client, broker = self.sides
        try:
            await self._proxy.connect(lambda: broker)
        except Exception as error:  # whatever it is, the client must not wait for ever
            reason = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else repr(error))
            log.warning("no broker for %s: %s", client.peer, reason)
            client.end()
            self.lost(broker, None)
            return
        if client.is_lost:
            broker.end()
        else:
            if self._proxy.recorder is not None:
                self._recording = self._proxy.recorder.open(client.peer, broker.peer)
            client.release("broker")

    def data(self, side: _Side, octets: bytes) -> None:
        """Pass on what a side has sent."""
        if self._limit is None:
            self._record(side.direction, octets)
            self.sides[1 - side.direction].write(octets)
            return
        if side.direction == CLIENT_TO_SERVER:
            self._record(CLIENT_TO_SERVER, octets)
        error = None
        try:
            self._limit.feed(side.direction, octets)
        except DecodeError as raised:
            error = raised
        written = self._limit.take()
        if error is not None:  # what comes is no AMQP: both sides are told so
            log.warning("%s: %s", self.sides[0].peer, error)
            close = amqp.encode_method(0, error.close_method())
            written = written[0] + close, written[1] + close
        self._write(*written)
        if error is not None:
            self.end()

    def _write(self, to_client: bytes, to_broker: bytes) -> None:
        client, broker = self.sides
        if to_client:
            self._record(SERVER_TO_CLIENT, to_client)
            client.write(to_client)
        if to_broker:
            broker.write(to_broker)

    def writers_to(self, side: _Side) -> tuple[_Side, ...]:
        """Return the sides whose octets make the proxy write to one: with a limit, both."""
        return (self.sides[1 - side.direction],) if self._limit is None else self.sides

    def _record(self, direction: int, octets: bytes) -> None:
        if self._recording is not None:
            self._recording.data(direction, octets)

    def finished(self, side: _Side) -> None:
        """Pass on that a side sends no more."""
        if self._recording is not None:
            self._recording.finish(side.direction)
        self.sides[1 - side.direction].finish()
        self._finished.add(side.direction)
        if len(self._finished) == len(self.sides):
            self.end()

    def lost(self, side: _Side, error: Exception | None) -> None:
        """End the other side, too."""
        side.is_lost = True
        other = self.sides[1 - side.direction]
        if error is not None and self._reset_by is None and not other.is_lost:
            self._reset_by = side.direction
        if other.transport is None and self._task is not None and self._task.cancel():
            other.is_lost = True  # it will not be there
        if error is None:
            other.finish()
            other.linger()
        else:
            other.end()
        if other.is_lost and not self.ended.done():
            self.ended.set_result(None)
            if self._recording is not None:
                self._recording.close(self._reset_by)

    def end(self) -> None:
        """End both sides, once what came is passed on."""
        for side in self.sides:
            side.end()


class _Side(asyncio.BufferedProtocol):
    """One side of a link.

    Args:
        link: whose it is.
        direction: in which it sends.
        pace: how fast it may.
    """

    def __init__(self, link: _Link, direction: int, pace: Pace | None) -> None:
        self.direction = direction
        self.transport: Any = None
        self.peer: Any = None
        self.is_lost = False
        self._link = link
        self._pace = pace
        self._buffer = memoryview(bytearray(_CHUNK if pace is None else min(_CHUNK, pace.rate)))
        self._holds: set[str] = set()  # why it is not read
        self._pacing: asyncio.TimerHandle | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.peer = transport.get_extra_info("peername")
        self._link.made(self)
        asyncio.get_running_loop().call_soon(self._hold_again)

    def _hold_again(self) -> None:
        """Pause once more: asyncio of CPython 3.11.2 reads after `connection_made`, paused or not."""
        if self._holds and not self.is_lost:
            self.transport.resume_reading()
            self.transport.pause_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to receive into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._link.data(self, bytes(self._buffer[:nbytes]))
        if self._pace is not None:
            loop = asyncio.get_running_loop()
            seconds = self._pace.wait(nbytes, loop.time())
            if seconds > 0:
                self.hold("pace")
                self._pacing = loop.call_later(seconds, self.release, "pace")

    def eof_received(self) -> bool:
        self._link.finished(self)
        return self.transport.get_extra_info("ssl_object") is None  # TLS has no half of a connection

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._pacing, self._leaving, self._lingering):
            if timer is not None:
                timer.cancel()
        self._link.lost(self, exc)

    def pause_writing(self) -> None:
        for side in self._link.writers_to(self):
            side.hold(f"writes to {self.direction}")

    def resume_writing(self) -> None:
        for side in self._link.writers_to(self):
            side.release(f"writes to {self.direction}")

    def hold(self, reason: str) -> None:
        """Read no more, for a reason."""
        if not self._holds and self.transport is not None:
            self.transport.pause_reading()
        self._holds.add(reason)

    def release(self, reason: str) -> None:
        """Read again, unless there are other reasons not to."""
        self._holds.discard(reason)
        if not self._holds and self.transport is not None and not self.is_lost:
            self.transport.resume_reading()

    def write(self, octets: bytes) -> None:
        """Send octets; they are dropped where this side is gone."""
        if not self.is_lost:
            self.transport.write(octets)

    def finish(self) -> None:
        """Send no more; where that cannot be said alone, be gone soon."""
        if self.transport is None or self.is_lost or self.transport.is_closing():
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        elif self._leaving is None:
            self._leaving = asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self.end)

    def end(self) -> None:
        """Be gone once the rest is written, or soon where it is not read."""
        if self.transport is None or self.is_lost or self.transport.is_closing():
            return
        self.transport.close()
        self.linger()

    def linger(self) -> None:
        """Be gone for good after a time, whatever is left."""
        if self._lingering is None and self.transport is not None and not self.is_lost:
            self._lingering = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self.transport.abort)


__all__ = ["Proxy"]
