"""From a file to its packets, for every container."""

from __future__ import annotations

from collections.abc import Iterator

from .model import CaptureError, Fault, Packet
from .pcap import LARGEST_RECORD, MAGICS, PcapReader
from .pcapng import SECTION_HEADER, PcapngReader
from .source import ByteSource, Octets

Reader = PcapReader | PcapngReader
MAX_RECORD = LARGEST_RECORD
# What other files begin with, what they are, and how they are read.
_OTHERS = (
    (b"BZh", "compressed with bzip2: bzip2 -dc FILE | amqpcodec decode -"),
    (b"\xfd7zXZ\0", "compressed with xz: xz -dc FILE | amqpcodec decode -"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: lz4 -dc FILE | amqpcodec decode -"),
    (b"PK\3\4", "a zip archive: unzip -p FILE | amqpcodec decode -"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: 7z x -so FILE | amqpcodec decode -"),
)
_FIRST_PACKETS = 16  # faults that may come before the first packet with a time


def read_packets(source: ByteSource, *, max_record_bytes: int = MAX_RECORD) -> Iterator[Packet | Fault]:
    """Packets of a pcap or pcapng file, in file order; memory in use is bounded by one packet.

    Args:
        source: at the start of the file.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Packet`, and `Fault` of kind ``"file"`` for what could not be read.

    Raises:
        CaptureError: the file is neither container, or is damaged before its first packet. Later
            damage that ends reading is a fault instead.
    """
    return packets(source, max_record_bytes=max_record_bytes)


def packets(
    source: ByteSource,
    reader: Reader | None = None,
    *,
    max_record_bytes: int = MAX_RECORD,
    last_read: int = 0,
    end: int | None = None,
) -> Iterator[Packet | Fault]:
    """Yield what a reader finds. Damage that ends reading is the last fault, and ends the reader.

    Args:
        source: a capture file.
        reader: reads from it; None where it is at its start.
        max_record_bytes: as for `read_packets`, without a reader.
        last_read: number of the last packet that was read before; 0 for none.
        end: only records that end by this octet are read; None for all.

    Raises:
        CaptureError: as for `read_packets`.
    """
    if reader is None:
        reader = packet_reader(container(source), source, max_record_bytes)
    reader.end = end
    while True:
        try:
            found = reader.read()
        except CaptureError as error:
            yield damage(error, last_read)
            reader.ended = True
            return
        if found is None:
            return
        yield found
        if isinstance(found, Packet):
            last_read = found.number


def first_time(source: ByteSource) -> int | None:
    """Return when the first packet of a capture came, in nanoseconds; None if that is not known."""
    try:
        for _, found in zip(range(_FIRST_PACKETS), packets(source), strict=False):
            if isinstance(found, Packet) and found.time_ns is not None:
                return found.time_ns
    except CaptureError:
        pass  # reported when the file is read
    return None


def container(source: ByteSource) -> bytes:
    """The magic number of a file, which identifies its container.

    Raises:
        CaptureError: the file is no capture.
    """
    magic = source.peek(4)
    if magic in MAGICS or magic == SECTION_HEADER:
        return magic
    raise CaptureError(_complaint(source, magic), 0)


def packet_reader(magic: bytes, source: Octets, max_record_bytes: int) -> Reader:
    """Return the reader of a container, at its start.

    Raises:
        CaptureError: it is damaged before its first packet.
    """
    return (PcapngReader if magic == SECTION_HEADER else PcapReader)(source, max_record_bytes)


def damage(error: CaptureError, number: int) -> Fault:
    """Return the fault for damage that ends reading behind packet `number`.

    Raises:
        CaptureError: the error itself, if there was no packet.
    """
    if not number:
        raise error
    message = f"{error.message}; nothing behind it can be read"
    return Fault("file", message, packet=number, offset=error.offset)


def _complaint(source: ByteSource, magic: bytes) -> str:
    if source.fault:
        return source.fault
    if not magic:
        form = source.compression
        return f"the {form} file holds nothing" if form else "the file is empty"
    head = source.peek(6)
    for begin, what in _OTHERS:
        if head.startswith(begin):
            return f"the file is {what}"
    what = f"neither pcap nor pcapng: it begins with {magic.hex(' ')}"
    if magic in (b"AMQP", b"\x01\x00\x00\x00"):
        return what + "; a stream of AMQP octets is read with --input stream (read_raw_frames)"
    return what
