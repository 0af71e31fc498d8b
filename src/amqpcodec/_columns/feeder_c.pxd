from libc.stdint cimport int64_t, uint64_t

from .exact_c cimport Chunk, ExactWay, Flow
from .lane_c cimport Channel, Lane
from .rows_c cimport Place, Targets


cdef class Feeder(ExactWay):
    cdef int64_t _size_limit
    cdef unsigned long long _body_limit
    cdef Py_ssize_t _most_rows
    cdef size_t _most_octets
    cdef Targets _targets
    cdef bytes _file
    cdef dict _flows

    cdef Flow flow(self, object connection)
    cdef int octets(
        self, Flow flow, int direction, const unsigned char *p, Py_ssize_t size, int64_t packet, int64_t time_ns
    ) except -1 nogil
    cdef int _follow(self, Flow flow, Lane *lane, Chunk *chunk) except -1 nogil
    cdef int _carry_on(self, Flow flow, Lane *lane, Chunk *chunk) except -1 nogil
    cdef int _frames(
        self, Flow flow, Lane *lane, const unsigned char **at, const unsigned char *end, Place *place
    ) except -1 nogil
    cdef size_t _take(
        self, Flow flow, Lane *lane, const unsigned char *p, const unsigned char *end, size_t size, Place *place
    ) except? 0 nogil
    cdef inline bint _is_exact(self, const Lane *lane, const unsigned char *p, size_t size) noexcept nogil
    cdef inline bint _is_unknown(self, const Lane *lane, const unsigned char *p, size_t size) noexcept nogil
    cdef void _count(self, Flow flow, Lane *lane, const unsigned char *p, int64_t time_ns) noexcept nogil
    cdef inline bint _is_head(self, const Lane *lane, const unsigned char *p) noexcept nogil
    cdef size_t _piece_of_content(
        self, Flow flow, Lane *lane, const unsigned char *p, const unsigned char *end, size_t size, Place *place
    ) except 0 nogil
    cdef bint _open_content(
        self, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) noexcept nogil
    cdef bint _announce(
        self, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) noexcept nogil
    cdef int _keep(
        self, Flow flow, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) except -1 nogil


cdef size_t whole_content(
    const Lane *lane, const unsigned char *p, const unsigned char *end, uint64_t body_limit, int64_t size_limit
) noexcept nogil
