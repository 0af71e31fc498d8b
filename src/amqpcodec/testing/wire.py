"""The transport of a connection, on which faults of the network can happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..aio.stream import AmqpStream
from ..connection import Connection, Event
from .reader import FrameReader, HungUpError, RefusedError

if TYPE_CHECKING:
    from .broker import Broker
    from .session import Session

MISSED_INTERVALS = 2
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class Wire:
    """A transport of asyncio that does as faults say. What is not here is the transport's own.

    Attributes:
        received, sent: octets so far.
        cut: octets of the pieces in which it writes; 0 for as they come.
        loses_heartbeats: whether heartbeats are left out.
        holds: whether nothing is written for now.
    """

    def __init__(self, transport: Any, session: Session) -> None:
        self._transport = transport
        self._session = session
        self._waiting: deque[bytes] = deque()
        self._is_pumping = False
        self._closes = False
        self.received = 0
        self.sent = 0
        self.cut = 0
        self.loses_heartbeats = False
        self.holds = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write whole frames, as far as faults let them."""
        if self.loses_heartbeats:
            data = without_heartbeats(data)
        faults = self._session.faults
        if not faults.armed:
            self.put(data)
            return
        for part, fault in faults.cut_at(self._session, self.sent, data):
            self.put(part)
            if fault is not None:
                fault.fire(self._session, None)

    def put(self, data: bytes) -> None:
        """Write octets as they are, once it is their turn."""
        if not data or self._transport.is_closing():
            return
        self.sent += len(data)
        if self.holds or self.cut or self._waiting:
            self._waiting.append(data)
            self._pump()
        else:
            self._transport.write(data)

    def _pump(self) -> None:
        """Write a piece of what waits, and the next in the next turn of the loop."""
        if self._is_pumping or self.holds or not self._waiting:
            return
        data = self._waiting.popleft()
        if self.cut and len(data) > self.cut:
            self._waiting.appendleft(data[self.cut :])
            data = data[: self.cut]
        self._transport.write(data)
        if self._waiting:
            self._is_pumping = True
            self._session.clock.call_soon(self._go_on)
        elif self._closes:
            self._transport.close()

    def _go_on(self) -> None:
        self._is_pumping = False
        if not self._transport.is_closing():
            self._pump()

    def release(self) -> None:
        """Write again, first what has waited."""
        self.holds = False
        self._pump()

    def can_write_eof(self) -> bool:
        """Tell whether all is written, and the transport may end one direction alone."""
        return not self._waiting and not self.holds and bool(self._transport.can_write_eof())

    def close(self) -> None:
        """Close once all is written; what is held never is."""
        if self._waiting and not self.holds:
            self._closes = True
        else:
            self._transport.close()


def without_heartbeats(data: bytes) -> bytes:
    """Return whole frames without those that are heartbeats."""
    kept = []
    at = 0
    while at < len(data):
        end = at + 8 + int.from_bytes(data[at + 3 : at + 7], "big")
        if data[at:end] != HEARTBEAT:
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


class BrokerStream(AmqpStream):
    """A stream of the broker: its time is that of the broker's clock, and its transport a `Wire`.

    While its session is paused, events stay in the connection, whose state is that before them. A reader has
    the octets that the connection is not to have yet.
    """

    session: Session
    _reader: FrameReader

    def __init__(self, broker: Broker, connection: Connection) -> None:
        super().__init__(connection)
        self._streams = broker.streams
        self._loop: Any = broker.clock
        self._put_back: Event | None = None
        self._heard = False  # of the client, since the last look

    def serve(self, session: Session, most: int) -> None:
        """Hand all that comes to a session.

        Args:
            session: of the connection.
            most: octets of the largest body.
        """
        self.session = session
        self._reader = FrameReader(session, most)
        self.set_sink(session)

    def connection_made(self, transport: Any) -> None:
        """Take the transport, as a wire."""
        wire = Wire(transport, self.session)
        self._streams.add(self)
        self.session.connected(wire)
        super().connection_made(wire)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the end of the transport."""
        self._streams.discard(self)
        self.session.lost()
        super().connection_lost(exc)

    def arguments_at(self, offset: int) -> bytes:
        """Return the arguments of the method that has an octet of the stream, and has come last."""
        return self._reader.arguments_at(offset)

    def expect_heartbeats(self, seconds: int, missed: int = 0) -> None:
        """Look after each interval whether the client has sent anything; end after two in which it has not.

        What it has sent last may be as old as the interval before: so it may be silent for three, as with
        RabbitMQ.

        Args:
            seconds: of an interval.
            missed: intervals in which nothing has come.
        """

        def look() -> None:
            session = self.session
            is_heard = self._heard or (
                session.is_paused and bool(session.broker.blocked)
            )  # then it is not read
            if not is_heard and missed + 1 == MISSED_INTERVALS:
                session.hang_up()
            elif not self._ended:
                self._heard = False
                self.connection.receive_data(b"")  # whose own rules are stricter
                self.expect_heartbeats(seconds, 0 if is_heard else missed + 1)

        self._loop.call_later(seconds, look)

    def flush(self) -> None:
        """Write what is sent so far."""
        self._flush()

    def put_back(self, event: Event | None) -> None:
        """Hand an event out again, before all others; None for none."""
        self._put_back = event

    def go_on(self) -> None:
        """Hand out the events that have had to wait."""
        self._wake()

    def _events(self) -> Iterator[Event]:
        """Yield the events that are there, as long as the session takes them."""
        while not self.session.is_paused:
            event, self._put_back = self._put_back, None
            if event is None:
                event = next(self.connection, None)
            if event is not None:
                yield event
            elif not self._read_on():
                return

    def _read_on(self) -> bool:
        """Give the connection what comes next; return whether there was anything."""
        try:
            octets = self._reader.next()
        except RefusedError as refusal:
            self.session.refuse_frame(refusal)
            return True
        except HungUpError:
            self.session.hang_up()
            return False
        if octets:
            self.connection.receive_data(octets)
        return bool(octets)

    def buffer_updated(self, nbytes: int) -> None:
        """Take octets, unless a fault comes first."""
        session = self.session
        session.wire.received += nbytes
        if self._ended:
            return
        if session.faults.armed:
            session.faults.received(session, session.wire.received)
        if not session.is_cut_off:
            self._heard = True
            self._reader.feed(self._buffer[:nbytes])
            self._wake()
            session.tell_confirms()


__all__ = ["BrokerStream", "Wire"]
