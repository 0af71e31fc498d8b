"""From a capture file to the events of its connections, by the scanner."""

from .consumer_c cimport EventConsumer
from .scanner_c cimport Scanner

from .container import MAX_RECORD
from .position import FilePosition
from .source import ByteSource

__all__ = ["read_events"]


def read_events(sources, tracker, *, max_record_bytes=MAX_RECORD):
    """The ordered octets of every connection in a recording that a tracker selects.

    Args:
        sources: a pcap or pcapng file, at its start; or the files of one recording, one after the other.
            Connections go on from file to file. Each file is taken once the one before it is read.
        tracker: new, and of the build in use.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Data`, `Gap` and `Close` of the directions, and `Fault` of kind ``"file"``, in the order of the file.
        Packets of connections are counted over all files, those of faults in their own.

    Raises:
        CaptureError: a file is not a capture, or is damaged before its first packet.
        OSError: a file cannot be read.
    """
    cdef EventConsumer consumer = EventConsumer()
    cdef Scanner scanner
    cdef long long before = 0
    cdef bint more
    for source in (sources,) if isinstance(sources, ByteSource) else sources:
        position = FilePosition.start(source)
        scanner = Scanner(source, tracker, consumer, max_record_bytes, position, before)
        more = True
        while more:
            more = scanner.step()
            yield from consumer.take()
        scanner.save_position()
        yield from position.segments.faults()
        before += position.number
    yield from tracker.finish()
