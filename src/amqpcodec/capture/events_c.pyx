"""From a capture file to the events of its connections, by the scanner."""

from .consumer_c cimport EventConsumer
from .scanner_c cimport Scanner

from .container import MAX_RECORD

__all__ = ["read_events"]


def read_events(source, tracker, *, max_record_bytes=MAX_RECORD):
    """The ordered octets of every connection in a capture that a tracker selects.

    Args:
        source: a pcap or pcapng file, at its start.
        tracker: new, and of the build in use.
        max_record_bytes: octets of one packet beyond which the file is taken to be damaged.

    Yields:
        `Data`, `Gap` and `Close` of the directions, and `Fault` of kind ``"file"``, in the order of the file.

    Raises:
        CaptureError: the file is not a capture, or is damaged before its first packet.
        OSError: the file cannot be read.
    """
    cdef EventConsumer consumer = EventConsumer()
    cdef Scanner scanner = Scanner(source, tracker, consumer, max_record_bytes)
    cdef bint more = True
    while more:
        more = scanner.step()
        yield from consumer.take()
