"""From a capture file to a column sink: octets in order go from the scanner to the feeder where they lie.

The twin of capture_py.py.
"""

from libc.stdint cimport int64_t

from ..capture.consumer_c cimport TAKEN, OctetConsumer
from ..capture.streams_c cimport StreamTracker
from ..capture.scanner_c cimport Scanner
from .exact_c cimport Flow
from .feeder_c cimport Feeder

from ..capture.container import MAX_RECORD
from ..capture.model import Close


cdef class _Side:
    """A direction of a connection."""

    cdef Flow flow
    cdef int direction


cdef class FeederConsumer(OctetConsumer):
    """Gives all that a scanner finds to a feeder."""

    cdef Feeder _feeder
    cdef dict _sides

    def __cinit__(self, Feeder feeder not None):
        self._feeder = feeder
        self._sides = {}

    cdef void *lane(self, object connection, int direction) except? NULL:
        cdef _Side side = self._sides.get((connection, direction))
        if side is None:
            side = self._sides[connection, direction] = _Side()
            side.flow = self._feeder.flow(connection)
            side.direction = direction
        return <void *>side

    cdef int octets(
        self,
        void *lane,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        return _feed(self._feeder, <_Side>lane, octets, size, packet, time_ns)

    cdef int event(self, object event) except -1:
        self._feeder.feed(event)
        if isinstance(event, Close):
            self._sides.pop((event.connection, event.direction), None)
        return 0


cdef OctetConsumer _consumer(object feeder):
    """Who takes what a scanner finds for a feeder: itself, if it can."""
    return feeder if isinstance(feeder, OctetConsumer) else FeederConsumer(feeder)


cdef inline int _feed(
    Feeder feeder, _Side side, const unsigned char *octets, Py_ssize_t size, int64_t packet, int64_t time_ns
) except -1 nogil:
    feeder.octets(side.flow, side.direction, octets, size, packet, time_ns)
    return TAKEN


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
