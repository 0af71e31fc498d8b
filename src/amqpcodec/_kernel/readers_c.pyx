"""Readers for calls that bring one payload each, in C. The twin of readers_py.py."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

cdef extern from *:
    """
    #if defined(Py_GIL_DISABLED) && defined(_MSC_VER)
    #include <intrin.h>
    #endif
    /* Put a pointer in the place of another, in one step. */
    static inline void *amqpcodec_swap(void **place, void *value) {
    #if !defined(Py_GIL_DISABLED)
        void *before = *place;
        *place = value;
        return before;
    #elif defined(_MSC_VER)
        return _InterlockedExchangePointer((void *volatile *)place, value);
    #else
        return __atomic_exchange_n(place, value, __ATOMIC_ACQ_REL);
    #endif
    }
    /* The places that a thread looks at. Without a global lock it has one of its own, or it would wait for others,
       as it would at the texts that they have in use. Where two have the same, one may find it empty. */
    static inline void amqpcodec_places(Py_ssize_t *first, Py_ssize_t *stop) {
    #ifdef Py_GIL_DISABLED
        *first = (Py_ssize_t)((uint64_t)PyThread_get_thread_ident() * 0x9E3779B97F4A7C15U >> 60) * 8;
        *stop = *first + 1;
    #else
        *first = 0;
        *stop = AMQPCODEC_POOLED;
    #endif
    }
    """
    void *swap "amqpcodec_swap"(void **place, void *value) noexcept
    void places "amqpcodec_places"(Py_ssize_t *first, Py_ssize_t *stop) noexcept


cdef class ReaderPool:
    """Readers by the same rules: a call takes one and gives it back, with the texts it keeps.

    Calls may come from several threads at once, and from finalizers while another is on its way; who finds
    none left makes one.
    """

    def __cinit__(self, ReaderRules rules):
        self._rules = rules

    def __dealloc__(self):
        cdef Py_ssize_t at
        for at in range(POOLED):
            Py_XDECREF(<PyObject *>self._idle[at])

    cdef Reader take(self):
        """A reader that nobody else uses."""
        cdef Py_ssize_t at, first, stop
        cdef void *idle
        cdef Reader reader
        places(&first, &stop)
        for at in range(first, stop):
            idle = swap(&self._idle[at], NULL)
            if idle is not NULL:
                reader = <Reader>idle
                Py_XDECREF(<PyObject *>idle)  # the pool's reference
                return reader
        return self._rules.reader(True)

    cdef int give_back(self, Reader reader) except -1:
        """Let others have the reader. It no longer holds on to what it has read."""
        cdef Py_ssize_t at, first, stop
        cdef void *idle
        reader.detach()
        Py_INCREF(reader)
        idle = <void *>reader
        places(&first, &stop)
        for at in range(first, stop):
            idle = swap(&self._idle[at], idle)
            if idle is NULL:
                return 0
        Py_XDECREF(<PyObject *>idle)
        return 0
