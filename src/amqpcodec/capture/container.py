"""From a file to its packets, whichever container it is."""

from __future__ import annotations

from collections.abc import Iterator

from . import pcap, pcapng
from .model import CaptureError, Fault, Packet
from .source import ByteSource

MAX_RECORD = 64 * 1024 * 1024  # far above any link layer's packet, far below what a damaged length can say


def read_packets(source: ByteSource, *, max_record: int = MAX_RECORD) -> Iterator[Packet | Fault]:
    """Packets of a pcap or pcapng file, in file order; memory in use is bounded by one packet.

    Args:
        source: placed at the start of the file.
        max_record: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Packet`, and `Fault` of kind ``"file"`` for what could not be read.

    Raises:
        CaptureError: the file is neither container, or is damaged before its first packet. Damage that
            forbids reading on later ends the packets with a fault instead.
    """
    magic = source.peek(4)
    if magic in pcap.MAGICS:
        packets = pcap.read_pcap(source, max_record)
    elif magic == pcapng.SECTION_HEADER:
        packets = pcapng.read_pcapng(source, max_record)
    else:
        raise CaptureError(_complaint(source, magic), 0)
    number = 0
    try:
        for packet in packets:
            yield packet
            if isinstance(packet, Packet):
                number = packet.number
    except CaptureError as error:
        if not number:
            raise
        message = f"{error.message}; nothing behind it can be read"
        yield Fault("file", message, packet=number, offset=error.offset)


def _complaint(source: ByteSource, magic: bytes) -> str:
    if source.fault:
        return source.fault
    if not magic:
        return "the file is empty" if not source.compressed else "the gzip file holds nothing"
    what = f"neither pcap nor pcapng: it begins with {magic.hex(' ')}"
    if magic in (b"AMQP", b"\x01\x00\x00\x00"):
        return what + "; a stream of AMQP octets is read with --raw (read_raw_frames)"
    return what
