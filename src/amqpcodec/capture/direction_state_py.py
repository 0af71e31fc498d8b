"""Where a direction of a connection stands: the octets that belong to no frame so far. The pure build."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from amqpcodec._kernel.wire import BODY, METHOD, OVERHEAD

from ..errors import DecodeError
from .model import CapturedFrame

if TYPE_CHECKING:
    from .envelopes import FrameReader
    from .model import Connection

__all__ = ["DirectionState"]

_HEAD_SIZE = 9  # of a frame with the class of a method
_MOST_AT_ONCE = 256
_head_at = Struct("!BHIH").unpack_from
_new = tuple.__new__  # which costs half of what a call of the class does

Mark = tuple[int, int | None, int | None]  # of octets: the offset behind them, their packet and its time
# Of every direction that has none. An empty deque takes more room than all else of a direction together.
_NO_MARKS: deque[Mark] = deque(maxlen=0)


class DirectionState:
    """The octets of a direction that belong to no frame so far, and the packets that brought them.

    Attributes:
        following: whether a frame begins at `start`; otherwise one is searched for.
        start: offset of the first of these octets.
        octets: the octets; an index into them is one into the stream less `start`.
        packet: number of the packet that came last, None if it has none.
        time_ns: its time.
    """

    __slots__ = ("_at_once", "_marks", "following", "octets", "packet", "start", "time_ns")

    def __init__(self) -> None:
        self.following = False
        self.start = 0
        self.octets = bytearray()
        self.packet: int | None = None
        self.time_ns: int | None = None
        self._marks = _NO_MARKS
        self._at_once = _MOST_AT_ONCE  # frames that are decoded in one go

    @property
    def end(self) -> int:
        """Offset behind all octets that have come."""
        return self.start + len(self.octets)

    @property
    def marks(self) -> list[Mark]:
        """Which packet brought the octets before which offset, in order."""
        return list(self._marks)

    def append(self, octets: bytes, packet: int | None, time_ns: int | None) -> None:
        """Take the octets that come next."""
        self.packet, self.time_ns = packet, time_ns
        if not octets:
            return
        self.octets += octets
        mark = self.end, packet, time_ns
        if not self._marks:
            self._marks = deque((mark,))
            return
        if self._marks[-1][1:] == (packet, time_ns):
            self._marks.pop()  # one for all that a packet, or a stream without packets, has brought
        self._marks.append(mark)

    def pass_to(self, offset: int) -> None:
        """Forget the octets before an offset; none of them need have come."""
        if offset < self.start:
            raise ValueError(f"offset {offset} lies before {self.start}, where the octets begin")
        del self.octets[: offset - self.start]
        self.start = offset
        while self._marks and self._marks[0][0] <= offset:
            self._marks.popleft()
        if not self._marks:
            self._marks = _NO_MARKS

    def frames(self, reader: FrameReader, connection: Connection, direction: int) -> Sequence[CapturedFrame]:
        """The whole frames that come next, if they are followed: a fast path, which may decline.

        It ends before a frame that is in error, negotiates, or is none; `DirectionDecoder.next` takes that.

        Args:
            reader: that of the connection.
            connection: the connection.
            direction: which direction of it this is.
        """
        found: list[CapturedFrame] = []
        if self.following and reader.common is not None:
            while self._add_frames(found, reader.common, connection, direction):
                self._at_once = min(2 * self._at_once, _MOST_AT_ONCE)
        return found

    def _add_frames(
        self, found: list[CapturedFrame], common: tuple[Any, ...], connection: Connection, direction: int
    ) -> bool:
        """Add some of `frames` in one go; return whether there may be more."""
        decoder, dialect, _, size_limit, negotiating = common
        most = self._at_once
        ends = _common_frames(self.octets, most, size_limit, negotiating)
        if not ends:
            return False
        data = bytes(memoryview(self.octets)[: ends[-1]])
        start, at, (mark_end, packet, time_ns) = self.start, 0, self._marks[0]
        try:
            for end, frame in zip(ends, decoder.feed(data), strict=False):
                if start + end > mark_end:
                    self.pass_to(start + at)
                    mark_end = self._marks[0][0]
                    packet, time_ns = self.brought_by(start + end)
                octets, size = data[at:end], end - at - OVERHEAD
                row = connection, direction, packet, time_ns, start + at, size, octets, frame, dialect
                found.append(_new(CapturedFrame, row))
                at = end
        except DecodeError:
            decoder.reset()
            self._at_once = 1  # there may be more of them, each of which would be looked for again and again
        except BaseException:
            decoder.reset()
            raise
        self.pass_to(start + at)
        return at == ends[-1] and len(ends) == most

    def brought_by(self, end: int) -> tuple[int | None, int | None]:
        """Packet and time of the latest packet among those that brought the octets from `start` to `end`."""
        if not self._marks:
            return self.packet, self.time_ns
        _, latest, time_ns = self._marks[0]
        for mark_end, packet, packet_time in self._marks:
            if packet is not None and latest is not None and packet > latest:
                latest, time_ns = packet, packet_time
            if mark_end >= end:
                break
        return latest, time_ns


def _common_frames(octets: bytearray, most: int, size_limit: int, negotiating: int) -> list[int]:
    """Return where whole frames end that octets begin with: methods that do not negotiate, headers, bodies.

    There are at most so many. Whether a frame ends as it should is for the decoder.
    """
    ends: list[int] = []
    at, last = 0, len(octets)
    while at + _HEAD_SIZE <= last and len(ends) < most:
        kind, _, size, class_id = _head_at(octets, at)
        if not METHOD <= kind <= BODY or (kind == METHOD and class_id == negotiating) or size > size_limit:
            break
        at += size + OVERHEAD
        if at > last:
            break
        ends.append(at)
    return ends
