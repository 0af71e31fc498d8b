"""One direction of a TCP connection: segments in any order -> octets in the order they were sent.

Positions are counted without wrapping, from the first octet of the direction. What arrives ahead of its
turn waits in a window of bounded octets and segments; where two copies of an octet differ, the first one
recorded counts.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

SEQUENCE_MODULUS = 1 << 32
_HALF = 1 << 31
# How much must have arrived behind octets that the receiver has acknowledged before they count as not
# recorded. Recorders with several queues do swap packets, but hardly by this much.
_LATE_SEGMENTS, _LATE_OCTETS, _LATE_NS = 1024, 2 * 1024 * 1024, 1_000_000_000
# The same before the first octet of a connection joined midway, where nothing may ever come.
_LATE_LEADING_SEGMENTS = 4


class Piece(NamedTuple):
    """A run of octets; `octets` is None where it is missing, and `packet` 0 where none marks the place."""

    position: int
    length: int
    octets: bytes | None
    packet: int
    time_ns: int | None

    @property
    def end(self) -> int:
        """Position behind the last octet."""
        return self.position + self.length


class Reassembler:
    """Puts the segments of one direction in order.

    Args:
        window_octets: how far ahead of the next octet expected a segment may lie, and how many octets
            may wait, before what is missing is given up.
        window_segments: how many segments may wait.

    `add`, `acknowledge`, `jump`, `give_up` and `flush` give the pieces that are now in order; a piece
    without octets is a gap.
    """

    __slots__ = (
        "_acknowledged",
        "_base",
        "_early_ack",
        "_fin",
        "_leading",
        "_next",
        "_waiting",
        "_window_octets",
        "_window_segments",
        "finished",
        "isn",
        "waiting_octets",
    )

    def __init__(self, window_octets: int, window_segments: int) -> None:
        self._window_octets = window_octets
        self._window_segments = window_segments
        self._waiting: list[Piece] = []
        self.waiting_octets = 0
        self._base: int | None = None  # sequence number of position 0
        self._next = 0  # position of the next octet to give out
        self._leading = False  # nothing seen yet, and octets may be missing before the first one waiting
        self._acknowledged: int | None = None  # position, once the base is known
        self._early_ack: int | None = None  # sequence number, before it is known
        self._fin: int | None = None
        self.isn: int | None = None
        self.finished = False

    @property
    def position(self) -> int:
        """Octets given out so far, gaps included."""
        return self._next

    @property
    def ending(self) -> bool:
        """Whether the sender's FIN was seen."""
        return self._fin is not None

    @property
    def complete(self) -> bool:
        """Whether everything up to the sender's FIN was given out."""
        return self._fin is not None and self._next >= self._fin

    def open(self, isn: int) -> bool:
        """Take note of a SYN; False if its number cannot belong to this stream."""
        if self.isn is not None:
            return self.isn == isn
        first = (isn + 1) % SEQUENCE_MODULUS
        if self._base is None:
            self._base = first
        elif self._base != first:
            return False
        self.isn = isn
        return True

    def fits(self, seq: int) -> bool:
        """Whether a sequence number lies within the window, or nothing is known yet."""
        return self._base is None or abs(self.distance(seq)) <= self._window_octets

    def distance(self, seq: int) -> int:
        """Octets from the next one expected to a sequence number; negative for what was given out."""
        return self._position(seq) - self._next

    def add(self, seq: int, data: bytes, length: int, packet: int, time_ns: int | None) -> list[Piece]:
        """Take a segment of `length` octets on the wire, of which `data` were recorded."""
        if self.finished or not length:
            return []
        if self._base is None:
            if length == 1 and self._early_ack == (seq + 1) % SEQUENCE_MODULUS:
                return []  # a keep-alive, as below
            self._begin(seq)
        position = self._position(seq)
        if length == 1 and position == self._next - 1:
            return []  # a keep-alive repeats the last octet, and need not repeat it truly
        recorded = len(data)
        if recorded:
            self._store(Piece(position, recorded, data, packet, time_ns))
        if recorded < length:
            self._store(Piece(position + recorded, length - recorded, None, packet, time_ns))
        return self._drain(time_ns)

    def acknowledge(self, ack: int, time_ns: int | None) -> list[Piece]:
        """Take note of what the receiver says it has."""
        if self._base is None:
            self._early_ack = ack
            return []
        position = self._position(ack)
        if self._acknowledged is None or position > self._acknowledged:
            self._acknowledged = position
        return self._drain(time_ns) if self._waiting else []

    def finish_at(self, seq: int) -> None:
        """Take note of a FIN that stands behind the octet before `seq`."""
        if self._base is None:
            self._base = seq
        self._fin = max(self._position(seq), self._next)

    def jump(self, seq: int) -> list[Piece]:
        """Give up everything before a sequence number ahead of the window."""
        pieces = self.give_up()
        hole = self._position(seq) - self._next
        pieces.append(Piece(self._next, hole, None, 0, None))
        self._next += hole
        return pieces

    def give_up(self) -> list[Piece]:
        """Give out everything that waits, with gaps where octets did not come."""
        pieces: list[Piece] = []
        while self._waiting:
            pieces += self._give_up_first_hole()
        return pieces

    def flush(self) -> list[Piece]:
        """Give out everything that waits, and a gap up to the FIN if one is due; nothing follows."""
        pieces = self.give_up()
        if self._fin is not None and self._next < self._fin <= self._next + self._window_octets:
            pieces.append(Piece(self._next, self._fin - self._next, None, 0, None))
            self._next = self._fin
        self.finished = True
        return pieces

    def _position(self, seq: int) -> int:
        """The position nearest to the next one expected that has this sequence number."""
        assert self._base is not None
        ahead = (seq - self._base - self._next) % SEQUENCE_MODULUS
        return self._next + (ahead if ahead < _HALF else ahead - SEQUENCE_MODULUS)

    def _begin(self, seq: int) -> None:
        """Join a stream whose SYN was not recorded. What its receiver acknowledged tells where it stands:
        octets between there and the first segment may only be recorded late."""
        self._base = seq
        if self._early_ack is not None:
            ahead = (seq - self._early_ack) % SEQUENCE_MODULUS
            if 0 < ahead <= self._window_octets:
                self._base = self._early_ack
                self._leading = True
            self._acknowledged = self._position(self._early_ack)

    def _store(self, piece: Piece) -> None:
        """Keep the parts of a piece that nothing kept or given out covers."""
        start, end = max(piece.position, self._next), piece.end
        index = bisect_left(self._waiting, start, key=lambda other: other.end)
        while start < end:
            following = self._waiting[index] if index < len(self._waiting) else None
            stop = end if following is None else min(end, following.position)
            if start < stop:
                self._waiting.insert(index, _part(piece, start, stop))
                self.waiting_octets += stop - start
                index += 1
            if following is None:
                break
            start = max(start, following.end)
            index += 1

    def _drain(self, time_ns: int | None) -> list[Piece]:
        pieces = self._in_order()
        while self._waiting and (self._overfull() or self._late(time_ns)):
            pieces += self._give_up_first_hole()
        return pieces

    def _in_order(self) -> list[Piece]:
        waiting = self._waiting
        count = 0
        while count < len(waiting) and waiting[count].position == self._next:
            self._next = waiting[count].end
            self.waiting_octets -= waiting[count].length
            count += 1
        if not count:
            return []
        self._leading = False
        pieces = waiting[:count]
        del waiting[:count]
        return pieces

    def _overfull(self) -> bool:
        if len(self._waiting) > self._window_segments or self.waiting_octets > self._window_octets:
            return True
        return self._waiting[-1].end - self._next > self._window_octets

    def _late(self, time_ns: int | None) -> bool:
        """Whether the first hole was acknowledged by the receiver and recording has long moved on."""
        first = self._waiting[0]
        if self._acknowledged is None or self._acknowledged < first.position:
            return False
        enough = _LATE_LEADING_SEGMENTS if self._leading else _LATE_SEGMENTS
        if len(self._waiting) >= enough or self.waiting_octets >= _LATE_OCTETS:
            return True
        return time_ns is not None and first.time_ns is not None and time_ns - first.time_ns > _LATE_NS

    def _give_up_first_hole(self) -> list[Piece]:
        first = self._waiting[0]
        hole = first.position - self._next
        pieces: list[Piece] = []
        if self._leading:
            self._rebase(hole)
        elif hole:
            pieces.append(Piece(self._next, hole, None, first.packet, first.time_ns))
            self._next = first.position
        return pieces + self._in_order()

    def _rebase(self, hole: int) -> None:
        """Count from the first octet there is: what came before it was never part of the recording."""
        assert self._base is not None
        self._base = (self._base + hole) % SEQUENCE_MODULUS
        self._waiting = [piece._replace(position=piece.position - hole) for piece in self._waiting]
        if self._acknowledged is not None:
            self._acknowledged -= hole
        if self._fin is not None:
            self._fin -= hole
        self._leading = False


def _part(piece: Piece, start: int, stop: int) -> Piece:
    if start == piece.position and stop == piece.end:
        return piece
    octets = piece.octets
    if octets is not None:
        octets = octets[start - piece.position : stop - piece.position]
    return Piece(start, stop - start, octets, piece.packet, piece.time_ns)
