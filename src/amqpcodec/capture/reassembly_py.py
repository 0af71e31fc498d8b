"""One direction of a TCP connection: segments in any order -> octets in the order they were sent.

One text for both builds: reassembly_c is this file, compiled.

Positions count octets without wrapping, from the first octet of the direction. A segment that arrives early
waits in a window, which bounds octets and segments. Where two copies of an octet differ, the first one
recorded counts.
"""

from __future__ import annotations

from .._state import Fields, Note, damaged
from .._typing import Any
from .model import Endpoint, Segment

_SEQUENCE_MASK = 0xFFFFFFFF
_HALF = 1 << 31
_UNKNOWN = -(1 << 62)  # below every position
# How much must have arrived behind acknowledged octets before these count as not recorded. Recorders
# with several queues do swap packets, but hardly by this much.
_LATE_SEGMENTS, _LATE_OCTETS, _LATE_NS = 1024, 2 * 1024 * 1024, 1_000_000_000
# The same before the first octet of a connection joined midway, where nothing may ever come.
_LATE_LEADING_SEGMENTS = 4
_CHUNK_OVERHEAD = 200  # bytes of memory of a chunk beside its octets, about
# What waits in a direction that is in order, as most are: one list for all, which is never changed.
_NOTHING: list[Chunk] = []


class Chunk:
    """A run of octets. `octets` is None if they are missing, `packet` is 0 if no packet shows where.

    `snapped` is whether that packet had them, and the recorder cut them off.
    """

    __slots__ = ("length", "octets", "packet", "position", "snapped", "time_ns")

    def __init__(
        self,
        position: int,
        length: int,
        octets: bytes | None,
        packet: int,
        time_ns: int | None,
        snapped: bool = False,
    ) -> None:
        self.snapped = snapped
        self.position = position
        self.length = length
        self.octets = octets
        self.packet = packet
        self.time_ns = time_ns

    def part(self, start: int, stop: int) -> Chunk:
        """The part of it between two positions."""
        if start == self.position and stop == self.position + self.length:
            return self
        octets = self.octets
        if octets is not None:
            octets = octets[start - self.position : stop - self.position]
        return Chunk(start, stop - start, octets, self.packet, self.time_ns, self.snapped)


