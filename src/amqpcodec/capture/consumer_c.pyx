"""Who takes the octets of connections in order, and everything else that the walker meets.

`OctetConsumer` is what `walker_c.Walker` calls. A consumer written in C derives from it and gets plain octets
where they lie, without the global interpreter lock.
"""

from .headers cimport Headers
from .streams_c cimport StreamTracker

from .model import Close, Data


cdef class OctetConsumer:
    """Takes what a walker finds; the order of all calls is that of the recording.

    `lane` gives the place that a direction of a connection has in the consumer, NULL if its octets are to
    come as events only. It may be asked for again and must give the same. It is used until the `Close` of
    that direction has come by `event`.

    `octets` takes the next octets of a lane: `offset` is their place in its stream, `packet` and `time_ns`
    say where they come from. They lie there until `settle` has returned. It answers TAKEN, PAUSE or REFUSED.

    One with `every_segment` set gets, in place of octets, each segment of a lane by `segment`: its headers as they
    lie there, and the place of its payload in the stream, or NOWHERE. It answers TAKEN or PAUSE.

    `feed_exactly` feeds the tracker with a segment that goes the exact way, and takes what comes of that.

    `event` takes a `Data`, `Gap`, `Close` or `Fault`. `settle` is called now and then, whenever octets taken
    before are about to go, and at the end.
    """

    cdef void *lane(self, object connection, int direction) except? NULL:
        return NULL

    cdef int octets(
        self,
        void *lane,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        return REFUSED

    cdef int segment(
        self, void *lane, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil:
        return TAKEN

    cdef int feed_exactly(self, object segment, StreamTracker tracker) except -1:
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
    """Makes the same objects of everything: `take` gives the events since it was called last."""

    def __init__(self):
        self._events = []
        self._sides = {}

    cdef void *lane(self, object connection, int direction) except? NULL:
        cdef _Side side = self._sides.get((connection.number, direction))
        if side is None:
            side = _Side()
            side.connection = connection
            side.direction = direction
            self._sides[connection.number, direction] = side
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
        self._runs[self._count] = Run(lane, octets, size, offset, packet, time_ns)
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
            side = <_Side>run.lane
            octets = run.octets[:run.size]
            self._events.append(
                Data(side.connection, side.direction, run.offset, octets, run.packet, run.time_ns)
            )
        self._count = 0
        return 0

    cdef list take(self):
        events, self._events = self._events, []
        return events
