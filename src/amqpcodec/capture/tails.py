"""When the last packet of a capture came, from the end of the file: captures that follow each other are
distinguished from captures made side by side without reading either."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from struct import Struct
from typing import BinaryIO

from .container import MAX_RECORD, container, packet_reader
from .model import CaptureError, Packet
from .pcap import HEADER_SIZE, NS, RECORD_SIZE, PcapReader
from .pcapng import PcapngReader
from .source import ByteSource

TAIL = 1 << 20  # octets at the end that are looked at
_SHORTER = (1 << 14, 1 << 17)  # that are looked at before: mostly they do, and there may be very many files
_LEAST_RECORDS = 16  # in a row there: nothing but records looks so
_MOST_CAPTURED = 1 << 18  # of a packet: the greatest snap length in use
_DAY, _YEARS = 86400, 10 * 365 * 86400


def last_time(file: BinaryIO, size: int) -> int | None:
    """Return nanoseconds of the last packet in a capture that is not compressed; None if it is not found.

    Args:
        file: the file, seekable, at its start.
        size: its octets.
    """
    source = ByteSource(file)
    try:
        reader = packet_reader(container(source), source, MAX_RECORD)
        if isinstance(reader, PcapReader):
            return _last_record(file, size, reader)
        return _last_block(file, size, reader)
    except CaptureError:
        return None


def _last_record(file: BinaryIO, size: int, reader: PcapReader) -> int | None:
    """Of pcap: nothing says where a record begins, so the first chain of them that holds is followed."""
    first = _at(file, HEADER_SIZE, RECORD_SIZE)
    if len(first) < RECORD_SIZE:
        return None
    earliest = reader.record.unpack(first)[0]
    for tail in (*_SHORTER, TAIL):
        begin = max(HEADER_SIZE, size - tail)
        octets = _at(file, begin, size - begin)
        for start in range(1) if begin == HEADER_SIZE else _starts(octets, reader):
            times = _chain(octets, start, earliest, reader)
            if len(times) >= (1 if tail == TAIL else _LEAST_RECORDS):
                return times[-1]
    return None


def _starts(octets: bytes, reader: PcapReader) -> Iterator[int]:
    """Yield where a record may begin: the highest octet of how much was captured is zero."""
    high = 8 if reader.order == ">" else 11
    zero = octets.find(b"\0", high)
    while high <= zero < _MOST_CAPTURED + high:
        yield zero - high
        zero = octets.find(b"\0", zero + 1)


def _chain(octets: bytes, at: int, earliest: int, reader: PcapReader) -> list[int]:
    """Return the times of the records from one octet on to the end; none if anything else is there."""
    times = []
    while at + reader.record_size <= len(octets):
        seconds, fraction, captured, original = reader.record.unpack_from(octets, at)
        if (
            not captured <= original
            or captured > _MOST_CAPTURED
            or fraction * reader.unit >= NS
            or not earliest - _DAY <= seconds < earliest + _YEARS
        ):
            return []
        times.append(seconds * NS + fraction * reader.unit)
        at += reader.record_size + captured
    return times


def _last_block(file: BinaryIO, size: int, reader: PcapngReader) -> int | None:
    """Of pcapng: each block ends in its length, so they are followed backwards.

    Raises:
        CaptureError: a block that cannot be.
    """
    while (found := reader.read()) is not None and not isinstance(found, Packet):
        pass  # all interfaces are described in front of the first packet
    begin = max(0, size - TAIL)
    octets = _at(file, begin, size - begin)
    length = Struct(reader.order + "I")
    end = len(octets)
    while end >= length.size:
        start = end - length.unpack_from(octets, end - length.size)[0]
        if not 0 <= start < end:
            return None
        source = ByteSource(BytesIO(octets[start:end]))
        block = PcapngReader(source, MAX_RECORD)
        block.order, block.interfaces = reader.order, reader.interfaces
        found = block.read()
        if (found is not None and block.ended) or start + source.offset != end:
            return None
        if isinstance(found, Packet) and found.time_ns is not None:
            return found.time_ns
        end = start
    return None


def _at(file: BinaryIO, at: int, size: int) -> bytes:
    """Octets of a file; fewer where it ends."""
    file.seek(at)
    octets = b""
    while len(octets) < size and (more := file.read(size - len(octets))):
        octets += more
    return octets