class Reassembler:
    """Puts the segments of one direction in order.

    Args:
        out_of_order_bytes: how far ahead of the next expected octet a segment may lie, and how many octets
            may wait, before missing octets become a gap.
        out_of_order_segments: how many segments may wait.

    `add`, `acknowledge`, `jump`, `skip_holes` and `flush` return the chunks that are now in order; a chunk
    without octets is a gap. `stray` is a segment far away, or the first one of all, which the tracker keeps
    until the next segment decides about it.
    """

    __slots__ = (
        "_acknowledged",
        "_base",
        "_before",
        "_early_ack",
        "_fin",
        "_isn",
        "_leading",
        "_next",
        "_out_of_order_bytes",
        "_out_of_order_segments",
        "_unheard",
        "_waiting",
        "ending",
        "finished",
        "stray",
        "waiting_octets",
    )

    def __init__(self, out_of_order_bytes: int, out_of_order_segments: int) -> None:
        self._out_of_order_bytes = out_of_order_bytes
        self._out_of_order_segments = out_of_order_segments
        self._waiting = _NOTHING
        self.waiting_octets = 0
        self._base = -1  # sequence number of position 0, once it is known
        self._next = 0  # position of the next octet to emit
        self._leading = False  # nothing seen yet, and octets may be missing before the first one waiting
        self._acknowledged = _UNKNOWN  # position, once the base is known
        self._early_ack = -1  # sequence number, before it is known
        self._unheard = 0  # octets acknowledged until then
        self._isn = -1
        self._fin = _UNKNOWN
        self._before = 0  # of a stream joined midway: where the octets begin that came too late to be in it
        self.ending = False  # the sender's FIN was seen
        self.finished = False  # no more segments are accepted
        self.stray: Segment | None = None

    @property
    def position(self) -> int:
        """Octets emitted so far, gaps included."""
        return self._next

    @property
    def opened(self) -> bool:
        """Return whether the SYN was seen."""
        return self._isn >= 0

    @property
    def begun(self) -> bool:
        """Return whether the place of any octet is known."""
        return self._base >= 0

    @property
    def complete(self) -> bool:
        """Return whether everything up to the sender's FIN was emitted."""
        return self.ending and self._next >= self._fin

    def kept(self) -> int:
        """Approximate bytes of memory of everything that waits."""
        stray = 0 if self.stray is None else len(self.stray.data) + _CHUNK_OVERHEAD
        return self.waiting_octets + len(self._waiting) * _CHUNK_OVERHEAD + stray

    def open(self, isn: int) -> bool:
        """Record a SYN; False if its number cannot belong to this stream."""
        if self._isn >= 0:
            return self._isn == isn
        first = (isn + 1) & _SEQUENCE_MASK
        if self._base < 0:
            self._base = first
        elif self._base != first:
            return False
        self._isn = isn
        return True

    def fits(self, seq: int) -> bool:
        """Return whether a sequence number lies within the window, or nothing is known yet."""
        if self._base < 0:
            return True
        # `distance`, without two calls: this is asked twice for every segment.
        ahead = ((seq - self._base - self._next + _HALF) & _SEQUENCE_MASK) - _HALF
        return -self._out_of_order_bytes <= ahead <= self._out_of_order_bytes

    def expects(self, seq: int) -> bool:
        """Return whether a sequence number is near what is known of the direction, if anything is."""
        if self._base >= 0:
            return self.fits(seq)
        known = self._early_ack if self.stray is None else self.stray.seq
        if known < 0:
            return True
        ahead = ((seq - known + _HALF) & _SEQUENCE_MASK) - _HALF
        return -self._out_of_order_bytes <= ahead <= self._out_of_order_bytes

    def continues(self, seq: int) -> bool:
        """Return whether a sequence number is the next one expected, or that of a keep-alive."""
        return self._base >= 0 and -1 <= self.distance(seq) <= 0

    def precedes(self, seq: int, length: int) -> bool:
        """Return whether octets end where `stray` begins."""
        return self.stray is not None and not (self.stray.seq - seq - length) & _SEQUENCE_MASK

    def distance(self, seq: int) -> int:
        """Octets from the next one expected to a sequence number; negative for what was emitted."""
        return self._position(seq) - self._next

    def position_of(self, seq: int, length: int) -> int | None:
        """The position of a segment's first octet; None while it is not known, or far outside the window."""
        ahead = self.distance(seq)
        if self._base < 0 or self._leading or ahead > self._out_of_order_bytes:
            return None
        return self._next + ahead if ahead + length >= -self._out_of_order_bytes else None

    def take_before(self, seq: int, recorded: int) -> tuple[int, int]:
        """Return position and number of the octets of a segment that lie before the first one of a stream
        joined midway, each of them once: they came too late to be in it."""
        if self._base < 0 or self._isn >= 0 or self._leading:
            return 0, 0
        position = self._position(seq)
        length = min(position + recorded, self._before) - position
        if length <= 0:
            return 0, 0
        self._before = position
        return position, length

    def add(self, seq: int, data: bytes, length: int, packet: int, time_ns: int | None) -> list[Chunk]:
        """Add a segment of `length` octets on the wire, of which `data` were recorded."""
        if self.finished or not length:
            return []
        if self._base < 0:
            if length == 1 and self._early_ack == (seq + 1) & _SEQUENCE_MASK:
                return []  # a keep-alive, as below
            self._begin(seq)
        position = self._position(seq)
        if length == 1 and position == self._next - 1:
            return []  # a keep-alive repeats the last octet, and may repeat it wrongly
        recorded = len(data)
        if position == self._next and recorded == length and self._waiting is _NOTHING:
            # As nearly all come; what follows would store it and take it out again.
            self._next += length
            self._leading = False
            return [Chunk(position, length, data, packet, time_ns)]
        if recorded:
            self._store(Chunk(position, recorded, data, packet, time_ns))
        if recorded < length:
            self._store(Chunk(position + recorded, length - recorded, None, packet, time_ns, True))
        return self._drain(time_ns)

    def acknowledge(self, ack: int, time_ns: int | None) -> list[Chunk]:
        """Record what the receiver has acknowledged."""
        if self._base < 0:
            if self._early_ack >= 0:
                self._unheard += ((ack - self._early_ack + _HALF) & _SEQUENCE_MASK) - _HALF
            self._early_ack = ack
            return []
        self._acknowledged = max(self._acknowledged, self._position(ack))
        return self._drain(time_ns) if self._waiting else []

    def finish_at(self, seq: int) -> None:
        """Record a FIN behind the octet before `seq`."""
        if self._base < 0:
            self._base = seq & _SEQUENCE_MASK
        self.ending = True
        self._fin = max(self._position(seq), self._next)

    def jump(self, seq: int) -> list[Chunk]:
        """Skip to a sequence number ahead of the window, with a gap before it."""
        chunks = self.skip_holes()
        hole = self._position(seq) - self._next
        chunks.append(Chunk(self._next, hole, None, 0, None))
        self._next += hole
        return chunks

    def skip_holes(self) -> list[Chunk]:
        """Emit everything that waits, with gaps for octets that did not come."""
        chunks: list[Chunk] = []
        while self._waiting:
            chunks += self._skip_first_hole()
        return chunks

    def flush(self, peer_ending: bool) -> list[Chunk]:
        """Emit everything that waits, and a gap up to the FIN or what was acknowledged; nothing follows.

        Args:
            peer_ending: whether the receiver has sent a FIN. Then it has acknowledged one of the sender, too.
        """
        chunks = self.skip_holes()
        missing = self._missing_at_end(peer_ending)
        if missing > 0:
            chunks.append(Chunk(self._next, missing, None, 0, None))
            self._next += missing
        self.finished = True
        return chunks

    def state(self, note: Note) -> list[Any]:
        """The state that `restore` takes; calls `note` with each packet number in it."""
        stray = self.stray
        waiting = [
            [chunk.position, chunk.length, chunk.octets, note(chunk.packet), chunk.time_ns]
            for chunk in self._waiting
        ]
        numbers = [self._base, self._next, self._acknowledged, self._early_ack, self._isn, self._fin]
        kept = [] if stray is None else [note(stray.packet), *stray[1:2], *stray[4:]]
        flags = self._leading, self.ending, self.finished
        return [*numbers, *flags, waiting, kept, self._unheard]

    def restore(self, state: Fields, sender: Endpoint, receiver: Endpoint) -> None:
        """Continue from a state; the endpoints complete `stray`."""
        self._base, self._next = state.number(-1, _SEQUENCE_MASK), state.number(0)
        self._acknowledged = state.number(2 * _UNKNOWN)
        self._early_ack, self._isn = state.number(-1, _SEQUENCE_MASK), state.number(-1, _SEQUENCE_MASK)
        self._fin = state.number(2 * _UNKNOWN)
        self._leading, self.ending, self.finished = state.flag(), state.flag(), state.flag()
        end = self._next
        waiting: list[Chunk] = []
        for fields in state.items():
            chunk = Chunk(
                fields.number(end), fields.number(1), fields.octets_or_none(), fields.number(1), fields.time()
            )
            chunk.snapped = chunk.octets is None  # nothing else that is missing waits
            fields.end()
            if chunk.octets is not None and len(chunk.octets) != chunk.length:
                raise damaged("a chunk is not as long as it should be")
            waiting.append(chunk)
            self.waiting_octets += chunk.length
            end = chunk.position + chunk.length
        self._waiting = waiting or _NOTHING
        stray = state.list()
        if stray:
            self.stray = _segment(Fields(stray), sender, receiver)
        self._unheard = state.number()
        state.end()

    def _position(self, seq: int) -> int:
        """The position nearest to the next one expected that has this sequence number."""
        ahead = (seq - self._base - self._next) & _SEQUENCE_MASK
        return self._next + (ahead if ahead < _HALF else ahead - _SEQUENCE_MASK - 1)

    def _missing_at_end(self, peer_ending: bool) -> int:
        """Return how many octets are known to be missing behind the last one emitted."""
        if self.ending:
            missing = self._fin - self._next
            return missing if missing <= self._out_of_order_bytes else 0
        missing = self._unheard if self._base < 0 else self._acknowledged - self._next
        # A single one is no part of a frame, but the FIN, which counts as an octet.
        return missing - peer_ending if missing > 1 else 0

    def _begin(self, seq: int) -> None:
        """Join a stream whose SYN was not recorded. Its receiver's acknowledgement gives the position: octets
        between there and the first segment may only be recorded late."""
        self._base = seq & _SEQUENCE_MASK
        if self._early_ack >= 0:
            ahead = (seq - self._early_ack) & _SEQUENCE_MASK
            if 0 < ahead <= self._out_of_order_bytes:
                self._base = self._early_ack
                self._leading = True
            self._acknowledged = self._position(self._early_ack)

    def _store(self, chunk: Chunk) -> None:
        """Store the parts of a chunk that are neither stored nor emitted yet."""
        start, end = max(chunk.position, self._next), chunk.position + chunk.length
        index = self._first_ending_at(start)
        if self._waiting is _NOTHING:
            self._waiting = []
        while start < end:
            following = self._waiting[index] if index < len(self._waiting) else None
            stop = end if following is None else min(end, following.position)
            if start < stop:
                self._waiting.insert(index, chunk.part(start, stop))
                self.waiting_octets += stop - start
                index += 1
            if following is None:
                break
            start = max(start, following.position + following.length)
            index += 1

    def _first_ending_at(self, position: int) -> int:
        """Index of the first chunk waiting that ends at a position or behind it."""
        low, high = 0, len(self._waiting)
        while low < high:
            middle = (low + high) // 2
            chunk = self._waiting[middle]
            if chunk.position + chunk.length < position:
                low = middle + 1
            else:
                high = middle
        return low

    def _drain(self, time_ns: int | None) -> list[Chunk]:
        chunks = self._in_order()
        while self._waiting and (self._overfull() or self._late(time_ns)):
            chunks += self._skip_first_hole()
        return chunks

    def _in_order(self) -> list[Chunk]:
        count = 0
        for chunk in self._waiting:
            if chunk.position != self._next:
                break
            self._next += chunk.length
            self.waiting_octets -= chunk.length
            count += 1
        if not count:
            return []
        self._leading = False
        chunks = self._waiting[:count]
        del self._waiting[:count]
        if not self._waiting:
            self._waiting = _NOTHING
        return chunks

    def _overfull(self) -> bool:
        if len(self._waiting) > self._out_of_order_segments or self.waiting_octets > self._out_of_order_bytes:
            return True
        last = self._waiting[-1]
        return last.position + last.length - self._next > self._out_of_order_bytes

    def _late(self, time_ns: int | None) -> bool:
        """Return whether the receiver acknowledged the first hole long ago."""
        first = self._waiting[0]
        if self._acknowledged < first.position:
            return False
        enough = _LATE_LEADING_SEGMENTS if self._leading else _LATE_SEGMENTS
        if len(self._waiting) >= enough or self.waiting_octets >= _LATE_OCTETS:
            return True
        return time_ns is not None and first.time_ns is not None and time_ns - first.time_ns > _LATE_NS

    def _skip_first_hole(self) -> list[Chunk]:
        first = self._waiting[0]
        hole = first.position - self._next
        chunks: list[Chunk] = []
        if self._leading:
            self._rebase(hole)
        elif hole:
            chunks.append(Chunk(self._next, hole, None, first.packet, first.time_ns))
            self._next = first.position
        return chunks + self._in_order()

    def _rebase(self, hole: int) -> None:
        """Count from the first recorded octet: the octets before it are not part of the recording."""
        self._base = (self._base + hole) & _SEQUENCE_MASK
        for chunk in self._waiting:
            chunk.position -= hole
        self._acknowledged -= hole
        self._fin -= hole
        self._leading = False


def _segment(state: Fields, sender: Endpoint, receiver: Endpoint) -> Segment:
    """The segment in part of a state."""
    packet, time_ns = state.number(1), state.time()
    seq, ack, flags = state.number(0, _SEQUENCE_MASK), state.number(0, _SEQUENCE_MASK), state.number(0, 0xFF)
    data = state.octets()
    length = state.number(len(data))
    state.end()
    return Segment(packet, time_ns, sender, receiver, seq, ack, flags, data, length)
