from .reader_c cimport Reader, ReaderRules

cdef enum:
    POOLED = 4


cdef class ReaderPool:
    cdef ReaderRules _rules
    cdef void *_idle[POOLED]

    cdef Reader take(self)
    cdef int give_back(self, Reader reader) except -1
