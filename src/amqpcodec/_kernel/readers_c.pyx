"""Readers that keep their texts from call to call; of the compiled build only."""

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
    """
    void *swap "amqpcodec_swap"(void **place, void *value) noexcept


cdef class ReaderPool:
    """Readers for calls that bring one frame each: a call takes one and gives it back, with the texts it keeps.

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
        cdef Py_ssize_t at
        cdef void *idle
        cdef Reader reader
        for at in range(POOLED):
            idle = swap(&self._idle[at], NULL)
            if idle is not NULL:
                reader = <Reader>idle
                Py_XDECREF(<PyObject *>idle)  # the pool's reference
                return reader
        return self._rules.reader(True)

    cdef int give_back(self, Reader reader) except -1:
        """Let others have the reader. It no longer holds on to what it has read."""
        cdef Py_ssize_t at
        cdef void *idle
        reader.attach(b"")
        Py_INCREF(reader)
        idle = <void *>reader
        for at in range(POOLED):
            idle = swap(&self._idle[at], idle)
            if idle is NULL:
                return 0
        Py_XDECREF(<PyObject *>idle)
        return 0
