cimport cython

from .constants cimport *
from .rules_c cimport Rule


@cython.final
cdef class Handshake:
    cdef public int phase
    cdef readonly object channel_max
    cdef readonly object frame_max
    cdef readonly object heartbeat
    cdef readonly object tune
    cdef public object largest

    cdef object _tune_fault(self, object name, object answer, object offer, object least)
