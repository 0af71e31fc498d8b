cimport cython

from .._kernel.encoder_c cimport Encoder
from .state_c cimport Timers


@cython.final
cdef class Outbox:
    cdef Encoder _encoder
    cdef Timers _timers
    cdef list _parts
    cdef readonly long long size
    cdef public object frame_max
    cdef public object on_queued

    @cython.locals(is_first=cython.bint)
    cpdef int put(self, object octets) except -1
    cpdef int put_method(self, object number, object method) except -1
    cpdef object method_frame(self, object number, object method)
    cpdef object message_frames(self, object number, object method, object properties, object body)
    cpdef int put_frames(self, object frames) except -1
    cpdef list take(self)
