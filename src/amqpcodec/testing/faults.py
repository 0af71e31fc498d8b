"""Faults on demand: what goes wrong (functions that make actions), and when (`Faults.add`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..connection import MessageReceived
from .threads import on_the_loop

if TYPE_CHECKING:
    from .broker import Broker
    from .session import Session

# An action takes the session and the event that it is about, or None; it returns whether that is dealt with.
Action = Callable[["Session", Any], bool]


class Sent:
    """A method that the broker is about to send, as actions see it."""

    def __init__(self, channel: int, method: Any) -> None:
        self.channel = channel
        self.method = method


def close_channel(code: int = 406, text: str = "PRECONDITION_FAILED - a fault of the test") -> Action:
    """Close the channel, in place of what the method asks for; all channels, if it is not about one.

    Args:
        code, text: as in channel.close.
    """

    def act(session: Session, event: Any) -> bool:
        if event is None:
            for number in list(session.channels):
                session.close_channel(number, code, text)
        else:
            spec = event.method.spec
            session.close_channel(event.channel, code, text, spec.class_id, spec.method_id)
        return True

    return act


def close_connection(code: int = 320, text: str = "CONNECTION_FORCED - a fault of the test") -> Action:
    """Close the connection, in place of what the method asks for.

    Args:
        code, text: as in connection.close.
    """

    def act(session: Session, event: Any) -> bool:
        session.close(code, text)
        return True

    return act


def drop() -> Action:
    """End the TCP connection, without a close."""

    def act(session: Session, event: Any) -> bool:
        session.cut_off()
        return True

    return act


def late(seconds: float) -> Action:
    """Answer only after some seconds of the broker's clock, this and all that follows on the connection."""

    def act(session: Session, event: Any) -> bool:
        if isinstance(event, Sent):
            session.hold(seconds)
            return False
        session.defer(event, seconds)
        return True

    return act


def stall(seconds: float | None = None) -> Action:
    """Neither read nor write any more, as behind a cable that was pulled.

    Args:
        seconds: of the broker's clock; None for good.
    """

    def act(session: Session, event: Any) -> bool:
        session.hold(seconds)
        is_received = not isinstance(event, Sent)
        session.defer(event if is_received else None, seconds)
        return is_received

    return act


def refuse() -> Action:
    """Refuse a publish: nothing takes it, and basic.nack says so where it is confirmed."""

    def act(session: Session, event: Any) -> bool:
        if not isinstance(event, MessageReceived):
            return False
        if event.sequence_number is not None:
            session.send(event.channel, session.amqp.Basic.Nack(event.sequence_number))
        return True

    return act


def ignore() -> Action:
    """Do nothing at all: no answer comes, or nothing is sent."""
    return lambda session, event: True


def raw(octets: bytes) -> Action:
    """Send octets of the test's own first, as they are."""

    def act(session: Session, event: Any) -> bool:
        session.send_octets(octets)
        return False

    return act


def cut(octets: int = 1) -> Action:
    """Write in pieces of so many octets from now on, wherever that cuts frames."""

    def act(session: Session, event: Any) -> bool:
        session.wire.cut = octets
        return False

    return act


def lose_heartbeats() -> Action:
    """Send no heartbeats from now on."""

    def act(session: Session, event: Any) -> bool:
        session.wire.loses_heartbeats = True
        return False

    return act


def block(reason: str = "low on memory") -> Action:
    """Block publishers: connection.blocked, to all connections."""

    def act(session: Session, event: Any) -> bool:
        session.broker.block(reason)
        return False

    return act


def twice() -> Action:
    """Deliver a message again, as redelivered, though it was not given back: for ``basic.deliver``."""

    def act(session: Session, event: Any) -> bool:
        session.channels[event.channel].deliver_again()
        return False

    return act


