"""One direction of a connection: following its frames, and finding them again after a break."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpcodec import DecodeError, Frame, ProtocolHeader
from amqpcodec._kernel.framing import MORE, frame_at
from amqpcodec._kernel.wire import METHOD, OVERHEAD, PROTOCOL_HEADER
from amqpcodec._state import Fields, Note, damaged

from . import dialects
from .model import CLIENT_TO_SERVER, CapturedFrame, Close, Connection, Data, Fault, FaultKind, Gap, Item
from .resync import RUN_OCTETS, Verdict

if TYPE_CHECKING:
    from .frames import ConnectionDecoder

Mark = tuple[int, int | None, int | None]  # of octets: the offset behind them, their packet and its time

_KEPT_HEAD = 16  # first octets of a direction, to tell what it is if it is not AMQP
_MAX_HELD = 1000
_LOSSES = 16  # of track, one soon after the other, before a run of frames is asked for


class Held(NamedTuple):
    """Where the following of frames stands.

    Attributes:
        start: offset of the next frame.
        octets: those of it that have come.
        marks: end offset, packet and time of what brought them.
        packet: number of the last packet.
        time_ns: its time.
    """

    start: int
    octets: bytes
    marks: list[Mark]
    packet: int | None
    time_ns: int | None


class DirectionDecoder:
    """Turns the events of one direction into frames and faults.

    It either follows frames, or searches for the next frame that can be trusted. In both states `_buffer`
    holds the octets from `_start` on that belong to no frame returned yet. Nobody else keeps any, so going
    from one state to the other copies nothing, however many octets there are.
    """

    def __init__(self, owner: ConnectionDecoder, direction: int) -> None:
        self._owner = owner
        self._direction = direction
        self._following = False
        self._buffer = bytearray()
        self._start = 0
        self._marks: deque[Mark] = deque()
        self._packet: int | None = None
        self._time_ns: int | None = None
        # Of a search: where it began and why, the first place to consider, and where a frame begins if the
        # last head seen was right.
        self._lost_from = 0
        self._reason = "the recording begins inside a frame"
        self._consider_from = 0
        self._expected: int | None = 0
        # Where following began after the last search, and how often track was lost soon after that, in a row.
        self._followed_from = 0
        self._losses = 0
        self._held: list[Fault] = []  # until it is known whether the connection is AMQP at all
        self.head = bytearray()
        self.end = 0

    def data(self, event: Data) -> Iterator[Item]:
        """Take octets."""
        if len(self.head) < _KEPT_HEAD:
            self.head += event.octets[: _KEPT_HEAD - len(self.head)]
        self._packet, self._time_ns = event.packet, event.time_ns
        self._buffer += event.octets
        self.end = event.offset + len(event.octets)
        if self._marks and self._marks[-1][1:] == (event.packet, event.time_ns):
            self._marks.pop()  # one for all that a packet, or a stream without packets, has brought
        self._marks.append((self.end, event.packet, event.time_ns))
        yield from self._advance(final=False)

    def gap(self, event: Gap) -> Iterator[Item]:
        """Octets are missing: end what is before them, and search behind them."""
        yield from self._break_off("a gap cuts this frame")
        self._packet, self._time_ns = event.packet, event.time_ns
        message = f"{event.length} octets are missing from the recording"
        yield from self._tell("gap", message, event.offset, event.length)
        self.end = event.offset + event.length
        self._marks.clear()
        expected = self._expected if self._expected is not None and self._expected >= self.end else None
        self._search_behind(self.end, "the rest of a frame cut by a gap", expected)

    def close(self, event: Close) -> Iterator[Item]:
        """Nothing more will come."""
        yield from self._break_off("the stream ends inside this frame")
        if self._owner.recognised:
            yield from self._release()

    def begins_with_frames(self, octets: bytes) -> bool:
        """Whether frames can be followed from the first octets of this direction on.

        False is no answer: give them to `data`, and it will turn out.
        """
        if octets.startswith(dialects.HEADER_PREFIX[:1]):
            return False
        return self._owner.header_seen or self._owner.frame_test().judge(octets, 0, False) is Verdict.YES

    def resume(self, held: Held) -> None:
        """Follow frames that somebody else has followed so far."""
        self._buffer.clear()
        self._start = held.start
        self._marks = deque(held.marks)
        self._packet, self._time_ns = held.packet, held.time_ns
        self._follow(held.start)
        self._buffer += held.octets
        self.end = held.start + len(held.octets)

    def suspend(self, most: int | None = None) -> Held | None:
        """Leave the following of frames to somebody else.

        Args:
            most: how many octets of a frame that is not whole may be handed over; None for all. Where it is
                those that came last, no octet is handed over twice, however often that is tried.

        Returns:
            None while frames are searched for, or where there are more octets.
        """
        if not self._following or (most is not None and len(self._buffer) > most):
            return None
        marks = [mark for mark in self._marks if mark[0] > self._start]
        octets = bytes(self._buffer)
        self._following = False
        self._buffer.clear()
        return Held(self._start, octets, marks, self._packet, self._time_ns)

    def state(self, note: Note) -> list[Any]:
        """What `restore` makes the same of; `note` is told of each packet in it."""
        following = self._following
        fresh = following and not self._start  # told since earlier versions did not see it by themselves
        marks = [[end, note(packet), time_ns] for end, packet, time_ns in self._marks if end > self._start]
        search = [self._lost_from, self._reason, self._consider_from, self._expected]
        held = [
            [fault.kind, fault.message, note(fault.packet), fault.time_ns, fault.offset, fault.length]
            for fault in self._held
        ]
        head = b"" if self._owner.recognised else bytes(self.head)
        place = [bytes(self._buffer), marks, note(self._packet), self._time_ns]
        losses = [self._losses, self._followed_from] if self._losses else []
        return [following, fresh, *place, *search, held, head, *losses]

    def restore(self, state: Fields, end: int) -> None:
        """Go on from a state, `end` octets behind the first one of the direction."""
        following, _, octets = state.flag(), state.flag(), state.octets()
        self.end, start = end, end - len(octets)
        if start < 0:
            raise damaged("there are more octets than have come")
        marks = list(_marks(state.items(), start, self.end))
        held = Held(start, octets, marks, state.packet(), state.time())
        self._start, self._packet, self._time_ns = start, held.packet, held.time_ns
        self._lost_from, self._reason = state.number(0, self.end), state.text()
        self._consider_from = state.number(0, self.end)
        # No frame that one waits for is larger than frames may be.
        self._expected = state.perhaps(0 if following else start, end + self._owner.max_frame)
        self._held = [_fault(fields, self._owner.connection, self._direction) for fields in state.items()]
        self.head += state.octets()
        self._losses, self._followed_from = state.later(0, _LOSSES + 1), state.later(0, end)
        state.end()
        if not end and (following or self._expected != 0 or self._held or self.head):
            raise damaged("there is something before the first octet")
        if following:
            self.resume(held)
        else:
            self._buffer += octets
            self._marks.extend(marks)

    def _advance(self, final: bool) -> Iterator[Item]:
        """Alternate between following and searching until neither gets any further."""
        while True:
            if not self._following:
                yield from self._search(final)
                if not self._following:
                    return
            try:
                octets = self._owner.reader.cut(self._buffer, self._start)
            except DecodeError as error:
                yield self._lose_track(error)
                continue
            if octets is None:
                return
            yield self._read(octets)

    def _read(self, octets: bytes) -> Item:
        """Take the frame at the start of the buffer."""
        owner, start = self._owner, self._start
        reader = owner.reader.of(octets)
        try:
            frame = reader.read(octets)
        except DecodeError as error:
            if error.fatal:
                return self._lose_track(error)
            self._pass(len(octets))
            return self._error(error, start, octets)
        self._pass(len(octets))
        packet, time_ns = self._completed_by(start, self._start)
        if octets[0] == METHOD:
            owner.note_method(frame.payload, octets)
        size = len(octets) - OVERHEAD
        return CapturedFrame(
            owner.connection, self._direction, packet, time_ns, start, size, octets, frame, reader.dialect
        )

    def _lose_track(self, error: DecodeError) -> Fault:
        """Search for the next frame, since not even the end of this one can be trusted."""
        start, following = self._start, self._end_of_frame()
        # Where its size leads beyond what is there, it may be the size that is damaged.
        self._search_inside(following if following is not None and following <= self.end else None)
        return self._error(error, start)

    def _error(self, error: DecodeError, start: int, octets: bytes = b"") -> Fault:
        """The fault of octets that cannot be decoded: of a frame, or of what begins at an offset."""
        packet, time_ns = self._completed_by(start, start + max(1, len(octets)))
        place = ".".join(filter(None, (error.method, error.field)))
        message = f"{place}: {error.message}" if place else error.message
        connection, size = self._owner.connection, len(octets)
        code = error.reply_code
        return Fault(
            "error", message, connection, self._direction, packet, time_ns, start, size, code, octets
        )

    def _pass(self, size: int) -> None:
        del self._buffer[:size]
        self._start += size

    def _completed_by(self, start: int, end: int) -> tuple[int | None, int | None]:
        """Packet and time of the latest packet among those that brought the octets from `start` to `end`."""
        marks = self._marks
        while marks and marks[0][0] <= start:
            marks.popleft()
        if not marks:
            return self._packet, self._time_ns
        _, latest, time_ns = marks[0]
        for mark_end, packet, packet_time in marks:
            if packet is not None and latest is not None and packet > latest:
                latest, time_ns = packet, packet_time
            if mark_end >= end:
                break
        return latest, time_ns

    def _follow(self, place: int) -> None:
        """Decode frames from an offset on."""
        self._pass(place - self._start)
        self._owner.recognise()
        self._following = True

    def _search(self, final: bool) -> Iterator[Item]:
        place = self._trusted_place(final)
        if place is None:
            return
        if place == 0 and self._buffer.startswith(dialects.HEADER_PREFIX):
            yield self._opened()
            if not self._following:  # of a version nobody knows; there may be frames all the same
                yield from self._search(final)
            return
        self._followed_from = place
        self._follow(place)
        yield from self._release()
        yield from self._tell("lost", self._reason, self._lost_from, place - self._lost_from)

    def _opened(self) -> CapturedFrame:
        """Take the protocol header; made a frame here, since a decoder refuses versions it does not speak."""
        owner, size = self._owner, dialects.HEADER_SIZE
        octets = bytes(self._buffer[:size])
        packet, time_ns = self._completed_by(0, size)
        if self._direction != CLIENT_TO_SERVER or owner.note_header(octets):
            self._follow(size)
        else:
            owner.recognised = True
            self._search_behind(size, dialects.foreign(octets), size)
        frame = Frame(PROTOCOL_HEADER, 0, ProtocolHeader(octets))
        return CapturedFrame(
            owner.connection, self._direction, packet, time_ns, 0, size, octets, frame, owner.dialect
        )

    def _search_behind(self, offset: int, reason: str, expected: int | None) -> None:
        """Give up following; octets from `offset` on are lost until a frame is found."""
        self._following = False
        self._owner.lose_track()
        del self._buffer[: offset - self._start]
        self._start = self._lost_from = self._consider_from = offset
        self._reason = reason
        self._expected = expected

    def _search_inside(self, expected: int | None) -> None:
        """Search behind the first octet of what should be a frame and cannot be one."""
        soon = self._start - self._followed_from < RUN_OCTETS
        self._losses = min(self._losses, _LOSSES) + 1 if soon else 1
        self._search_behind(self._start, "octets that cannot be decoded", expected)
        self._consider_from += 1

    @property
    def _doubtful(self) -> bool:
        return self._losses > _LOSSES

    def _trusted_place(self, final: bool) -> int | None:
        """Offset of the next frame that can be trusted; None if it is not there yet.

        Octets that cannot be part of it are dropped on the way.
        """
        buffer, start = self._buffer, self._start
        if not buffer:
            return None
        if start == self._expected == 0:
            header = self._protocol_header(final)
            if header is not Verdict.NO:
                return 0 if header is Verdict.YES else None
        test = self._owner.frame_test()
        if self._expected is not None:
            verdict = Verdict.MORE
            if self._expected < self.end:
                judge = test.judge_run if self._doubtful else test.judge
                verdict = judge(buffer, self._expected - start, final)
            elif self._expected == self.end and final:
                verdict = Verdict.NO
            if verdict is not Verdict.NO:
                return self._expected if verdict is Verdict.YES else None
        self._expected = None
        verdict, index = test.find(buffer, max(0, self._consider_from - start), final, self._doubtful)
        if verdict is Verdict.YES:
            return start + index
        self._pass(index)
        while self._marks and self._marks[0][0] <= self._start:
            self._marks.popleft()
        return None

    def _protocol_header(self, final: bool) -> Verdict:
        """Whether the stream is that of an AMQP connection seen from its very beginning."""
        octets = bytes(self._buffer[: dialects.HEADER_SIZE])
        if not octets.startswith(dialects.HEADER_PREFIX):
            # A header may come in pieces. No frame begins with its first letter, so no frame is held up.
            if dialects.HEADER_PREFIX.startswith(octets) and not final:
                return Verdict.MORE
            return Verdict.YES if self._owner.header_seen else Verdict.NO
        return Verdict.YES if len(octets) == dialects.HEADER_SIZE else Verdict.MORE

    def _break_off(self, reason: str) -> Iterator[Item]:
        """The octets at hand will not be continued: give out what they hold, and tell what is left over."""
        yield from self._advance(final=True)
        while self._following and self._buffer:
            expected = self._end_of_frame()
            if expected is not None or len(self._buffer) < OVERHEAD:
                yield from self._tell("lost", reason, self._start, len(self._buffer))
                self._search_behind(self.end, reason, expected)
                return
            # A size that nobody would agree on: the frame is damaged, and there may be others behind it.
            self._search_inside(None)
            yield from self._advance(final=True)
        if not self._following and self.end > self._lost_from:
            yield from self._tell("lost", self._reason, self._lost_from, self.end - self._lost_from)
            self._lost_from = self.end

    def _end_of_frame(self) -> int | None:
        """Offset behind the frame at the start of the buffer, if its head can be believed."""
        # The size is asked for, of a frame of any type.
        status, size = frame_at(self._buffer, 0, len(self._buffer), 0, 0, opens=False)
        if status == MORE or size > self._owner.trusted_size:
            return None
        return self._start + size

    def _tell(self, kind: FaultKind, message: str, offset: int, length: int) -> Iterator[Fault]:
        """Report a fault; at once, or when it turns out that the connection is AMQP."""
        if not length:
            return
        fault = Fault(
            kind,
            message,
            self._owner.connection,
            self._direction,
            self._packet,
            self._time_ns,
            offset,
            length,
        )
        if self._owner.recognised:
            yield from self._release()
            yield fault
        elif len(self._held) < _MAX_HELD:
            self._held.append(fault)

    def _release(self) -> Iterator[Fault]:
        held, self._held = self._held, []
        yield from held


def _marks(state: Iterator[Fields], start: int, end: int) -> Iterator[Mark]:
    """The marks of the octets from `start` to `end` in a state."""
    at = start
    for fields in state:
        at = fields.number(at + 1, end)
        yield at, fields.packet(), fields.time()
        fields.end()
    if at != end:
        raise damaged("there are octets that no packet has brought")


def _fault(state: Fields, connection: Connection, direction: int) -> Fault:
    """A fault in a state; before any frame was found there are only two kinds of them."""
    kind: FaultKind = "gap" if state.text() == "gap" else "lost"
    message, packet, time_ns = state.text(), state.packet(), state.time()
    offset, length = state.number(0), state.number(1)
    state.end()
    return Fault(kind, message, connection, direction, packet, time_ns, offset, length)
