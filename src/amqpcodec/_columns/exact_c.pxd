# What the following of frames leaves to the exact decoder and sink.
from libc.stdint cimport int64_t

from .lane_c cimport Channel, Lane
from .plan_c cimport Plan
from .rows_c cimport Place

cdef enum:  # the tables
    FRAMES = 1
    METHODS = 2
    MESSAGES = 3
    CONNECTIONS = 4
    ERRORS = 5


cdef struct Chunk:  # octets that came at once
    const unsigned char *begin
    const unsigned char *at  # up to where they were taken
    const unsigned char *end
    int64_t packet
    int64_t time_ns


cdef class Flow:
    cdef readonly object connection
    cdef object decoder
    cdef Plan plan
    cdef bint beside  # whether another dialect has methods that this one lacks
    cdef Lane lanes[2]
    cdef int64_t first_ns, last_ns  # of the frames that the exact account does not know of yet
    cdef tuple _names

    cdef int name(self, dict cells) except -1


cdef class ExactWay:
    cdef object _sink
    cdef int _table
    cdef bint _payloads  # whether damaged payloads have to be told as faults
    cdef Py_ssize_t _open_limit
    cdef dict _plans

    cdef int _exact_frame(
        self, Flow flow, const Lane *lane, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1
    cdef bint _exact_method(
        self, Flow flow, const Lane *lane, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1
    cdef int _exact_content(
        self, Flow flow, const Lane *lane, const unsigned char *p, size_t size, const Place *place
    ) except -1
    cdef object _content(self, Flow flow, const Lane *lane, const Channel *channel)
    cdef int _give_out(self, object content) except -1
    cdef int _out_of_order(
        self, Flow flow, Lane *lane, Channel *channel, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1
    cdef int _leave(self, Flow flow, Lane *lane, Channel *channel, object exact) except -1
    cdef int _leave_all(self, Flow flow, Lane *lane) except -1
    cdef int _take_back(self, Flow flow, Lane *lane) except -1
    cdef int _search(self, Flow flow, Lane *lane, Chunk *chunk) except -1
    cdef bint _is_spoken(self, Flow flow, const Lane *lane, bytes octets) except -1
    cdef int _begin(self, Flow flow, Lane *lane, const Chunk *chunk) except -1
    cdef int _exactly(self, Flow flow, Lane *lane, Chunk *chunk, Py_ssize_t size) except -1
    cdef int _exact_event(self, Flow flow, int direction, object event) except -1
    cdef int _give(self, Flow flow, Lane *lane, object event) except -1
    cdef int _account(self, Flow flow) except -1
    cdef int _resume(self, Flow flow, Lane *lane) except -1
    cdef int _suspend(self, Flow flow, Lane *lane, object most=*) except -1
    cdef int _hold(self, Lane *lane, const unsigned char *octets, list marks) except -1
    cdef int _learn(self, Flow flow) except -1


cdef Py_ssize_t piece_of(const Chunk *chunk) noexcept nogil
