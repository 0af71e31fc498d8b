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
    b"\xa1\xb2\xcd\x34": (">", 1000),
    b"\x34\xcd\xb2\xa1": ("<", 1000),
}
# Of a patched libpcap of old: what is before a packet goes on with its interface and protocol.
_PATCHED = (b"\xa1\xb2\xcd\x34", b"\x34\xcd\xb2\xa1")
HEADER_SIZE, RECORD_SIZE, _PATCHED_SIZE = 24, 16, 24
_VERSIONS = (b"\0\2\0\4", b"\2\0\4\0")  # of all pcap files, in either byte order
_SECTION, _SECTION_ORDERS = b"\x0a\x0d\x0d\x0a", (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a")
ANOTHER = "another capture begins here, as where cat has put files together; mergecap joins captures"
LARGEST_RECORD = (
    64 * 1024 * 1024
)  # far above any link layer's packet, far below what a damaged length can say
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
        record_size: octets before a packet, of which those are the first.
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
        self.record_size = _PATCHED_SIZE if header[:4] in _PATCHED else RECORD_SIZE
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
        head = self._source.read(self.record_size)
        if len(head) == self.record_size:
            seconds, fraction, captured, original = self.record.unpack_from(head)
            if is_another(head):
                raise CaptureError(ANOTHER, start)
            if captured > self.max_record_bytes:
                message = f"record of {captured} octets, more than the limit of {self.max_record_bytes}"
                raise CaptureError(message + why_large(captured), start)
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
        room = self.end - self._source.offset - self.record_size
        if room < 0:
            return False
        head = self._source.peek(self.record_size)
        captured = self.record.unpack_from(head)[2] if len(head) == self.record_size else 0
        return captured > self.max_record_bytes or bool(captured <= room)


def is_another(head: bytes) -> bool:
    """Return whether the header of a capture begins where a record or block should."""
    if head[:4] == _SECTION:
        return head[8:12] in _SECTION_ORDERS
    return head[:4] in MAGICS and head[4:8] in _VERSIONS


def why_large(size: int) -> str:
    """Return why a record has a length that none has, as the end of a sentence."""
    return ": the file is damaged here" if size > LARGEST_RECORD else ""
