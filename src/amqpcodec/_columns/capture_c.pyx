"""From a capture file to a column sink: octets in order go from the scanner to the feeder where they lie.

The twin of capture_py.py.
"""

from ..capture.consumer_c cimport TAKEN, OctetConsumer
from ..capture.streams_c cimport StreamTracker
from ..capture.scanner_c cimport Scanner
from .feeder_c cimport Direction, Feeder

from ..capture.container import MAX_RECORD


cdef class FeederConsumer(OctetConsumer):
    """Gives all that a scanner finds to a feeder."""

    cdef Feeder _feeder

    def __cinit__(self, Feeder feeder not None):
        self._feeder = feeder

    cdef void *lane(self, object connection, int direction) except? NULL:
        cdef Direction side = self._feeder.direction(connection, direction)
        return <void *>side  # the feeder keeps it until it is closed

    cdef int octets(
        self,
        void *lane,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        self._feeder.octets(<Direction>lane, octets, size, packet, time_ns)
        return TAKEN

    cdef int event(self, object event) except -1:
        self._feeder.feed(event)
        return 0


cdef OctetConsumer _consumer(object feeder):
    """Who takes what a scanner finds for a feeder: itself, if it can."""
    return feeder if isinstance(feeder, OctetConsumer) else FeederConsumer(feeder)


def feed_capture(source, feeder, **options):
    """Read a capture and feed all that is in it; see `capture_py.feed_capture`."""
    cdef Scanner scanner = Scanner(source, StreamTracker(**options), _consumer(feeder), MAX_RECORD)
    while scanner.step():
        yield


def feed_part(source, feeder, tracker, place, before, end):
    """Read a part of a recording and feed all that is in it; see `capture_py.feed_part`."""
    cdef Scanner scanner
    if not place.ended:
        scanner = Scanner(source, tracker, _consumer(feeder), MAX_RECORD, place, before, end)
        while scanner.step():
            yield
        scanner.save_position()
    if end is None:
        for fault in place.segments.faults():
            feeder.feed(fault)
        yield
