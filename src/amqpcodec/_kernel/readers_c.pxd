from .reader_c cimport Reader, ReaderRules

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define AMQPCODEC_POOLED (16 * 8)  /* places in cache lines of their own */
    #else
    #define AMQPCODEC_POOLED 4
    #endif
    """
    enum:
        POOLED "AMQPCODEC_POOLED"


cdef class ReaderPool:
    cdef ReaderRules _rules
    cdef void *_idle[POOLED]

    cdef Reader take(self)
    cdef int give_back(self, Reader reader) except -1
