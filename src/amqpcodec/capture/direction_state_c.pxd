# Where a direction of a connection stands: the octets that belong to no frame so far.
from libc.stdint cimport int64_t

cdef extern from *:
    const int64_t NO_NUMBER "INT64_MIN"  # of a packet, or for a time that is not known


cdef struct Mark:  # which packet brought the octets before `end`
    int64_t end
    int64_t packet
    int64_t time_ns


cdef class DirectionState:
    cdef public bint following
    cdef public int64_t start
    cdef int64_t last_packet, last_time_ns
    cdef unsigned char *_memory
    cdef size_t _begin, _end, _room  # of the octets in that memory
    cdef Mark *_marks
    cdef Py_ssize_t _first_mark, _last_mark, _mark_room

    cdef inline const unsigned char *first(self) noexcept nogil:
        """Where the octets lie, as long as none are added or passed; NULL if there never were any."""
        return self._memory + self._begin if self._begin else self._memory

    cdef inline size_t size(self) noexcept nogil:
        return self._end - self._begin

    cdef inline bint is_of_one_packet(self) noexcept nogil:
        """Return whether all of them came with one packet, or none at all."""
        return self._last_mark - self._first_mark <= 1

    cdef bint keep(self, const unsigned char *p, size_t size, int64_t packet, int64_t time_ns) noexcept nogil
    cdef void skip(self, int64_t offset) noexcept nogil
    cdef Mark latest(self, int64_t end) noexcept nogil
    cdef bint _make_room(self, size_t size) noexcept nogil
    cdef bint _mark(self, int64_t end, int64_t packet, int64_t time_ns) noexcept nogil
