from .headers cimport Headers
from .streams_c cimport StreamTracker

cdef enum:
    RUNS = 1024  # of octets that `EventConsumer` collects before it makes objects of them

cdef enum:
    # What `OctetConsumer.octets` returns.
    TAKEN
    PAUSE  # taken, and the consumer wants to be settled before there are more
    REFUSED  # not taken: the scanner passes them as an event


cdef extern from *:
    const long long NOWHERE "INT64_MIN"  # the offset of a segment, if it is not known


cdef class OctetConsumer:
    cdef bint every_segment  # whether it receives segments in place of octets
    cdef bint locked  # whether it needs the global lock for most of them, and is called with it

    cdef void *state_of(self, object connection, int direction) except? NULL
    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil
    cdef int segment(
        self, void *state, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil
    cdef int feed_segment(self, object segment, StreamTracker tracker) except -1
    cdef int event(self, object event) except -1
    cdef int settle(self) except -1


cdef struct Run:
    void *state
    const unsigned char *octets
    Py_ssize_t size
    long long offset
    long long packet
    long long time_ns


cdef class _Side:
    cdef object connection
    cdef int direction


cdef class EventConsumer(OctetConsumer):
    cdef Run _runs[RUNS]
    cdef Py_ssize_t _count
    cdef list _events
    cdef dict _sides

    cdef list take(self)
