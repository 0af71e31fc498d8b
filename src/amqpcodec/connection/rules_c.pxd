from .constants cimport *


cdef class Rule:
    cdef readonly object name
    cdef readonly int class_id
    cdef readonly int method_id
    cdef readonly object index
    cdef readonly int kind
    cdef readonly int senders
    cdef readonly bint content
    cdef readonly frozenset replies
    cdef readonly bint is_reply
    cdef readonly bint synchronous
    cdef readonly bint strict
    cdef readonly bint ordered
    cdef readonly bint has_multiple
    cdef readonly object no_wait

    cpdef bint waits(self, object method) except -1
