"""The pcapng container (draft-ietf-opsawg-pcapng): sections of blocks, packets of several interfaces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .model import CaptureError, Fault, Packet
from .source import ByteSource

SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_END_OF_OPTIONS, _TIME_RESOLUTION, _TIME_OFFSET = 0, 9, 14
_NS = 1_000_000_000
_BLOCK_OVERHEAD = 4096  # room for the fields and options of a block beside its packet


@dataclass(slots=True)
class Interface:
    """What an interface description block says: link type, snap length, and the unit of its times."""

    linktype: int
    snap_length: int
    units_per_second: int = 1_000_000
    offset_seconds: int = 0

    def time_ns(self, high: int, low: int) -> int:
        """Nanoseconds since 1970 of a timestamp in this interface's unit."""
        return (high << 32 | low) * _NS // self.units_per_second + self.offset_seconds * _NS


def read_pcapng(source: ByteSource, max_record: int) -> Iterator[Packet | Fault]:
    """Packets of a pcapng file, over all its sections and interfaces.

    Arguments, results and errors are those of `read_pcap`. A block whose length is repeated wrongly
    behind it, a packet of an interface never described, and a block too short for its kind are faults;
    the block is passed over.
    """
    return _Reader(source, max_record).packets()


class _Reader:
    def __init__(self, source: ByteSource, max_record: int) -> None:
        self._source = source
        self._max_record = max_record
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._number = 0

    def packets(self) -> Iterator[Packet | Fault]:
        while True:
            start = self._source.offset
            head = self._source.read(8)
            if len(head) < 8:
                if head or self._source.fault:
                    yield self._fault(self._source.fault or "the last block is cut off", start, len(head))
                return
            if head[:4] == SECTION_HEADER:
                self._begin_section()
                kind = 0
            else:
                kind = struct.unpack_from(self._order + "I", head)[0]
            body, problem = self._body(head, start)
            if body is None:
                yield self._fault(problem, start, self._source.offset - start)
                return
            if problem:
                yield self._fault(problem, start, len(body) + 12)
                continue
            try:
                packet = self._block(kind, body)
            except (struct.error, _BlockError) as error:
                yield self._fault(f"block of type {kind} is unusable: {error}", start, len(body) + 12)
                continue
            if packet is not None:
                yield packet

    def _begin_section(self) -> None:
        magic = self._source.peek(4)
        if len(magic) == 4 and magic not in _ORDERS:
            raise CaptureError("pcapng section with an unknown byte-order mark", self._source.offset)
        self._order = _ORDERS.get(magic, self._order)
        self._interfaces = []

    def _body(self, head: bytes, start: int) -> tuple[bytes | None, str]:
        """The octets between a block's two lengths, and what is wrong; None when nothing can follow."""
        total = struct.unpack_from(self._order + "I", head, 4)[0]
        if total < 12 or total % 4:
            raise CaptureError(f"pcapng block of {total} octets, which no block can have", start)
        if total > self._max_record + _BLOCK_OVERHEAD:
            raise CaptureError(f"pcapng block of {total} octets, more than the limit", start)
        body = self._source.read(total - 12)
        tail = self._source.read(4)
        if len(tail) < 4:
            return None, self._source.fault or "the last block is cut off"
        if struct.unpack(self._order + "I", tail)[0] != total:
            return body, "the block's length is repeated wrongly behind it"
        return body, ""

    def _block(self, kind: int, body: bytes) -> Packet | None:
        if kind == _ENHANCED_PACKET:
            which, high, low, captured, original = struct.unpack_from(self._order + "IIIII", body)
            return self._packet(which, high, low, captured, original, body[20:])
        if kind == _OLD_PACKET:
            which, _, high, low, captured, original = struct.unpack_from(self._order + "HHIIII", body)
            return self._packet(which, high, low, captured, original, body[20:])
        if kind == _SIMPLE_PACKET:
            return self._simple_packet(body)
        if kind == _INTERFACE:
            self._interfaces.append(_interface(self._order, body))
        return None

    def _packet(self, which: int, high: int, low: int, captured: int, original: int, data: bytes) -> Packet:
        # Counted before anything can fail, so that later packets keep the numbers other tools show.
        self._number += 1
        if which >= len(self._interfaces):
            raise _BlockError(f"interface {which} was not described")
        if captured > len(data):
            raise _BlockError(f"packet of {captured} octets in a block that has {len(data)}")
        interface = self._interfaces[which]
        time_ns = interface.time_ns(high, low)
        return Packet(self._number, time_ns, interface.linktype, data[:captured], max(original, captured))

    def _simple_packet(self, body: bytes) -> Packet:
        self._number += 1
        if not self._interfaces:
            raise _BlockError("no interface was described")
        original = struct.unpack_from(self._order + "I", body)[0]
        interface = self._interfaces[0]
        captured = min(original, interface.snap_length or original)
        if captured > len(body) - 4:
            raise _BlockError(f"packet of {captured} octets in a block that has {len(body) - 4}")
        return Packet(self._number, None, interface.linktype, body[4 : 4 + captured], original)

    def _fault(self, message: str, offset: int, length: int) -> Fault:
        return Fault("file", message, packet=self._number or None, offset=offset, length=length)


class _BlockError(Exception):
    """A block whose contents do not fit; the blocks behind it can still be read."""


def _interface(order: str, body: bytes) -> Interface:
    linktype, _, snap_length = struct.unpack_from(order + "HHI", body)
    interface = Interface(linktype, snap_length)
    position = 8
    while position + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, position)
        value = body[position + 4 : position + 4 + size]
        if code == _END_OF_OPTIONS:
            break
        if code == _TIME_RESOLUTION and len(value) == 1:
            interface.units_per_second = _resolution(value[0])
        elif code == _TIME_OFFSET and len(value) == 8:
            interface.offset_seconds = struct.unpack(order + "q", value)[0]
        position += 4 + size + -size % 4
    return interface


def _resolution(octet: int) -> int:
    """Units per second: the lower seven bits are an exponent, of 2 if the top bit is set, else of 10."""
    exponent = octet & 0x7F
    base = 2 if octet & 0x80 else 10
    return int(base**exponent)
