"""The classic pcap container (draft-ietf-opsawg-pcap): a file header, then one record a packet."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .model import CaptureError, Fault, Packet
from .source import ByteSource

# Magic number as it stands in the file -> (byte order, nanoseconds of one unit of the fraction).
MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
_LINKTYPE_MASK = 0xFFFF  # the bits above tell, among others, whether packets end in a check sequence
_NS = 1_000_000_000


def read_pcap(source: ByteSource, max_record: int) -> Iterator[Packet | Fault]:
    """Packets of a pcap file.

    Args:
        source: placed at the start of the file.
        max_record: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        packets; at the end a `Fault` of kind ``"file"`` if the last record is cut off.

    Raises:
        CaptureError: file header cut off, or a record length that cannot be.
    """
    header = source.read(24)
    if len(header) < 24:
        raise CaptureError("pcap file header is cut off", source.offset)
    order, unit = MAGICS[header[:4]]
    linktype = struct.unpack_from(order + "I", header, 20)[0] & _LINKTYPE_MASK
    record = struct.Struct(order + "IIII")
    number = 0
    while True:
        start = source.offset
        head = source.read(16)
        if len(head) < 16:
            break
        seconds, fraction, captured, original = record.unpack(head)
        if captured > max_record:
            raise CaptureError(f"record of {captured} octets, more than the limit of {max_record}", start)
        data = source.read(captured)
        if len(data) < captured:
            head += data
            break
        number += 1
        time_ns = seconds * _NS + fraction * unit
        yield Packet(number, time_ns, linktype, data, max(original, captured))
    if head or source.fault:
        reason = source.fault or "the last record is cut off"
        yield Fault("file", reason, packet=number or None, offset=start, length=len(head))
