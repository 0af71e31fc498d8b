# From the ordered octets of connections to a column sink, without the GIL.
from libc.stdint cimport int64_t

from .._kernel.framing cimport WRONG_END, FrameStatus
from ..capture.direction_state_c cimport DirectionState
from .cells_c cimport Origin, Place, Plan, Targets
from .contents_c cimport OpenContents
from .totals_c cimport Totals

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


cdef class Direction:
    cdef readonly object connection
    cdef object decoder  # of the connection
    cdef object follower  # of this direction, in that decoder
    cdef DirectionState state  # where that stands
    cdef OpenContents contents  # of the sink; None before the first frame, and but for messages
    cdef Totals totals  # of the sink; None but for connections
    cdef Plan plan
    cdef bint beside  # whether another dialect has methods that this one lacks
    cdef Origin origin
    cdef tuple _names


cdef class Feeder:
    cdef object _sink
    cdef int _table
    cdef bint _payloads  # whether damaged payloads have to be told as faults
    cdef int64_t _size_limit
    cdef Py_ssize_t _open_limit
    cdef unsigned long long _body_limit
    cdef Py_ssize_t _most_rows
    cdef size_t _most_octets
    cdef Targets _targets
    cdef bytes _file
    cdef dict _plans
    cdef dict _directions

    cdef Direction direction(self, object connection, int direction)
    cdef int octets(
        self, Direction direction, const unsigned char *p, Py_ssize_t size, int64_t packet, int64_t time_ns
    ) except -1 nogil
    cdef Direction _direction(self, object connection, object decoder, int direction)
    cdef int _in_place(self, Direction direction, Chunk *chunk) except -1 nogil
    cdef int _complete(self, Direction direction, DirectionState state, Chunk *chunk) except -1 nogil
    cdef FrameStatus _kept_frames(self, Direction direction, DirectionState state) except? WRONG_END nogil
    cdef inline FrameStatus _next(
        self, Direction direction, const unsigned char *p, Py_ssize_t left, Py_ssize_t *size
    ) noexcept nogil
    cdef int _decide(self, Direction direction, Chunk *chunk, const unsigned char *begin) except -1
    cdef int _dispatch(self, Direction direction, object item) except -1
    cdef int _read_as(self, Direction direction) except -1
    cdef size_t _take(
        self, Direction direction, const unsigned char *p, const unsigned char *end, size_t size, const Place *place
    ) except 0 nogil
    cdef inline bint _is_declined(self, Direction direction, const unsigned char *p, size_t size) noexcept nogil
    cdef void _count(self, Direction direction, const unsigned char *p, size_t size, const Place *place) noexcept nogil
    cdef size_t _add_to_content(
        self, Direction direction, const unsigned char *p, const unsigned char *end, size_t size, const Place *place
    ) except 0 nogil
    cdef inline int _cut_if_full(self) except -1 nogil
    cdef int _make_row(
        self, Direction direction, const unsigned char *p, size_t size, const Place *place
    ) except -1 with gil
    cdef int _frame(self, Direction direction, bytes octets, const Place *place, object module) except -1
    cdef int _make_rows(
        self, Direction direction, const unsigned char *p, size_t size, const Place *place
    ) except -1 nogil
    cdef int _read(
        self, Direction direction, const unsigned char *p, size_t size, const Place *place
    ) except -1
    cdef int _negotiate(
        self, Direction direction, const unsigned char *p, size_t size, const Place *place
    ) except -1
    cdef int _emit(self, Direction direction, int channel) except -1
