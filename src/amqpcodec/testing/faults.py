"""Faults on demand: what goes wrong (functions that make actions), and when (`Faults.add`)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from .._nearest import nearest_hint
from .threads import on_the_loop

if TYPE_CHECKING:
    from .broker import Broker
    from .clock import Timer
    from .session import Session

# An action takes the session and the event that it is about, or None; it returns whether that is dealt with.
Action = Callable[["Session", Any], bool]


# Those that the connection sends and answers by itself, or that are never used: no fault can happen there.
NEVER_MET = frozenset({
    "channel.close", "channel.close-ok", "channel.flow", "channel.flow-ok", "connection.close",
    "connection.close-ok", "connection.secure", "connection.secure-ok",
})  # fmt: skip
LEAST = {"seconds": 0, "received": 0, "sent": 0, "skip": 0, "connection": 1, "times": 1}


class Sent:
    """A method that the broker is about to send, as actions see it."""

    def __init__(self, channel: int, method: Any) -> None:
        self.channel = channel
        self.method = method


@dataclass(frozen=True)
class _AtMethods:
    """An action that needs a method: one of some, or any if none is named."""

    act: Action
    methods: tuple[str, ...] = ()

    def __call__(self, session: Session, event: Any) -> bool:
        return self.act(session, event)


def _require(name: str, value: float, least: int, most: float = inf) -> None:
    """Refuse a number that is less or more than it may be."""
    if not least <= value <= most:
        more = "" if most == inf else f", and at most {most}"
        raise ValueError(f"{name} is {value!r}, and has to be at least {least}{more}")


def close_channel(code: int = 406, text: str = "PRECONDITION_FAILED - a fault of the test") -> Action:
    """Close the channel, in place of what the method asks for; all channels, if it is not about one.

    Args:
        code, text: as in channel.close.
    """
    _require("code", code, 0, 65535)

    def act(session: Session, event: Any) -> bool:
        if event is None or event.channel == 0:
            for number in list(session.channels):
                session.close_channel(number, code, text)
            return False
        spec = event.method.spec
        session.close_channel(event.channel, code, text, spec.class_id, spec.method_id)
        return True

    return act


def close_connection(code: int = 320, text: str = "CONNECTION_FORCED - a fault of the test") -> Action:
    """Close the connection, in place of what the method asks for.

    Args:
        code, text: as in connection.close.
    """
    _require("code", code, 0, 65535)

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
    _require("seconds", seconds, 0)

    def act(session: Session, event: Any) -> bool:
        if isinstance(event, Sent):
            session.hold(seconds)
            return False
        session.defer(event, seconds)
        return True

    return act


def stall(seconds: float | None = None) -> Action:
    """Neither read nor write any more, as with a cable that was pulled.

    Args:
        seconds: of the broker's clock; None for good.
    """
    if seconds is not None:
        _require("seconds", seconds, 0)

    def act(session: Session, event: Any) -> bool:
        session.hold(seconds)
        is_received = not isinstance(event, Sent)
        session.defer(event if is_received else None, seconds)
        return is_received

    return act


def refuse() -> Action:
    """Refuse a publish: nothing takes it, and basic.nack says so where it is confirmed."""

    def act(session: Session, event: Any) -> bool:
        if event.sequence_number is not None:
            session.send(event.channel, session.amqp.Basic.Nack(event.sequence_number))
        return True

    return _AtMethods(act, ("basic.publish",))


def ignore() -> Action:
    """Do nothing at all: a method gets no answer, or is not sent."""

    def act(session: Session, event: Any) -> bool:
        return True

    return _AtMethods(act)


def raw(octets: bytes) -> Action:
    """Send octets of the test's own first, as they are."""
    octets = bytes(memoryview(octets))  # refuses text and numbers here, where they are written

    def act(session: Session, event: Any) -> bool:
        session.send_octets(octets)
        return False

    return act


def cut(octets: int = 1) -> Action:
    """Write in pieces of so many octets from now on, wherever that cuts frames; 0 for as they come."""
    _require("octets", octets, 0)

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

    return _AtMethods(act, ("basic.deliver",))


