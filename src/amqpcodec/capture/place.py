"""Where the reading of a capture file stands, so that it can go on from there, here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._state import Fields, damaged
from .container import MAX_RECORD, container, damage, packet_reader
from .model import CaptureError, Fault, Packet, Segment
from .network import SegmentReader
from .pcap import MAGICS, PcapReader
from .pcapng import SECTION_HEADER, Interface, PcapngReader
from .source import ByteSource, Octets

_HEAD = 24
_MOST_UNITS = 10**127  # of a second


class FilePlace:
    """A place between two records of a capture file, and what is known there.

    Args:
        head: the first octets of the file.

    Attributes:
        head: the same, to know the file again.
        offset: octets before the place.
        number: packets before it.
        given: the last of them that could be read.
        segments: reads their headers, and counts those that it cannot read.
        ended: whether nothing more can be read from the file.
    """

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.offset = 0
        self.number = 0
        self.given = 0
        self.segments = SegmentReader()
        self.ended = False
        self._order = "<"
        self._interfaces: list[Interface] = []

    @classmethod
    def start(cls, source: ByteSource) -> FilePlace:
        """The start of a capture file.

        Raises:
            CaptureError: it is none.
        """
        container(source)
        return cls(source.peek(_HEAD))

    def enter(self, source: ByteSource) -> None:
        """Go to this place in a file that is at its start.

        Raises:
            ValueError: it is another file, or has become shorter.
        """
        if source.peek(_HEAD) != self.head:
            raise ValueError("the file is not the one that was being read: it begins otherwise")
        source.skip(self.offset)

    def reader(self, source: Octets, max_record: int) -> PcapReader | PcapngReader:
        """A reader of packets for octets that go on here.

        Args:
            source: the octets.
            max_record: see `read_packets`.

        Raises:
            CaptureError: the file is damaged before its first packet.
        """
        if not self.offset:
            return packet_reader(self.head[:4], source, max_record)
        if self.head[:4] != SECTION_HEADER:
            pcap = PcapReader(source, max_record, self.head)
            pcap.number = self.number
            return pcap
        reader = PcapngReader(source, max_record)
        reader.order, reader.interfaces, reader.number = self._order, self._interfaces, self.number
        return reader

    def leave(self, reader: PcapReader | PcapngReader, offset: int) -> None:
        """Take down how far a reader has come."""
        self.offset, self.number = offset, reader.number
        self.ended = self.ended or reader.ended
        if isinstance(reader, PcapngReader):
            self._order, self._interfaces = reader.order, reader.interfaces

    def state(self) -> list[Any]:
        """What `restored` makes the same of."""
        interfaces = [
            [each.linktype, each.snap_length, each.units_per_second, each.offset_seconds]
            for each in self._interfaces
        ]
        place = [self.head, self.offset, self.number, self.given, self.ended, self._order, interfaces]
        return [*place, self.segments.state()]

    @classmethod
    def restored(cls, state: Fields) -> FilePlace:
        """The place that a state was made of."""
        place = cls(state.octets())
        if place.head[:4] not in (*MAGICS, SECTION_HEADER):
            raise damaged("it is of a file that is no capture")
        place.offset, place.number, place.given = state.number(0), state.number(0), state.number(0)
        place.ended, place._order = state.flag(), state.text()
        if place._order not in ("<", ">"):
            raise damaged("there is no such byte order")
        for fields in state.items():
            described = fields.number(0, 0xFFFF), fields.number(0, 0xFFFFFFFF)
            units, seconds = fields.number(1, _MOST_UNITS), fields.number(-(2**63), 2**63 - 1)
            place._interfaces.append(Interface(*described, units, seconds))
            fields.end()
        place.segments.restore(state.items())
        state.end()
        return place


def read_part(source: ByteSource, place: FilePlace, end: int | None) -> Iterator[Segment | Fault]:
    """The TCP segments from a place in a capture on; the place moves with them.

    Args:
        source: the file, at that place.
        place: it stands behind what was read once all was taken.
        end: the records are read that begin before this octet of the file; None for all.
    """
    if place.ended:
        return
    reader = place.reader(source, MAX_RECORD)
    while end is None or source.offset < end:
        try:
            found = reader.read()
        except CaptureError as error:
            yield damage(error, place.given)
            found = None
        if found is None:
            place.ended = True
            break
        if isinstance(found, Packet):
            place.given = found.number
            segment = place.segments.segment(found)
            if segment is not None:
                yield segment
        else:
            yield found
    place.leave(reader, source.offset)
