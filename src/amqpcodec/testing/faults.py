"""Faults on demand: what goes wrong (actions), and when (`Faults.add`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..connection import MessageReceived
from .threads import on_the_loop

if TYPE_CHECKING:
    from .broker import Broker
    from .session import Session

# An action takes the session and the event that it is about, or None; it returns whether that is dealt with.
Action = Callable[["Session", Any], bool]


@dataclass(frozen=True)
class _Sent:
    """A method of the broker, as an action sees it."""

    channel: int
    method: Any


@dataclass(frozen=True)
class CloseChannel:
    """Close the channel, in place of what the method asks for.

    Attributes:
        code, text: as in channel.close.
    """

    code: int = 406
    text: str = "PRECONDITION_FAILED - a fault of the test"

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it: to all channels, where it is not about one."""
        if event is None:
            for number in list(session.channels):
                session.close_channel(number, self.code, self.text)
            return True
        spec = event.method.spec
        session.close_channel(event.channel, self.code, self.text, spec.class_id, spec.method_id)
        return True


@dataclass(frozen=True)
class CloseConnection:
    """Close the connection, in place of what the method asks for.

    Attributes:
        code, text: as in connection.close.
    """

    code: int = 320
    text: str = "CONNECTION_FORCED - a fault of the test"

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        session.close(self.code, self.text)
        return True


@dataclass(frozen=True)
class Drop:
    """Cut the TCP connection, without a close."""

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        session.abort()
        return True


