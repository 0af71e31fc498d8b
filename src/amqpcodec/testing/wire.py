"""The transport of a connection, on which faults of the network can happen."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..aio import AmqpStream
from ..connection import Connection

if TYPE_CHECKING:
    from .broker import Broker
    from .session import Session

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
        self._pumping = False
        self._closes = False
        self.received = 0
        self.sent = 0
        self.cut = 0
        self.loses_heartbeats = False
        self.holds = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, unless a fault comes first."""
        if self.loses_heartbeats:
            data = without_heartbeats(data)
        if data:
            self._session.faults.sending(self._session, len(data))
            self.put(data)

    def put(self, data: bytes) -> None:
        """Write octets as they are, once it is their turn."""
        if self.holds or self.cut or self._waiting:
            self._waiting.append(data)
            self._pump()
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        self.sent += len(data)
        self._transport.write(data)

    def _pump(self) -> None:
        """Write a piece of what waits, and the next in the next turn of the loop."""
        if self._pumping or self.holds or not self._waiting:
            return
        data = self._waiting.popleft()
        if self.cut and len(data) > self.cut:
            self._waiting.appendleft(data[self.cut :])
            data = data[: self.cut]
        self._write(data)
        if self._waiting:
            self._pumping = True
            self._session.clock.call_soon(self._go_on)
        elif self._closes:
            self._transport.close()

    def _go_on(self) -> None:
        self._pumping = False
        if not self._transport.is_closing():
            self._pump()

    def release(self) -> None:
        """Write again, first what has waited."""
        self.holds = False
        self._pump()

    def only(self, octets: int) -> None:
        """Write so many octets of what is queued from now on, and then cut the connection."""
        self._transport = _Ending(self._transport, octets)

    def close(self) -> None:
        """Close once all is written."""
        if self._waiting and not self.holds:
            self._closes = True
        else:
            self._transport.close()


class _Ending:
    """A transport that takes so many octets more, and then is cut."""

    def __init__(self, transport: Any, octets: int) -> None:
        self._transport = transport
        self._left = octets

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
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
    """A stream of the broker: its time is that of the broker's clock, and its transport a `Wire`."""

    def __init__(self, broker: Broker, connection: Connection) -> None:
        super().__init__(connection)
        self._loop: Any = broker.clock
        self.wire: Wire | None = None
        self.session: Session | None = None

    def connection_made(self, transport: Any) -> None:
        """Take the transport, as a wire."""
        assert self.session is not None
        self.wire = Wire(transport, self.session)
        super().connection_made(self.wire)
        self.session.connected(self.wire)

    def flush(self) -> None:
        """Write what is sent so far."""
        self._flush()

    def buffer_updated(self, nbytes: int) -> None:
        """Take octets, unless a fault comes first."""
        assert self.wire is not None
        assert self.session is not None
        self.wire.received += nbytes
        if self.session.faults.armed and self.session.faults.receiving(self.session):
            return
        super().buffer_updated(nbytes)


__all__ = ["BrokerStream", "Wire"]
