"""From a capture file to the events of its connections, by the walker."""

from .consumer_c cimport EventConsumer
from .walker_c cimport Walker

from .container import MAX_RECORD

__all__ = ["read_events"]


def read_events(source, tracker, *, max_record_bytes=MAX_RECORD):
    """The ordered octets of every connection in a capture that a tracker is interested in, see events_py."""
    cdef EventConsumer consumer = EventConsumer()
    cdef Walker walker = Walker(source, tracker, consumer, max_record_bytes)
    cdef bint more = True
    while more:
        more = walker.step()
        yield from consumer.take()
