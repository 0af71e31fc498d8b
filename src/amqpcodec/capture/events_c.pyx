"""From a capture file to the events of its connections, by the scanner."""

from .consumer_c cimport EventConsumer
from .scanner_c cimport Scanner

from .container import MAX_RECORD

__all__ = ["read_events"]


def read_events(source, tracker, *, max_record_bytes=MAX_RECORD):
    """The ordered octets of every connection in a capture that a tracker selects, see events_py."""
    cdef EventConsumer consumer = EventConsumer()
    cdef Scanner scanner = Scanner(source, tracker, consumer, max_record_bytes)
    cdef bint more = True
    while more:
        more = scanner.step()
        yield from consumer.take()
