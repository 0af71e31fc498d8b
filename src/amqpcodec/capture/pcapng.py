"""The pcapng container (draft-ietf-opsawg-pcapng): sections of blocks, packets of several interfaces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .model import CaptureError, Fault, Packet
from .pcap import ANOTHER, is_another, why_large
from .source import Octets

SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _STATISTICS, _ENHANCED_PACKET = 1, 2, 3, 5, 6
_END_OF_OPTIONS, _DROPPED, _TIME_RESOLUTION, _TIME_OFFSET, _DROPPED_BY_SYSTEM = 0, 5, 9, 14, 7
_NS = 1_000_000_000
_LAST_NS = 1 << 62  # in the year 2116
_MOST_DROPPED = 1 << 40
MAX_INTERFACES = 65536  # of a section, so that a file of nothing else does not fill the memory
_BLOCK_HEAD = 8  # octets of its type and length
BLOCK_OVERHEAD = 4096  # room for the fields and options of a block beside its packet


@dataclass(slots=True)
class Interface:
    """An interface description block: link type, snap length, and the unit of its times.

    `dropped` is how many packets of it the recorder has dropped, as statistics blocks have said so far.
    """

    linktype: int
    snap_length: int
    units_per_second: int = 1_000_000
    offset_seconds: int = 0
    dropped: int = 0

    def time_ns(self, high: int, low: int) -> int | None:
        """Nanoseconds since 1970 of a timestamp in this interface's unit; None beyond 2**62."""
        time_ns = (high << 32 | low) * _NS // self.units_per_second + self.offset_seconds * _NS
        return time_ns if -_LAST_NS < time_ns < _LAST_NS else None