@dataclass(frozen=True)
class Late:
    """Answer only after some time, this and all that follows on the connection.

    Attributes:
        seconds: of the broker's clock.
    """

    seconds: float

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it; what the broker sends is late on the wire."""
        if isinstance(event, _Sent):
            session.hold(self.seconds)
            return False
        session.defer(event, self.seconds)
        return True


@dataclass(frozen=True)
class Stall:
    """Neither read nor write any more, as behind a cable that was pulled.

    Attributes:
        seconds: of the broker's clock; None for good.
    """

    seconds: float | None = None

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        session.hold(self.seconds)
        session.defer(None if isinstance(event, _Sent) else event, self.seconds)
        return not isinstance(event, _Sent)


@dataclass(frozen=True)
class Refuse:
    """Refuse a publish: basic.nack where it is confirmed; nothing takes it."""

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        if not isinstance(event, MessageReceived):
            return False
        if event.sequence_number is not None:
            session.send(event.channel, session.amqp.Basic.Nack(event.sequence_number))
        return True


@dataclass(frozen=True)
class Ignore:
    """Do nothing at all: no answer comes, or nothing is sent."""

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        return True


@dataclass(frozen=True)
class Raw:
    """Send octets of the test's own first.

    Attributes:
        octets: sent as they are.
    """

    octets: bytes

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        session.send_octets(self.octets)
        return False


@dataclass(frozen=True)
class Cut:
    """Write frames in pieces from now on, wherever that cuts them.

    Attributes:
        octets: of a piece.
    """

    octets: int = 1

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        if session.wire is not None:
            session.wire.cut = self.octets
        return False


@dataclass(frozen=True)
class LoseHeartbeats:
    """Send no heartbeats from now on."""

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        if session.wire is not None:
            session.wire.loses_heartbeats = True
        return False


@dataclass(frozen=True)
class Block:
    """Say that publishes are not read: connection.blocked, to all connections.

    Attributes:
        reason: as the client is told.
    """

    reason: str = "low on memory"

    def __call__(self, session: Session, event: Any) -> bool:
        """Do it."""
        session.broker.block(self.reason)
        return False


@dataclass(frozen=True)
class Twice:
    """Deliver a message twice: again, as redelivered, though it was not given back. For ``basic.deliver``."""

    def __call__(self, session: Session, event: Any) -> bool:
        """Leave it to `Faults.delivers_twice`."""
        return False


@dataclass
class Fault:
    """A fault that was asked for.

    Attributes:
        action: what happens.
        fired: how often it has happened.
    """

    action: Action
    method: str | None
    connection: int | None
    skip: int
    times: int | None
    received: int | None
    sent: int | None
    fields: dict[str, Any]
    fired: int = 0
    _seen: dict[int, None] = field(default_factory=dict)  # connections that it has happened to, by octets

    @property
    def is_over(self) -> bool:
        """Whether it will not happen again."""
        return self.times is not None and self.fired >= self.times

    def meets(self, session: Session, method: Any) -> bool:
        """Return whether a method is the one; those to be skipped are counted."""
        if self.is_over or self.method != method.spec.name or not self._concerns(session):
            return False
        if any(getattr(method, name, None) != value for name, value in self.fields.items()):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        return True

    def passes(self, session: Session, octets: int, limit: int | None) -> bool:
        """Return whether so many octets are enough, for the first time on this connection."""
        if limit is None or octets < limit or self.is_over or session.number in self._seen:
            return False
        return self._concerns(session)

    def _concerns(self, session: Session) -> bool:
        return self.connection is None or self.connection == session.number

    def fire(self, session: Session, event: Any) -> bool:
        """Let it happen."""
        self.fired += 1
        self._seen[session.number] = None
        return self.action(session, event)


class Faults:
    """The faults that were asked for.

    Attributes:
        armed: whether there are any: what is asked before all else.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._faults: list[Fault] = []
        self.armed = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop of the broker."""
        return self._broker.loop

    @on_the_loop
    def add(
        self,
        action: Action,
        *,
        method: str | None = None,
        seconds: float | None = None,
        received: int | None = None,
        sent: int | None = None,
        connection: int | None = None,
        skip: int = 0,
        times: int | None = 1,
        **fields: Any,
    ) -> Fault:
        """Ask for a fault. With neither method, seconds nor octets it happens now, to what is connected.

            broker.faults.add(CloseChannel(405), method="queue.declare", queue="orders")
            broker.faults.add(Drop(), method="basic.publish", skip=2)
            broker.faults.add(Drop(), sent=1000)
            broker.faults.add(Stall(), seconds=5)

        Args:
            action: what happens: one of this module, or a callable of the same kind.
            method: at a method with this name, received or sent by the broker.
            seconds: after so many seconds of the broker's clock, to what is connected then.
            received, sent: once a connection has received or sent so many octets.
            connection: to the connection of this number alone, from 1; None for any.
            skip: methods to let pass first.
            times: how often it happens; None for always.
            fields: arguments that the method has to have.

        Returns:
            The fault, which tells how often it has happened.
        """
        fault = Fault(action, method, connection, skip, times, received, sent, fields)
        if method is None and received is None and sent is None:
            if seconds is None:
                self._now(fault)
            else:
                self._broker.clock.call_later(seconds, self._now, fault)
        elif seconds is not None:
            self._broker.clock.call_later(seconds, self._arm, fault)
        else:
            self._arm(fault)
        return fault

    @on_the_loop
    def clear(self) -> None:
        """Forget all faults; what has happened stays."""
        self._faults.clear()
        self.armed = False

    def _arm(self, fault: Fault) -> None:
        self._faults.append(fault)
        self.armed = True

    def _now(self, fault: Fault) -> None:
        for session in list(self._broker.sessions.values()):
            if fault._concerns(session):
                fault.fire(session, None)

    # -- what sessions ask

    def connected(self, session: Session) -> None:
        """Let happen what happens before the first octet."""
        self.receiving(session)

    def received(self, session: Session, event: Any) -> bool:
        """Return whether faults have dealt with an event."""
        method = getattr(event, "method", None)
        return method is not None and self._met(session, method, event)

    def sends(self, session: Session, channel: int, method: Any) -> bool:
        """Return whether faults have dealt with a method that the broker would send."""
        return self._met(session, method, _Sent(channel, method))

    def _met(self, session: Session, method: Any, event: Any) -> bool:
        dealt_with = False
        for fault in self._faults:
            if not isinstance(fault.action, Twice) and not dealt_with and fault.meets(session, method):
                dealt_with = fault.fire(session, event)
        return dealt_with

    def delivers_twice(self, session: Session, method: Any) -> bool:
        """Return whether a delivery is to come again."""
        for fault in self._faults:
            if isinstance(fault.action, Twice) and fault.meets(session, method):
                fault.fire(session, None)
                return True
        return False

    def receiving(self, session: Session) -> bool:
        """Return whether a fault has ended the connection, for what it has received."""
        octets = session.wire.received if session.wire is not None else 0
        for fault in self._faults:
            if fault.passes(session, octets, fault.received) and fault.fire(session, None):
                return True
        return False

    def sending(self, session: Session, octets: int) -> None:
        """Let happen what happens once so many octets more are sent; a `Drop` comes at the octet."""
        wire = session.wire
        if not self.armed or wire is None:
            return
        for fault in self._faults:
            if fault.passes(session, wire.sent + octets, fault.sent):
                if isinstance(fault.action, Drop):
                    fault.fired += 1
                    fault._seen[session.number] = None
                    wire.only((fault.sent or 0) - wire.sent)
                else:
                    fault.fire(session, None)


__all__ = [
    "Block",
    "CloseChannel",
    "CloseConnection",
    "Cut",
    "Drop",
    "Fault",
    "Faults",
    "Ignore",
    "Late",
    "LoseHeartbeats",
    "Raw",
    "Refuse",
    "Stall",
    "Twice",
]
