"""One direction of a connection: following its frames, and finding them again after a break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqpcodec import DecodeError, Frame, ProtocolHeader
from amqpcodec._kernel.framing import MORE, frame_at
from amqpcodec._kernel.wire import METHOD, OVERHEAD, PROTOCOL_HEADER
from amqpcodec._state import Fields, Note, damaged

from . import dialects
from .model import CLIENT_TO_SERVER, Aside, CapturedFrame, Close, Connection, Fault, FaultKind, Gap, Item
from .proxied import MOST_OCTETS, ProxyHeader, proxy_header
from .resync import RUN_OCTETS, Verdict

if TYPE_CHECKING:
    from .direction_state_py import DirectionState, Mark
    from .frames import ConnectionDecoder

NO_FRAME = "no protocol header and no frame in it"
SNAPPED = "cut off by the snap length: record with -s 0"
_MIDWAY = "the recording begins inside a frame"
_KEPT_HEAD = 16  # first octets of a direction, to tell what it is if it is not AMQP
_MAX_UNREPORTED = 1000
_LOSSES = 16  # of track, one soon after the other, before a run of frames is asked for


class DirectionDecoder:
    """Turns the octets of one direction into frames and faults.

    It either follows frames, or searches for the next frame that can be trusted. `state` holds the octets
    that belong to no frame so far, for both, so going from one to the other copies nothing. Whoever follows
    frames by a fast path does so in that state, and nowhere else.

    Args:
        owner: the decoder of the connection.
        direction: 0 client to server, 1 server to client.
        state: where the direction stands: nothing has come.
    """

    __slots__ = (
        "_consider_from", "_direction", "_expected", "_followed_from", "_losses", "_lost_from", "_owner",
        "_reason", "_unreported", "begin", "head", "snapped", "state",
    )  # fmt: skip

    def __init__(self, owner: ConnectionDecoder, direction: int, state: DirectionState) -> None:
        self._owner = owner
        self._direction = direction
        self.state = state
        # Of a search: where it began and why, the first place to consider, and where a frame begins if the
        # last head seen was right.
        self._lost_from = 0
        self._reason = _MIDWAY
        self._consider_from = 0
        self._expected: int | None = 0
        # Where following began after the last search, and how often track was lost soon after that, in a row.
        self._followed_from = 0
        self._losses = 0
        # Until it is known whether the connection is AMQP at all; None for no faults, as almost always.
        self._unreported: list[Fault] | None = None
        self.head = b""
        self.begin = 0  # where AMQP begins: behind what a proxy says
        self.snapped = 0  # octets that the snap length has cut off, while the connection may not be AMQP

    def take(self, octets: bytes, packet: int | None, time_ns: int | None) -> None:
        """Take the octets that come next."""
        kept = len(self.head)
        if kept < _KEPT_HEAD and not self.state.following and kept == self.state.end - self.begin:
            self.head += octets[: _KEPT_HEAD - kept]
        self.state.append(octets, packet, time_ns)

    def advance(self, final: bool = False) -> Iterator[Item]:
        """Give all that can be read now.

        Args:
            final: nothing contiguous will follow.
        """
        while True:
            if not self.state.following:
                yield from self.find(final)
            yield from self.state.frames(self._owner.reader, self._owner.connection, self._direction)
            item = self.next()
            if item is None:
                return
            yield item

    def find(self, final: bool = False) -> Iterator[Item]:
        """Search for the next frame to follow from, if none is known; give what is found on the way."""
        while not self.state.following:
            place = self._trusted_place(final)
            if place is None:
                return
            if place == self.begin and bytes(self.state.octets[:4]) == dialects.HEADER_PREFIX:
                yield self._opened()  # of a version nobody knows; there may be frames all the same
            else:
                self._followed_from = place
                self.follow(place)
                yield from self._report_waiting()
                yield from self._report("lost", self._why_lost(), self._lost_from, place - self._lost_from)
                self.head = b""  # it was kept to tell what else it might be

    def next(self) -> Item | None:
        """Take the next frame, if frames are followed and it is whole; a fault where there is none."""
        state, start = self.state, self.state.start
        if not state.following or start == state.end:
            return None
        try:
            octets = self._owner.reader.cut(state.octets, start)
            if octets is None:
                return None
            item = self.read(octets, start, *state.brought_by(start + len(octets)))
        except DecodeError as error:
            return self._lose_track(error)
        state.pass_to(start + len(octets))
        return item

    def read(self, octets: bytes, start: int, packet: int | None, time_ns: int | None) -> Item:
        """Read a whole frame, and take from it how those behind it are read.

        Args:
            octets: the frame.
            start: its offset.
            packet: number of the packet that completed it.
            time_ns: its time.

        Raises:
            DecodeError: it is no frame that others could follow.
        """
        owner = self._owner
        reader = owner.reader.of(octets)
        try:
            frame = reader.read(octets)
        except DecodeError as error:
            if error.fatal:
                raise
            return self._error(error, start, packet, time_ns, octets)
        if octets[0] == METHOD:
            owner.negotiate(octets)
        size = len(octets) - OVERHEAD
        return CapturedFrame(
            owner.connection, self._direction, packet, time_ns, start, size, octets, frame, reader.dialect
        )

    def gap(self, event: Gap) -> Iterator[Item]:
        """Octets are missing: end what is before them, and search behind them."""
        yield from self._break_off("a gap cuts this frame")
        self.state.packet, self.state.time_ns = event.packet, event.time_ns
        if event.whole:
            message = f"{event.length} octets were acknowledged, and nothing of this direction was recorded"
            yield from self._report("gap", message, event.offset, event.length)
            return
        if event.snapped and not self._owner.recognised:
            self.snapped += event.length
        message = f"{event.length} octets are {SNAPPED if event.snapped else 'missing from the recording'}"
        yield from self._report("gap", message, event.offset, event.length)
        end = event.offset + event.length
        expected = self._expected if self._expected is not None and self._expected >= end else None
        self._search_behind(end, "the rest of a frame cut by a gap", expected)

    def aside(self, event: Aside) -> Iterator[Item]:
        """Octets that are no part of the stream."""
        where = event.packet, event.time_ns, event.offset, event.length
        yield from self._pass(Fault("lost", event.message, self._owner.connection, self._direction, *where))

    def close(self, event: Close) -> Iterator[Item]:
        """Nothing more will come."""
        yield from self._break_off("the stream ends inside this frame")
        if self._owner.recognised:
            yield from self._report_waiting()

    def follow(self, place: int = 0) -> None:
        """A frame begins at an offset: follow those from there on."""
        self.state.pass_to(place)
        self.state.following = True
        self._owner.recognise()

    def snapshot(self, note: Note) -> list[Any]:
        """Return the state for `restore`; `note` is called with each packet in it."""
        state = self.state
        following = state.following
        at_start = following and not state.start  # part of the form of states; `restore` does not need it
        marks = [[end, note(packet), time_ns] for end, packet, time_ns in state.marks]
        search = [self._lost_from, self._reason, self._consider_from, self._expected]
        unreported = [
            [fault.kind, fault.message, note(fault.packet), fault.time_ns, fault.offset, fault.length]
            for fault in self._unreported or ()
        ]
        octets = [bytes(state.octets), marks, note(state.packet), state.time_ns]
        more = [self.begin, self.snapped] if self.begin or self.snapped else []
        losses = [self._losses, self._followed_from] if self._losses or more else []
        return [following, at_start, *octets, *search, unreported, self.head, *losses, *more]

    def restore(self, fields: Fields, end: int) -> None:
        """Go on from a snapshot, `end` octets behind the first one of the direction."""
        state = self.state
        following, _, octets = fields.flag(), fields.flag(), fields.octets()
        start = at = state.start = end - len(octets)
        if start < 0:
            raise damaged("there are more octets than have come")
        for mark_end, *brought in _marks(fields.items(), start, end):
            state.append(octets[at - start : mark_end - start], *brought)
            at = mark_end
        state.packet, state.time_ns = fields.packet(), fields.time()
        self._lost_from, self._reason = fields.number(0, end), fields.text()
        self._consider_from = fields.number(0, end)
        # No frame that one waits for is larger than frames may be.
        self._expected = fields.perhaps(0 if following else start, end + self._owner.reading.frame_max)
        unreported = [_fault(fault, self._owner.connection, self._direction) for fault in fields.items()]
        self._unreported = unreported or None
        self.head = fields.octets()
        self._losses, self._followed_from = fields.later(0, _LOSSES + 1), fields.later(0, end)
        self.begin, self.snapped = fields.later(0, end), fields.later(0, end)
        fields.end()
        if not end and (following or self._expected != 0 or self._unreported or self.head):
            raise damaged("there is something before the first octet")
        if following:
            self.follow(start)

    def _lose_track(self, error: DecodeError) -> Fault:
        """Search for the next frame, since not even the end of this one can be trusted."""
        start, following = self.state.start, self._end_of_frame()
        brought = self.state.brought_by(start + 1)
        # Where its size leads beyond what is there, it may be the size that is damaged.
        self._search_inside(following if following is not None and following <= self.state.end else None)
        return self._error(error, start, *brought)

    def _error(
        self, error: DecodeError, start: int, packet: int | None, time_ns: int | None, octets: bytes = b""
    ) -> Fault:
        """The fault of octets that cannot be decoded: of a frame, or of what begins at an offset."""
        place = ".".join(filter(None, (error.method, error.field)))
        message = f"{place}: {error.message}" if place else error.message
        connection, size = self._owner.connection, len(octets)
        code = error.reply_code
        return Fault(
            "error", message, connection, self._direction, packet, time_ns, start, size, code, octets
        )

    def _opened(self) -> CapturedFrame:
        """Take the protocol header; made a frame here, since a decoder refuses versions it does not speak."""
        owner, size = self._owner, dialects.HEADER_SIZE
        octets, begin = bytes(self.state.octets[:size]), self.begin
        packet, time_ns = self.state.brought_by(begin + size)
        foreign = dialects.is_foreign_header(octets)
        if self._direction == CLIENT_TO_SERVER and not foreign:
            foreign = not owner.note_header(octets)
        self.head = b""
        if foreign:
            owner.recognised = True
            self._search_behind(begin + size, dialects.foreign(octets), begin + size)
        else:
            self.follow(begin + size)
        frame = Frame(PROTOCOL_HEADER, 0, ProtocolHeader(octets))
        return CapturedFrame(
            owner.connection, self._direction, packet, time_ns, begin, size, octets, frame, owner.dialect
        )

    def _search_behind(self, offset: int, reason: str, expected: int | None) -> None:
        """Give up following; octets from `offset` on are lost until a frame is found."""
        self.state.following = False
        self._owner.lose_track()
        self.state.pass_to(offset)
        self._lost_from = self._consider_from = offset
        self._reason = reason
        self._expected = expected

    def _search_inside(self, expected: int | None) -> None:
        """Search behind the first octet of what should be a frame and cannot be one."""
        soon = self.state.start - self._followed_from < RUN_OCTETS
        self._losses = min(self._losses, _LOSSES) + 1 if soon else 1
        self._search_behind(self.state.start, "octets that cannot be decoded", expected)
        self._consider_from += 1

    @property
    def _doubtful(self) -> bool:
        return self._losses > _LOSSES

    def _trusted_place(self, final: bool) -> int | None:
        """Offset of the next frame that can be trusted; None if it is not there yet.

        Octets that cannot be part of it are dropped on the way.
        """
        buffer, start, end = self.state.octets, self.state.start, self.state.end
        if start == end:
            return None
        if start == 0 and self._direction == CLIENT_TO_SERVER:
            proxy = self._proxy_header()
            if proxy is not None and not final:
                return None
            buffer, start = self.state.octets, self.state.start
            if start == end:
                return None
        if start == self._expected == self.begin:
            header = self._protocol_header(final)
            if header is not Verdict.NO:
                return start if header is Verdict.YES else None
        test = self._owner.frame_test()
        if self._expected is not None:
            verdict = Verdict.MORE
            if self._expected < end:
                judge = test.judge_run if self._doubtful else test.judge
                verdict = judge(buffer, self._expected - start, final)
            elif self._expected == end and final:
                verdict = Verdict.NO
            if verdict is not Verdict.NO:
                return self._expected if verdict is Verdict.YES else None
        self._expected = None
        verdict, index = test.find(buffer, max(0, self._consider_from - start), final, self._doubtful)
        if verdict is Verdict.YES:
            return start + index
        self.state.pass_to(start + index)
        return None

    def _proxy_header(self) -> ProxyHeader | None:
        """Pass over what a proxy says before the first octet; returns its beginning if it is not whole."""
        found = proxy_header(bytes(self.state.octets[:MOST_OCTETS]))
        if found is None or not found.size:
            return found
        self.begin = self._lost_from = self._consider_from = self._expected = found.size
        self._owner.connection.proxied = found.ends
        self.state.pass_to(found.size)
        self.head = bytes(self.state.octets[:_KEPT_HEAD])
        return None

    def _why_lost(self) -> str:
        """Return why octets were lost that a search has passed over."""
        if self._lost_from != self.begin or self._reason != _MIDWAY:
            return self._reason
        guess = dialects.foreign(self.head)
        if guess:
            return f"not AMQP: {guess}"
        return NO_FRAME if self._owner.connection.opened else self._reason

    def _protocol_header(self, final: bool) -> Verdict:
        """Return whether the stream is that of an AMQP connection seen from its very beginning."""
        octets = bytes(self.state.octets[: dialects.HEADER_SIZE])
        if not octets.startswith(dialects.HEADER_PREFIX):
            # A header may come in chunks. No frame begins with its first letter, so no frame is held up.
            if dialects.HEADER_PREFIX.startswith(octets) and not final:
                return Verdict.MORE
            return Verdict.YES if self._owner.header_seen else Verdict.NO
        return Verdict.YES if len(octets) == dialects.HEADER_SIZE else Verdict.MORE

    def _break_off(self, reason: str) -> Iterator[Item]:
        """The octets at hand will not be continued: emit what they hold, and report what is left over."""
        state = self.state
        yield from self.advance(final=True)
        while state.following and state.start < state.end:
            expected = self._end_of_frame()
            if expected is not None or state.end - state.start < OVERHEAD:
                yield from self._report("lost", reason, state.start, state.end - state.start)
                self._search_behind(state.end, reason, expected)
                return
            # A size that nobody would agree on: the frame is damaged, and there may be others behind it.
            self._search_inside(None)
            yield from self.advance(final=True)
        if not state.following and state.end > self._lost_from:
            yield from self._report("lost", self._why_lost(), self._lost_from, state.end - self._lost_from)
            self._lost_from = state.end

    def _end_of_frame(self) -> int | None:
        """Offset behind the frame that comes next, if its head can be believed."""
        octets = self.state.octets
        # The size is asked for, of a frame of any type.
        status, size = frame_at(octets, 0, len(octets), 0, 0, opens=False)
        if status == MORE or size > self._owner.trusted_size:
            return None
        return self.state.start + size

    def _report(self, kind: FaultKind, message: str, offset: int, length: int) -> Iterator[Fault]:
        """Report a fault; at once, or when it turns out that the connection is AMQP."""
        if not length:
            return
        fault = Fault(
            kind,
            message,
            self._owner.connection,
            self._direction,
            self.state.packet,
            self.state.time_ns,
            offset,
            length,
        )
        yield from self._pass(fault)

    def _pass(self, fault: Fault) -> Iterator[Fault]:
        if self._owner.recognised:
            yield from self._report_waiting()
            yield fault
        elif self._unreported is None:
            self._unreported = [fault]
        elif len(self._unreported) < _MAX_UNREPORTED:
            self._unreported.append(fault)

    def _report_waiting(self) -> Iterator[Fault]:
        unreported, self._unreported = self._unreported, None
        yield from unreported or ()


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
    offset, length = state.number(), state.number(1)
    state.end()
    return Fault(kind, message, connection, direction, packet, time_ns, offset, length)
