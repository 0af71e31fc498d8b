"""A position in a capture file from which reading can continue, here or in another process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._state import Fields, damaged
from .container import MAX_RECORD, Reader, container, packet_reader, packets
from .model import Fault, Packet, Segment
from .network import SegmentReader
from .pcap import HEADER_SIZE, MAGICS, PcapReader
from .pcapng import SECTION_HEADER, Interface, PcapngReader
from .source import ByteSource, Octets

_MOST_UNITS = 10**127  # of a second


class FilePosition:
    """A position between two records of a capture file, and the state of reading there.

    Args:
        head: the first bytes of the file.

    Attributes:
        head: the same, to recognise the file.
        offset: bytes before the position.
        number: packets before it.
        last_read: number of the last packet that could be read; 0 for none.
        segments: reads their headers, and counts those that it cannot read.
        ended: whether nothing more can be read from the file.
    """

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.offset = 0
        self.number = 0
        self.last_read = 0
        self.segments = SegmentReader()
        self.ended = False
        self._order = "<"
        self._interfaces: list[Interface] = []

    @classmethod
    def start(cls, source: ByteSource) -> FilePosition:
        """The start of a capture file.

        Raises:
            CaptureError: the file is no capture.
        """
        container(source)
        return cls(source.peek(HEADER_SIZE))

    def seek(self, source: ByteSource) -> None:
        """Move a source from the start of the file to this position.

        Raises:
            ValueError: it is another file, or has become shorter.
        """
        if source.peek(HEADER_SIZE) != self.head:
            raise ValueError("the file is not the one that was being read: it begins otherwise")
        source.skip(self.offset)

    def reader(self, source: Octets, max_record_bytes: int) -> Reader:
        """Return a reader of packets from this position on.

        Args:
            source: the file, at this position.
            max_record_bytes: see `read_packets`.

        Raises:
            CaptureError: the file is damaged before its first packet.
        """
        if not self.offset:
            return packet_reader(self.head[:4], source, max_record_bytes)
        if self.head[:4] != SECTION_HEADER:
            pcap = PcapReader(source, max_record_bytes, self.head)
            pcap.number = self.number
            return pcap
        pcapng = PcapngReader(source, max_record_bytes)
        pcapng.order, pcapng.interfaces, pcapng.number = self._order, self._interfaces, self.number
        return pcapng

    def update(self, reader: Reader, offset: int) -> None:
        """Move the position to where a reader has stopped."""
        self.offset, self.number = offset, reader.number
        self.ended = self.ended or reader.ended
        if isinstance(reader, PcapngReader):
            self._order, self._interfaces = reader.order, reader.interfaces

    def state(self) -> list[Any]:
        """The state that `restored` takes."""
        interfaces = [
            [each.linktype, each.snap_length, each.units_per_second, each.offset_seconds, each.dropped]
            for each in self._interfaces
        ]
        fields = [self.head, self.offset, self.number, self.last_read, self.ended, self._order, interfaces]
        kept = self.segments.kept()
        return [*fields, self.segments.state(), *([kept] if kept else ())]

    @classmethod
    def restored(cls, state: Fields) -> FilePosition:
        """The position that a state was made of."""
        position = cls(state.octets())
        if position.head[:4] not in (*MAGICS, SECTION_HEADER):
            raise damaged("it is of a file that is no capture")
        position.offset, position.number = state.number(0), state.number(0)
        position.last_read = state.number(0)
        position.ended, position._order = state.flag(), state.text()
        if position._order not in ("<", ">"):
            raise damaged("there is no such byte order")
        for fields in state.items():
            described = fields.number(0, 0xFFFF), fields.number(0, 0xFFFFFFFF)
            units, seconds = fields.number(1, _MOST_UNITS), fields.number(-(2**63), 2**63 - 1)
            position._interfaces.append(Interface(*described, units, seconds, fields.number(0)))
            fields.end()
        position.segments.restore(state.items())
        if state.is_next(list):
            position.segments.restore_kept(state.fields())
        state.end()
        return position


def read_part(
    source: ByteSource, position: FilePosition, end: int | None, max_record_bytes: int = MAX_RECORD
) -> Iterator[Segment | Fault]:
    """The TCP segments from a position in a capture on.

    Args:
        source: the file, at that position.
        position: moves behind the last record once the iterator is exhausted.
        end: only records that end by this octet of the file are read; None for all.
        max_record_bytes: see `read_packets`.
    """
    if position.ended:
        return
    reader = position.reader(source, max_record_bytes)
    for found in packets(source, reader, last_read=position.last_read, end=end):
        if isinstance(found, Packet):
            position.last_read = found.number
            segment = position.segments.segment(found)
            if segment is not None:
                yield segment
        else:
            yield found
    position.update(reader, source.offset)
