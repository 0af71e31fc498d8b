cimport cython


@cython.final
cdef class Timers:
    cdef object _clock
    cdef double _received_at
    cdef double _sent_at
    cdef readonly int heartbeat
    cdef public double handshake_ends
    cdef public double close_ends

    cpdef int received(self) except -1
    cpdef int sent(self) except -1
