"""Receives the octets of connections in order, and everything else that the scanner finds.

`scanner_c.Scanner` calls an `OctetConsumer`. A consumer written in C derives from it and receives octets where
they lie, without the global interpreter lock.
"""

from .headers cimport Headers
from .streams_c cimport StreamTracker

from .model import Close, Data


cdef class OctetConsumer:
    """Receives what a scanner finds; the order of all calls is that of the recording.

    `state_of` returns the consumer's state of a direction, or NULL if its octets are to come as events only. It
    returns the same state for each call. The state is used until `event` has received the `Close` of that
    direction.

    `octets` receives the next octets of a direction: `offset` is their offset in its stream, `packet` and
    `time_ns` are those of their packet. They stay valid until `settle` has returned. It returns TAKEN, PAUSE
    or REFUSED.

    With `every_segment`, `segment` receives each segment of a direction in place of octets: its headers where
    they lie, and the offset of its payload in the stream, or NOWHERE. It returns TAKEN or PAUSE.

    With `locked`, both are called with the global lock: taking it for each would cost more than they do.

    `feed_segment` feeds the tracker with a segment that takes the slow path, and receives the events.

    `event` receives a `Data`, `Gap`, `Close` or `Fault`. `settle` is called whenever the octets received before
    become invalid, and at the end.
    """

    cdef void *state_of(self, object connection, int direction) except? NULL:
        return NULL

    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        return REFUSED

    cdef int segment(
        self, void *state, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil:
        return TAKEN

    cdef int feed_segment(self, object segment, StreamTracker tracker) except -1:
        for event in tracker.feed(segment):
            self.event(event)
        return 0

    cdef int event(self, object event) except -1:
        raise NotImplementedError

    cdef int settle(self) except -1:
        return 0


cdef class _Side:
    """A direction of a connection."""


cdef class EventConsumer(OctetConsumer):
    """Makes events of everything; `take` returns the events since its last call."""

    def __init__(self):
        self._events = []
        self._sides = {}

    cdef void *state_of(self, object connection, int direction) except? NULL:
        cdef _Side side = self._sides.get((connection.number, direction))
        if side is None:
            side = _Side()
            side.connection = connection
            side.direction = direction
            self._sides[connection.number, direction] = side
        return <void *>side

    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        self._runs[self._count] = Run(state, octets, size, offset, packet, time_ns)
        self._count += 1
        return PAUSE if self._count == RUNS else TAKEN

    cdef int event(self, object event) except -1:
        self.settle()
        self._events.append(event)
        if isinstance(event, Close):
            self._sides.pop((event.connection.number, event.direction), None)
        return 0

    cdef int settle(self) except -1:
        cdef Py_ssize_t index
        cdef Run *run
        cdef _Side side
        for index in range(self._count):
            run = self._runs + index
            side = <_Side>run.state
            octets = run.octets[:run.size]
            self._events.append(
                Data(side.connection, side.direction, run.offset, octets, run.packet, run.time_ns)
            )
        self._count = 0
        return 0

    cdef list take(self):
        events, self._events = self._events, []
        return events
