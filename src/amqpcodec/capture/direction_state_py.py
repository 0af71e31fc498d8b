"""Where a direction of a connection stands: the octets that belong to no frame so far. The pure build."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .envelopes import FrameReader
    from .model import CapturedFrame, Connection

__all__ = ["DirectionState"]

Mark = tuple[int, int | None, int | None]  # of octets: the offset behind them, their packet and its time


class DirectionState:
    """The octets of a direction that belong to no frame so far, and the packets that brought them.

    Attributes:
        following: whether a frame begins at `start`; otherwise one is searched for.
        start: offset of the first of these octets.
        octets: the octets; an index into them is one into the stream less `start`.
        packet: number of the packet that came last, None if it has none.
        time_ns: its time.
    """

    __slots__ = ("_marks", "following", "octets", "packet", "start", "time_ns")

    def __init__(self) -> None:
        self.following = False
        self.start = 0
        self.octets = bytearray()
        self.packet: int | None = None
        self.time_ns: int | None = None
        self._marks: deque[Mark] = deque()

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
        if self._marks and self._marks[-1][1:] == (packet, time_ns):
            self._marks.pop()  # one for all that a packet, or a stream without packets, has brought
        self._marks.append((self.end, packet, time_ns))

    def pass_to(self, offset: int) -> None:
        """Forget the octets before an offset; none of them need have come."""
        if offset < self.start:
            raise ValueError(f"offset {offset} lies before {self.start}, where the octets begin")
        del self.octets[: offset - self.start]
        self.start = offset
        while self._marks and self._marks[0][0] <= offset:
            self._marks.popleft()

    def frames(self, reader: FrameReader, connection: Connection, direction: int) -> Sequence[CapturedFrame]:
        """The whole frames that come next, if they are followed: a fast path, which here always declines.

        It ends before a frame that is in error, negotiates, or is none; `DirectionDecoder.next` takes that.

        Args:
            reader: that of the connection.
            connection: the connection.
            direction: which direction of it this is.
        """
        return ()

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
