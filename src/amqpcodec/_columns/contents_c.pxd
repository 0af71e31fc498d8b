# What sinks keep of directions and connections between frames.
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t

from ..capture.direction_state_c cimport NO_NUMBER
from .buffers_c cimport Octets
from .cells_c cimport Layout, Position, Shape

cdef enum:  # what became of a frame
    DECLINED = 0  # it is out of order, or its content is not kept as frames; nothing has changed
    ADDED = 1
    COMPLETED = 2  # its content is whole
    OUT_OF_MEMORY = 3


cdef struct Channel:
    int number  # -1 in a slot that is free
    bint known  # whether a method or content header was seen
    bint kept  # whether its content is kept as an object
    const Shape *method  # of the content whose frames are kept; NULL without one
    const Layout *layout  # of its dialect
    Octets frames  # of that content, one behind the other
    size_t header_at  # where its content header begins among them; 0 without one
    int64_t header_offset
    Position first  # of its first frame
    int64_t last_ns
    uint64_t left


cdef class OpenContents:
    cdef readonly object connection
    cdef readonly int direction
    cdef object plans  # of the layouts that channels point to
    cdef dict _kept
    cdef Channel *_channels
    cdef int _known_channels  # slots in use
    cdef size_t _mask
    cdef Py_ssize_t open

    cdef Channel *channel(self, int number) noexcept nogil
    cdef int add(
        self, Channel *channel, const Layout *layout, const unsigned char *p, size_t size, const Position *position,
        Py_ssize_t open_limit, uint64_t body_limit,
    ) noexcept nogil
    cdef void end(self, Channel *channel) noexcept nogil
    cdef bint _open(
        self, Channel *channel, const Layout *layout, const unsigned char *p, size_t size, const Position *position,
        Py_ssize_t open_limit,
    ) noexcept nogil
    cdef Channel *_seen(self, int number) noexcept nogil
    cdef bint _spread(self) noexcept nogil
    cdef object _content(self, const Channel *channel)


cdef size_t whole_content(
    const Layout *layout, const unsigned char *p, const unsigned char *end, uint64_t body_limit, int64_t size_limit
) noexcept nogil
cdef object frame_origin(object connection, int direction, const Position *position)


cdef inline object or_none(int64_t number):
    return None if number == NO_NUMBER else number


cdef inline bytes octets_at(const unsigned char *p, size_t size):
    return PyBytes_FromStringAndSize(<const char *>p, <Py_ssize_t>size)


cdef class Totals:  # of a connection
    cdef public int64_t frames_sent, frames_received, messages_sent, messages_received
    cdef public int64_t first_ns, last_ns  # NO_NUMBER for a time that is not known


cdef inline void see(Totals totals, int64_t time_ns) noexcept nogil:
    """Something came at this time, or at NO_NUMBER."""
    if time_ns != NO_NUMBER:
        totals.last_ns = time_ns
        if totals.first_ns == NO_NUMBER:
            totals.first_ns = time_ns


cdef inline void count(Totals totals, int direction, bint carries_content, int64_t time_ns) noexcept nogil:
    """A frame came."""
    see(totals, time_ns)
    if direction:
        totals.frames_received += 1
        totals.messages_received += carries_content
    else:
        totals.frames_sent += 1
        totals.messages_sent += carries_content
