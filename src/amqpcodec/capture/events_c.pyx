"""From a capture file to the events of its connections, by the walker."""

from .consumer_c cimport CountingConsumer, EventConsumer
from .walker_c cimport Walker

from .container import MAX_RECORD

__all__ = ["read_events"]


def read_events(source, tracker, *, max_record=MAX_RECORD):
    """The ordered octets of every connection in a capture that a tracker is interested in, see events_py."""
    cdef EventConsumer consumer = EventConsumer()
    cdef Walker walker = Walker(source, tracker, consumer, max_record)
    cdef bint more = True
    while more:
        more = walker.step()
        yield from consumer.take()


def count_octets(source, tracker, *, max_record=MAX_RECORD):
    """Walk through a capture and only count: for measuring what the walker itself costs.

    Returns:
        the octets and segments that took the short way, the octets and events that came by the exact one.
    """
    cdef CountingConsumer consumer = CountingConsumer()
    cdef Walker walker = Walker(source, tracker, consumer, max_record)
    while walker.step():
        pass
    return consumer.quick_octets, consumer.quick_segments, consumer.event_octets, consumer.events
