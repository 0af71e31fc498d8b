cimport cython
from libc.stdint cimport int64_t

cdef int64_t NO_TIME


@cython.final
cdef class Totals:
    cdef public int64_t frames_sent, frames_received, messages_sent, messages_received, first_ns, last_ns

    cpdef void see(self, int64_t time_ns) noexcept nogil
    cpdef void count(self, int direction, bint carries_content, int64_t time_ns) noexcept nogil
