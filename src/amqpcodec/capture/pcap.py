"""The classic pcap container (draft-ietf-opsawg-pcap): a file header, then one record a packet."""

from __future__ import annotations

import struct

from .model import CaptureError, Fault, Packet
from .source import Octets

# Magic number as it stands in the file -> (byte order, nanoseconds of one unit of the fraction).
MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
HEADER_SIZE, RECORD_SIZE = 24, 16
_LINKTYPE_MASK = 0xFFFF  # the bits above say, among others, whether packets end in a check sequence
NS = 1_000_000_000


class PcapReader:
    """Packets of a pcap file, one at a time.

    Args:
        source: at the start of the file, or behind its header.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.
        header: the file header, if it was read before.

    Attributes:
        order: byte order of the file, ``"<"`` or ``">"``.
        unit: nanoseconds of one unit of a fraction of a second.
        record: layout of what is before a packet: seconds, fraction, octets captured, octets that there were.
        linktype: LINKTYPE number of every packet.
        number: packets read so far.
        ended: whether there is nothing more to read.
        end: a record that goes on after this octet of the file is left; None to leave none.

    Raises:
        CaptureError: file header cut off.
    """

    def __init__(self, source: Octets, max_record_bytes: int, header: bytes = b"") -> None:
        self._source = source
        self.max_record_bytes = max_record_bytes
        header = header or source.read(HEADER_SIZE)
        if len(header) < HEADER_SIZE:
            raise CaptureError("pcap file header is cut off", source.offset)
        self.order, self.unit = MAGICS[header[:4]]
        self.linktype = struct.unpack_from(self.order + "I", header, 20)[0] & _LINKTYPE_MASK
        self.record = struct.Struct(self.order + "IIII")
        self.number = 0
        self.ended = False
        self.end: int | None = None

    def read(self) -> Packet | Fault | None:
        """The next packet; at the end a `Fault` of kind ``"file"`` if the last record is cut off; then None.

        None, too, where the next record goes on after `end`.

        Raises:
            CaptureError: a record length that cannot be.
        """
        if self.ended or not self._is_wanted():
            return None
        start = self._source.offset
        head = self._source.read(RECORD_SIZE)
        if len(head) == RECORD_SIZE:
            seconds, fraction, captured, original = self.record.unpack(head)
            if captured > self.max_record_bytes:
                message = f"record of {captured} octets, more than the limit of {self.max_record_bytes}"
                raise CaptureError(message, start)
            data = self._source.read(captured)
            if len(data) == captured:
                self.number += 1
                time_ns = seconds * NS + fraction * self.unit
                return Packet(self.number, time_ns, self.linktype, data, max(original, captured))
            head += data
        self.ended = True
        if not head and not self._source.fault:
            return None
        reason = self._source.fault or "the last record is cut off"
        return Fault("file", reason, packet=self.number or None, offset=start, length=len(head))

    def _is_wanted(self) -> bool:
        """Return whether the next record ends by `end`. A length that cannot be is wanted: it is a fault."""
        if self.end is None:
            return True
        room = self.end - self._source.offset - RECORD_SIZE
        if room < 0:
            return False
        head = self._source.peek(RECORD_SIZE)
        captured = self.record.unpack(head)[2] if len(head) == RECORD_SIZE else 0
        return captured > self.max_record_bytes or bool(captured <= room)
