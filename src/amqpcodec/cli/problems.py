"""``decode --errors``: what went wrong, each with what came before it on its channel or connection."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import Frame, _backend
from .._kernel.wire import BODY, HEADER, METHOD
from ..capture import SERVER_TO_CLIENT, CapturedFrame, Close, Connection, Event, Fault, Item
from .choosing import Choice, Location, location
from .found import Found
from .queues import Queues
from .recent import Recent
from .selection import Selection
from .settling import Settling

if TYPE_CHECKING:
    from .messages_py import Messages
else:
    Messages = _backend.load("amqpcodec.cli.messages").Messages

USUAL_BEFORE = 5
MOST_OCTETS = 64 << 20  # of the last frames of all connections
_MEMORY_OF_FRAME = 1024  # octets of memory that a frame takes beside its own
_MOST_BODY = 1024  # octets of a body that are kept
_HEARTBEAT, _PROTOCOL = 8, 65  # types of frames
_CONTENT = (HEADER, BODY)
_SUCCESS = (0, 200)  # reply codes of a close where all is well
_BY_NAME = {"basic.return": "returned", "connection.blocked": "blocked"}


class _Past:
    """A frame that came.

    Attributes:
        frame: the frame.
        octets: memory that it takes.
        number: says in which order frames came.
        shown: whether it was shown.
    """

    __slots__ = ("frame", "number", "octets", "shown")

    def __init__(self, frame: CapturedFrame) -> None:
        self.frame = frame
        self.octets = len(frame.octets) + _MEMORY_OF_FRAME
        self.number = 0
        self.shown = False


class _Message(NamedTuple):
    """The first frames of a message that waits for an answer, and whether it is wanted."""

    frames: list[_Past]
    wanted: bool


class ErrorChoice(Choice):
    """Chooses what went wrong, and what came before.

    Args:
        selection: which problems are wanted; None for all. What happened to a message is
            wanted as its method is.
        queues: knows which queue a method is about; None where nobody asks.
        before: how many frames to show before a problem.
        body_bytes: octets of a body to keep.
    """

    def __init__(
        self, selection: Selection | None, queues: Queues | None, before: int, body_bytes: int
    ) -> None:
        super().__init__(selection, queues)
        self._order = Messages(0)  # finds frames out of order
        self._settling: Settling[_Message] = Settling()
        self._pasts = _Pasts(before)
        self._before = before
        self._body_bytes = min(body_bytes, _MOST_BODY)
        self._open: Recent[Location, _Message] = Recent()  # messages of which frames are to come
        self._returned: Recent[Location, bool] = Recent()  # contents that are problems
        self._ending: set[Connection] = set()  # one direction of them has ended
        self._last: int | None = None  # the number of the connection of the line before

    def watching(self, events: Iterable[Event | Fault]) -> Iterator[Event | Fault]:
        """See `Choice.watching`."""
        for event in self._settling.watching(events):
            yield event
            if isinstance(event, Close):
                if event.connection in self._ending:
                    self._pasts.close(event.connection)
                self._ending ^= {event.connection}

    def feed(self, item: Item) -> Iterable[Found]:
        """See `Choice.feed`."""
        wanted, _ = self.judge(item)
        ended = self._order.feed(item, wanted, None)
        if isinstance(item, Fault):
            self._settling.miss(item)
            found: list[Found] = []
        elif item.frame.type == _HEARTBEAT:
            return ()
        else:
            past = _Past(_cut(item, self._body_bytes))
            found = self._frame(item, past, wanted)
            self._pasts.add(past)
        for fault in ended:
            if isinstance(fault, Fault):
                found += self._fault(fault)
        return found

    def unmet(self) -> Iterator[str]:
        """See `Choice.unmet`."""
        yield from super().unmet()
        yield "nothing went wrong in what was looked at; amqpcodec stats finds what is slow, or stuck"

    def left_out(self) -> Iterator[str]:
        """See `Choice.left_out`."""
        yield from self._settling.left_out()
        if self._pasts.forgotten:
            yield f"what came before was forgotten {self._pasts.forgotten} times, to save memory"

    def _frame(self, item: CapturedFrame, past: _Past, wanted: bool) -> list[Found]:
        """Return the lines of a problem, if a frame is one."""
        kind, here = item.frame.type, location(item)
        if kind == METHOD:
            return self._method(item, past, wanted)
        if kind in _CONTENT:
            self._content(here, past)
            if self._returned.get(here):
                past.shown = True
                return [self._line(item, "returned", counts=False)]
        if kind == _PROTOCOL and item.direction == SERVER_TO_CLIENT and wanted:
            past.shown = True
            return self._lines(self._pasts.last(item.connection, 0), item, "version")
        return []

    def _content(self, here: Location, past: _Past) -> None:
        """Take a content header, with which its message is followed, or the first frame of a body."""
        message = self._open.get(here)
        expected = None if message is None else _CONTENT[len(message.frames) - 1]
        if message is None or past.frame.frame.type != expected:
            return
        message.frames.append(past)
        if expected == HEADER:
            octets = sum(each.octets for each in message.frames) + _MOST_BODY + _MEMORY_OF_FRAME
            self._settling.follow(message.frames[0].frame, message, octets)
        else:
            self._open.pop(here)

    def _method(self, item: CapturedFrame, past: _Past, wanted: bool) -> list[Found]:
        here = location(item)
        self._returned.pop(here)
        problem = _problem(item)
        if item.frame.payload.spec.content:
            self._open[here] = _Message([past], wanted)
            settled: list[_Message] = []
        else:
            self._open.pop(here)
            settled = self._settling.answer(item)
        if not problem:
            return []
        if not wanted and any(message.wanted for message in settled):
            wanted = self.selection is None or self.selection.covers(item)
        if not wanted:
            return []
        past.shown = True
        if problem == "returned":
            self._returned[here] = True
        before = self._of_messages(settled) or self._pasts.last(item.connection, item.frame.channel)
        return self._lines(before, item, problem)

    def _of_messages(self, messages: list[_Message]) -> list[_Past]:
        """Return frames of the last messages, as many as may be shown; those of one are not torn apart."""
        frames: list[_Past] = []
        for message in reversed(messages):
            if frames and len(frames) + len(message.frames) > self._before:
                break
            frames = [*message.frames, *frames]
        return frames[: self._before]

    def _fault(self, fault: Fault) -> list[Found]:
        """Return the lines of a fault that is wanted."""
        if fault.connection is None:
            return self._lines([], fault, fault.kind)
        channel = int.from_bytes(fault.octets[1:3], "big")  # 0 as well where there are no octets
        return self._lines(self._pasts.last(fault.connection, channel), fault, fault.kind)

    def _lines(self, before: list[_Past], item: Item, problem: str) -> list[Found]:
        """Return the lines of what came before and was not shown yet, and of the problem."""
        left = [past for past in before if not past.shown]
        if left:
            self._last = None
        lines = []
        for past in left:
            past.shown = True
            lines.append(self._line(past.frame, "", counts=False))
        return [*lines, self._line(item, problem, counts=True)]

    def _line(self, item: Item, problem: str, counts: bool) -> Found:
        number = -1 if item.connection is None else item.connection.number
        apart, self._last = self._last != number, number
        return Found(item, problem, apart, counts)


class _Pasts:
    """The last frames of each channel.

    Args:
        most: how many of each.

    Attributes:
        forgotten: how often those of a connection were forgotten, since all of them had too many octets.
    """

    def __init__(self, most: int) -> None:
        self.forgotten = 0
        self._most = most
        self._octets = self._count = 0
        self._connections: OrderedDict[Connection, dict[int, deque[_Past]]] = OrderedDict()

    def add(self, past: _Past) -> None:
        """Take a frame."""
        if not self._most:
            return
        connection, channel = past.frame.connection, past.frame.frame.channel
        lasts = self._connections.get(connection)
        if lasts is None:
            lasts = self._connections[connection] = {}
        else:
            self._connections.move_to_end(connection)
        last = lasts.get(channel)
        if last is None:
            last = lasts[channel] = deque()
        elif len(last) == self._most:
            self._octets -= last.popleft().octets
        last.append(past)
        self._octets += past.octets
        self._count += 1
        past.number = self._count
        while self._octets > MOST_OCTETS:
            self.forgotten += 1
            self.close(next(iter(self._connections)))

    def last(self, connection: Connection, channel: int) -> list[_Past]:
        """Return the last frames of a channel, oldest first; those of all of a connection for channel 0."""
        lasts = self._connections.get(connection, {})
        frames = list(lasts.get(channel, ()))
        if not channel:
            frames = sorted(chain.from_iterable(lasts.values()), key=attrgetter("number"))[-self._most :]
        first = next((at for at, past in enumerate(frames) if past.frame.frame.type not in _CONTENT), 0)
        return frames[first:]  # without the rest of a message

    def close(self, connection: Connection) -> None:
        """Forget a connection."""
        for last in self._connections.pop(connection, {}).values():
            self._octets -= sum(past.octets for past in last)


def _problem(item: CapturedFrame) -> str:
    """Return what went wrong with a method, in a word; "" for nothing."""
    payload, from_server = item.frame.payload, item.direction == SERVER_TO_CLIENT
    name = payload.spec.name
    if name in ("channel.close", "connection.close"):
        return "" if payload.reply_code in _SUCCESS else "closed"
    if name == "basic.cancel":
        return "cancelled" if from_server else ""
    if name in ("basic.nack", "basic.reject"):
        if from_server:
            return "refused"
        return "requeued" if payload.requeue else name.partition(".")[2]
    return _BY_NAME.get(name, "")


def _cut(item: CapturedFrame, most: int) -> CapturedFrame:
    """Return a frame as it is kept: of a body the first octets, and its size."""
    frame: Any = item.frame
    if frame.type != BODY or len(frame.payload) <= most:
        return item
    return item._replace(octets=b"", frame=Frame(BODY, frame.channel, bytes(frame.payload[:most])))