@dataclass(eq=False)
class Fault:
    """A fault that was asked for.

    Attributes:
        fired: how often it has happened.
    """

    _action: Action
    _method: str | None
    _received: int | None
    _sent: int | None
    _connection: int | None
    _skip: int
    _times: int | None
    _fields: dict[str, Any]
    _passed: set[int] = field(default_factory=set)  # connections on which its octets have passed
    fired: int = 0

    def fire(self, session: Session, event: Any) -> bool:
        """Let it happen, if this is a connection for it and it is not over; return whether all is done."""
        if self._times is not None and self.fired >= self._times:
            return False
        if self._connection not in (None, session.number):
            return False
        self.fired += 1
        return self._action(session, event)

    def meets(self, session: Session, method: Any) -> bool:
        """Return whether it is for a method; those to be skipped are counted."""
        if self._method != method.spec.name or self._connection not in (None, session.number):
            return False
        if any(getattr(method, name, None) != value for name, value in self._fields.items()):
            return False
        self._skip -= 1
        return self._skip < 0

    def passes(self, session: Session, received: int) -> bool:
        """Return whether a connection has now received the octets it is for, for the first time."""
        if self._received is None or received < self._received or session.number in self._passed:
            return False
        self._passed.add(session.number)
        return True

    def place(self, session: Session, sent: int, octets: int) -> int | None:
        """Return after how many of the octets to be sent it happens; None for not among them."""
        if self._sent is None or session.number in self._passed or sent + octets < self._sent:
            return None
        self._passed.add(session.number)
        return self._sent - sent


class Faults:
    """The faults that were asked for.

    Attributes:
        armed: whether there are any that wait to happen: what is asked before all else.
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
        times: int | None = None,
        **fields: Any,
    ) -> Fault:
        """Ask for a fault. With neither a method nor octets it happens by itself, to all that is connected.

            broker.faults.add(close_channel(405), method="queue.declare", queue="orders", times=1)
            broker.faults.add(stall(), seconds=5)

        Args:
            action: what happens: made by a function of this module, or a callable of the same kind.
            method: at a method with this name, received or sent by the broker.
            seconds: not before so many seconds of the broker's clock.
            received, sent: once a connection has received or sent so many octets.
            connection: to the connection of this number alone, from 1; None for any.
            skip: methods to let pass first.
            times: how often it happens; None for always.
            fields: arguments that the method has to have.

        Returns:
            The fault, which tells how often it has happened.
        """
        fault = Fault(action, method, received, sent, connection, skip, times, fields)
        happens = self._now if method is None and received is None and sent is None else self._arm
        if seconds is None:
            happens(fault)
        else:
            self._broker.clock.call_later(seconds, happens, fault)
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
        """Let a fault happen to all that is connected."""
        for session in list(self._broker.sessions.values()):
            fault.fire(session, None)

    # -- what sessions ask

    def met(self, session: Session, event: Any) -> bool:
        """Return whether faults have dealt with an event, or with a method that is about to be sent."""
        method = getattr(event, "method", None)
        return method is not None and any(
            fault.meets(session, method) and fault.fire(session, event) for fault in list(self._faults)
        )

    def received(self, session: Session, octets: int) -> None:
        """Let happen what happens once a connection has received so many octets."""
        for fault in list(self._faults):
            if fault.passes(session, octets):
                fault.fire(session, None)

    def cut_at(self, session: Session, sent: int, data: bytes) -> Iterator[tuple[bytes, Fault | None]]:
        """Yield what is to be sent in parts, each with the fault that happens behind it."""
        places = [(fault.place(session, sent, len(data)), fault) for fault in list(self._faults)]
        begin = 0
        for place, fault in sorted(
            ((max(place, 0), fault) for place, fault in places if place is not None), key=lambda each: each[0]
        ):
            yield data[begin:place], fault
            begin = place
        yield data[begin:], None


__all__ = [
    "Fault", "Faults", "block", "close_channel", "close_connection", "cut", "drop", "ignore", "late",
    "lose_heartbeats", "raw", "refuse", "stall", "twice",
]  # fmt: skip
