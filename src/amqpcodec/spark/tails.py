"""When the last packet of a capture came, from the end of the file: captures that follow each other are
distinguished from captures made side by side without reading either."""

from __future__ import annotations

import struct
from typing import BinaryIO

from ..capture import ByteSource, CaptureError, Packet
from ..capture.pcap import MAGICS
from ..capture.pcapng import SECTION_HEADER, PcapngReader

TAIL = 1 << 20  # octets at the end that are looked at
_MOST_CAPTURED = 1 << 18  # of a packet: the greatest snap length in use
_YEARS = 10 * 365 * 86400
_HEAD = 24
_NS = 1_000_000_000
_ENHANCED, _OLD = 6, 2


def last_time(file: BinaryIO, size: int) -> int | None:
    """Nanoseconds of the last packet in a capture that is not compressed; None if it is not found.

    Args:
        file: the file, seekable, at its start.
        size: its octets.
    """
    head = file.read(_HEAD)
    if head[:4] in MAGICS and len(head) == _HEAD:
        return _last_record(file, size, head)
    if head[:4] == SECTION_HEADER:
        return _last_block(file, size)
    return None


def _last_record(file: BinaryIO, size: int, head: bytes) -> int | None:
    """Of pcap: nothing says where a record begins, so the first chain of them that holds is followed."""
    order, unit = MAGICS[head[:4]]
    last: int | None
    record = struct.Struct(order + "IIII")
    begin = max(_HEAD, size - TAIL)
    earliest = struct.unpack(order + "I", _at(file, _HEAD, 4).ljust(4, b"\0"))[0]
    octets = _at(file, begin, size - begin)
    starts = range(1) if begin == _HEAD else range(min(len(octets), _MOST_CAPTURED))
    for start in starts:
        at, last = start, None
        while at + record.size <= len(octets):
            seconds, fraction, captured, original = record.unpack_from(octets, at)
            if (
                not captured <= original
                or captured > _MOST_CAPTURED
                or fraction * unit >= _NS
                or not earliest - 86400 <= seconds < earliest + _YEARS
            ):
                break
            last = seconds * _NS + fraction * unit
            at += record.size + captured
        else:
            if last is not None:
                return last
    return None


def _last_block(file: BinaryIO, size: int) -> int | None:
    """Of pcapng: each block ends in its length, so they are followed backwards."""
    file.seek(0)
    try:
        reader = PcapngReader(ByteSource(file), _MOST_CAPTURED)
        while (found := reader.read()) is not None and not isinstance(found, Packet):
            pass
    except CaptureError:
        return None
    begin = max(0, size - TAIL)
    octets = _at(file, begin, size - begin)
    numbers = struct.Struct(reader.order + "I")
    end = len(octets)
    while end >= 12:
        length = numbers.unpack_from(octets, end - 4)[0]
        start = end - length
        if length < 12 or start < 0 or numbers.unpack_from(octets, start + 4)[0] != length:
            return None
        kind = numbers.unpack_from(octets, start)[0]
        if kind in (_ENHANCED, _OLD) and length >= 32:
            form = "III" if kind == _ENHANCED else "HHII"
            which, *_, high, low = struct.unpack_from(reader.order + form, octets, start + 8)
            if which < len(reader.interfaces):
                time_ns: int | None = reader.interfaces[which].time_ns(high, low)
                return time_ns
        end = start
    return None


def _at(file: BinaryIO, at: int, size: int) -> bytes:
    """Octets of a file; fewer where it ends."""
    file.seek(at)
    octets = b""
    while len(octets) < size and (more := file.read(size - len(octets))):
        octets += more
    return octets