class PcapngReader:
    """Packets of a pcapng file, one at a time, over all its sections and interfaces.

    Args:
        source: at the start of the file.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Attributes:
        order: byte order of the present section.
        interfaces: those described in it so far; another list for each section.
        number: packets read so far.
        ended: whether there is nothing more to read.
        end: a block that goes on after this octet of the file is left; None to leave none.
    """

    def __init__(self, source: Octets, max_record_bytes: int) -> None:
        self._source = source
        self.max_record_bytes = max_record_bytes
        self.order = "<"
        self.interfaces: list[Interface] = []
        self.number = 0
        self.ended = False
        self.end: int | None = None

    def read(self) -> Packet | Fault | None:
        """The next packet, or a `Fault` of kind ``"file"``; None at the end, or at a block that is left.

        A block whose length is repeated wrongly behind it, a packet of an interface never described, an
        interface beyond the first 65,536 of its section, and a block too short for its kind are faults; the
        block is skipped.

        Raises:
            CaptureError: a block length or a byte-order mark that cannot be.
        """
        found = None
        while found is None and not self.ended and self._is_wanted():
            found = self._read_block()
        return found

    def _is_wanted(self) -> bool:
        """Return whether the next block ends by `end`. A length that cannot be is wanted: it is a fault."""
        if self.end is None:
            return True
        room = self.end - self._source.offset
        if room < _BLOCK_HEAD:
            return False
        head = self._source.peek(_BLOCK_HEAD + 4)
        if len(head) < _BLOCK_HEAD + 4:
            return True
        order = _ORDERS.get(head[_BLOCK_HEAD:], self.order) if head[:4] == SECTION_HEADER else self.order
        total = struct.unpack_from(order + "I", head, 4)[0]
        return bool(total <= room) or not self._is_possible(total)

    def _is_possible(self, total: int) -> bool:
        return total >= 12 and total % 4 == 0 and total <= self.max_record_bytes + BLOCK_OVERHEAD

    def _read_block(self) -> Packet | Fault | None:
        """One block; None if it is of no interest, or none is left."""
        start = self._source.offset
        head = self._source.read(8)
        if len(head) < 8:
            self.ended = True
            if not head and not self._source.fault:
                return None
            return self._fault(self._source.fault or "the last block is cut off", start, len(head))
        if head[:4] == SECTION_HEADER:
            self._begin_section()
            kind = 0
        else:
            kind = struct.unpack_from(self.order + "I", head)[0]
        body, problem = self._body(head, start)
        if body is None:
            self.ended = True
            return self._fault(problem, start, self._source.offset - start)
        if problem:
            return self._fault(problem, start, len(body) + 12)
        try:
            if kind == _STATISTICS:
                return self._statistics(body, start)
            return self._block(kind, body)
        except (struct.error, _BlockError) as error:
            return self._fault(f"block of type {kind} is unusable: {error}", start, len(body) + 12)

    def _begin_section(self) -> None:
        magic = self._source.peek(4)
        if len(magic) == 4 and magic not in _ORDERS:
            raise CaptureError("pcapng section with an unknown byte-order mark", self._source.offset)
        self.order = _ORDERS.get(magic, self.order)
        self.interfaces = []

    def _body(self, head: bytes, start: int) -> tuple[bytes | None, str]:
        """The octets between a block's two lengths, and what is wrong; None when nothing can follow."""
        total = struct.unpack_from(self.order + "I", head, 4)[0]
        if is_another(head):
            raise CaptureError(ANOTHER, start)
        if total < 12 or total % 4:
            raise CaptureError(f"pcapng block of {total} octets, which no block can have", start)
        if total > self.max_record_bytes + BLOCK_OVERHEAD:
            message = f"pcapng block of {total} octets, more than the limit"
            raise CaptureError(message + why_large(total), start)
        body = self._source.read(total - 12)
        tail = self._source.read(4)
        if len(tail) < 4:
            return None, self._source.fault or "the last block is cut off"
        if struct.unpack(self.order + "I", tail)[0] != total:
            return body, "the block's length is repeated wrongly behind it"
        return body, ""

    def _block(self, kind: int, body: bytes) -> Packet | None:
        if kind == _ENHANCED_PACKET:
            which, high, low, captured, original = struct.unpack_from(self.order + "IIIII", body)
            return self._packet(which, high, low, captured, original, body[20:])
        if kind == _OLD_PACKET:
            which, _, high, low, captured, original = struct.unpack_from(self.order + "HHIIII", body)
            return self._packet(which, high, low, captured, original, body[20:])
        if kind == _SIMPLE_PACKET:
            return self._simple_packet(body)
        if kind == _INTERFACE:
            if len(self.interfaces) >= MAX_INTERFACES:
                raise _BlockError(f"more than {MAX_INTERFACES} interfaces in a section")
            self.interfaces.append(_interface(self.order, body))
        return None

    def _statistics(self, body: bytes, start: int) -> Fault | None:
        """Counters of the recorder, which go on from block to block; a fault if it has dropped more."""
        which = struct.unpack_from(self.order + "I", body)[0]
        if which >= len(self.interfaces):
            raise _BlockError(f"interface {which} was not described")
        interface = self.interfaces[which]
        dropped = 0
        for code, value in _options(self.order, body, 12):
            if code in (_DROPPED, _DROPPED_BY_SYSTEM) and len(value) == 8:
                dropped += min(struct.unpack(self.order + "Q", value)[0], _MOST_DROPPED)
        more = dropped - interface.dropped
        if more <= 0:
            return None
        interface.dropped = dropped
        packets = "packet" if more == 1 else "packets"
        message = f"the recorder has dropped {more} {packets} of interface {which}"
        return self._fault(message, start, len(body) + 12)._replace(dropped=more)

    def _packet(self, which: int, high: int, low: int, captured: int, original: int, data: bytes) -> Packet:
        # Counted before anything can fail, so that later packets have the numbers of other tools.
        self.number += 1
        if which >= len(self.interfaces):
            raise _BlockError(f"interface {which} was not described")
        if captured > len(data):
            raise _BlockError(f"packet of {captured} octets in a block that has {len(data)}")
        interface = self.interfaces[which]
        time_ns = interface.time_ns(high, low)
        return Packet(self.number, time_ns, interface.linktype, data[:captured], max(original, captured))

    def _simple_packet(self, body: bytes) -> Packet:
        self.number += 1
        if not self.interfaces:
            raise _BlockError("no interface was described")
        original = struct.unpack_from(self.order + "I", body)[0]
        interface = self.interfaces[0]
        captured = min(original, interface.snap_length or original)
        if captured > len(body) - 4:
            raise _BlockError(f"packet of {captured} octets in a block that has {len(body) - 4}")
        return Packet(self.number, None, interface.linktype, body[4 : 4 + captured], original)

    def _fault(self, message: str, offset: int, length: int) -> Fault:
        return Fault("file", message, packet=self.number or None, offset=offset, length=length)


class _BlockError(Exception):
    """A block whose contents do not fit; the blocks behind it can still be read."""


def _interface(order: str, body: bytes) -> Interface:
    linktype, _, snap_length = struct.unpack_from(order + "HHI", body)
    interface = Interface(linktype, snap_length)
    for code, value in _options(order, body, 8):
        if code == _TIME_RESOLUTION and len(value) == 1:
            interface.units_per_second = _resolution(value[0])
        elif code == _TIME_OFFSET and len(value) == 8:
            interface.offset_seconds = struct.unpack(order + "q", value)[0]
    return interface


def _options(order: str, body: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """Options of a block, which begin at a position of its body, by their codes."""
    while position + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, position)
        if code == _END_OF_OPTIONS:
            break
        yield code, body[position + 4 : position + 4 + size]
        position += 4 + size + -size % 4


def _resolution(octet: int) -> int:
    """Units per second: the lower seven bits are an exponent, of 2 if the top bit is set, else of 10."""
    exponent = octet & 0x7F
    base = 2 if octet & 0x80 else 10
    return int(base**exponent)
