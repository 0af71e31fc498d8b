"""Which messages an answer settles: acknowledgements, refusals and confirms beside what they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import _backend
from .._columns.origins import NO_TIME, FrameOrigin
from .._columns.requests import request
from .._columns.rows import ANSWERS
from .._columns.steps import ANSWER, GET_OK, PUBLISH, REQUEST, step_of
from ..capture import CapturedFrame, Close, Event, Fault
from ..capture.dialects import module

if TYPE_CHECKING:
    from .._columns.following_py import Follower, Message
else:
    _following = _backend.load("amqpcodec._columns.following")
    Follower, Message = _following.Follower, _following.Message

MOST_WAITING = 20_000  # messages without an answer yet; further ones are not followed
MOST_OCTETS = 64 << 20  # that is kept of them
_Kept = TypeVar("_Kept")
_Place = tuple[int, int, int]  # of a message: connection, direction, offset of its method


class Settling(Generic[_Kept]):
    """Follows the messages of one file to their answers, as the table `deliveries` does.

    Attributes:
        unfollowed: messages that were to be kept, and were too many.
    """

    def __init__(self) -> None:
        self.unfollowed = 0
        self._follower = Follower()
        self._follower.most_waiting = MOST_WAITING
        self._follower.settler.call = self._settle
        self._kept: dict[_Place, tuple[_Kept, int]] = {}
        self._octets = 0
        self._settled: list[_Kept] = []
        self._steps: dict[type, int] = {}

    def left_out(self) -> Iterator[str]:
        """Say how many messages could not be kept."""
        if self.unfollowed:
            most = f"{MOST_WAITING} messages, or {MOST_OCTETS >> 20} MiB"
            yield f"messages without their answers: {self.unfollowed}; more than {most}, waited for one"

    def watching(self, events: Iterable[Event | Fault]) -> Iterator[Event | Fault]:
        """Return the events; a connection that has ended, and whose frames were taken, is forgotten."""
        for event in events:
            yield event
            if isinstance(event, Close):
                self._follower.close(event.connection)

    def answer(self, item: CapturedFrame) -> list[_Kept]:
        """Take a method without content; return what was kept for the messages that it settles."""
        payload = item.frame.payload
        step = self._step(type(payload))
        if step < ANSWER:
            return []
        followed = self._follower.connection(item.connection)
        packet = NO_TIME if item.packet is None else item.packet
        time_ns = NO_TIME if item.time_ns is None else item.time_ns
        if step == REQUEST:
            request(followed, item.frame.channel, item.direction, payload, packet, time_ns)
            return []
        self._settled = []
        followed.answer(item.direction, item.octets, packet, time_ns)
        return self._settled

    def follow(self, method: CapturedFrame, kept: _Kept | None, octets: int = 0) -> None:
        """Take the method of a message whose content header has come.

        Args:
            method: its frame.
            kept: what `answer` is to return for it; None for nothing.
            octets: memory that this takes.
        """
        step = self._step(type(method.frame.payload))
        if kept is None and step not in (PUBLISH, GET_OK):
            return  # publishes are counted, and gets are answered in order
        connection, direction, offset = method.connection, method.direction, method.offset
        origin = FrameOrigin(connection, direction, method.packet, method.time_ns, offset)
        # Nobody needs the header here: what is kept may have it.
        message = Message(origin, method.frame.channel, module(method.dialect), step, method.octets, offset)
        if kept is not None and self._octets + octets > MOST_OCTETS:
            self.unfollowed += 1
        elif kept is not None:
            self._kept[connection.number, direction, offset] = kept, octets
            self._octets += octets
        self._follower.connection(connection).take(message)

    def miss(self, fault: Fault) -> None:
        """Octets are missing in a direction of a connection."""
        if fault.connection is not None and fault.direction is not None and not fault.octets:
            self._follower.lose(fault.connection, fault.direction)

    def _settle(self, message: Message, outcome: str | None, packet: int, time_ns: int) -> None:
        place = message.connection.number, message.direction, message.offset
        kept, octets = self._kept.pop(place, (None, 0))
        if kept is None:
            return
        self._octets -= octets
        if outcome in ANSWERS:
            self._settled.append(kept)
        elif outcome == "dropped":
            self.unfollowed += 1

    def _step(self, method: Any) -> int:
        step = self._steps.get(method)
        if step is None:
            step = self._steps[method] = step_of(method)
        return step