MAKERS: tuple[Any, ...] = (
    block, close_channel, close_connection, cut, drop, ignore, late, lose_heartbeats, raw, refuse, stall,
    twice,
)  # fmt: skip


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
    _text: str
    _passed: set[int] = field(default_factory=set)  # connections on which its octets have passed
    fired: int = 0

    def __repr__(self) -> str:
        return f"<fault {self._text}; it has happened {self.fired} times>"

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

    def __init__(self, broker: Broker, dialect: Any) -> None:
        self._broker = broker
        self._specs = {cls.spec.name: cls.spec for cls in dialect.METHODS.values()}
        self._asked: list[Fault] = []
        self._faults: list[Fault] = []  # that may happen from now on
        self._timers: list[Timer] = []  # of others
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
            The fault, which tells by `fired` how often it has happened.

        Raises:
            ValueError: it would never happen: there is no such method, say, or the action is for another one.
            TypeError: the method has no such argument, or what is given is no action.
        """
        when = {
            "method": method, **fields, "seconds": seconds, "received": received, "sent": sent,
            "connection": connection, "skip": skip or None, "times": times,
        }  # fmt: skip
        asked = {name: value for name, value in when.items() if value is not None}
        _check_action(action, method)
        self._check_when(asked, method, fields)
        text = ", ".join([_name(action), *(f"{name}={value!r}" for name, value in asked.items())])
        fault = Fault(action, method, received, sent, connection, skip, times, fields, text)
        self._asked.append(fault)
        happens = self._now if method is None and received is None and sent is None else self._arm
        if seconds is None:
            happens(fault)
        else:
            self._timers.append(self._broker.clock.call_later(seconds, happens, fault))
        return fault

    def _check_when(self, asked: dict[str, Any], method: str | None, fields: dict[str, Any]) -> None:
        """Refuse what would never happen."""
        for name, least in LEAST.items():
            if name in asked:
                _require(name, asked[name], least)
        if method is None:
            for name in (*fields, *asked.keys() & {"skip"}):
                raise TypeError(f"{name} is about a method, and none is named by method=")
            return
        if asked.keys() & {"received", "sent"}:
            raise TypeError("a fault happens at a method or at octets, not at both")
        if method not in self._specs:
            raise ValueError(f"there is no method {method!r}{nearest_hint(method, self._specs, 0.6)}")
        if method in NEVER_MET:
            raise ValueError(f"no fault happens at {method}: the connection itself deals with it")
        known = [each.attribute for each in self._specs[method].fields if not each.reserved]
        for name in fields:
            if name not in known:
                raise TypeError(f"{method} has no argument {name!r}; it has {', '.join(known) or 'none'}")

    @on_the_loop
    def clear(self) -> None:
        """Forget all faults; what has happened stays."""
        while self._timers:
            self._timers.pop().cancel()
        self._asked.clear()
        self._faults.clear()
        self.armed = False

    @on_the_loop
    def assert_fired(self) -> None:
        """Check that each fault that was asked for has happened, since the last `clear`.

        Raises:
            AssertionError: one has not; the text lists those.
        """
        left = [f"  {fault!r}" for fault in self._asked if not fault.fired]
        if left:
            raise AssertionError("\n".join(["faults that have not happened:", *left]))

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
        """Yield what is to be sent in parts, each with the fault that happens after it."""
        places = [(fault.place(session, sent, len(data)), fault) for fault in list(self._faults)]
        begin = 0
        for place, fault in sorted(
            ((max(place, 0), fault) for place, fault in places if place is not None), key=lambda each: each[0]
        ):
            yield data[begin:place], fault
            begin = place
        yield data[begin:], None


def _name(action: Action) -> str:
    """Return the name of the function that has made an action, or is one."""
    made = action.act if isinstance(action, _AtMethods) else action
    return getattr(made, "__qualname__", repr(made)).partition(".<locals>")[0]


def _check_action(action: Action, method: str | None) -> None:
    """Refuse what is no action, and an action that is for another method."""
    name = _name(action)
    if action in MAKERS:
        raise TypeError(f"{name} makes an action when it is called: {name}(...)")
    try:
        inspect.signature(action).bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"{name} is no action, which is called with the session and the event: {error}"
        ) from None
    if isinstance(action, _AtMethods):
        wanted = " or ".join(action.methods) or "a method"
        if method is None or (action.methods and method not in action.methods):
            raise ValueError(f"{name}() is for {wanted}, not for {method or 'what is no method'}")


__all__ = [
    "Fault", "Faults", "block", "close_channel", "close_connection", "cut", "drop", "ignore", "late",
    "lose_heartbeats", "raw", "refuse", "stall", "twice",
]  # fmt: skip
