cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint32_t

from .none cimport refer_to_none

cdef extern from *:
    """
    /* Without a global lock, threads would get in each other's way at memory that is kept for the next instance. */
    #ifdef Py_GIL_DISABLED
    #define AMQPCODEC_RECYCLED 0
    #else
    #define AMQPCODEC_RECYCLED 16
    #endif
    """
    enum:
        RECYCLED "AMQPCODEC_RECYCLED"

cdef extern from "Python.h":
    PyObject *PyObject_Init(PyObject *memory, PyTypeObject *cls) noexcept
    void PyObject_GC_Track(void *instance) noexcept


cdef enum:
    MOST_FIELDS = 32  # a class with more is left to slow paths


cdef struct Maker:
    PyTypeObject *cls  # lives as long as the process, as does all below
    Maker *next
    Py_ssize_t head  # octets before the slots, which lie in a row
    int fields
    int content  # of a method, the class of the content that follows it; -1 for none
    bint collected  # the garbage collector knows the instances
    void *read  # a `ReadRoutine`, which fills the slots; NULL leaves them to the slow path
    PyObject *idle[RECYCLED + 1]  # memory of instances that are gone
    int count


cdef inline uint32_t place_of(uint32_t index) noexcept nogil:
    return (index * 0x9E3779B1U) >> 16


cdef struct Entry:
    uint32_t index
    Maker *maker  # NULL in an empty entry


@cython.final
cdef class MakerTable:
    cdef Entry *_entries
    cdef uint32_t _mask

    cdef inline Maker *find(self, long long number) noexcept:
        """Return what makes the class that is registered under a number of 32 bits; NULL for none."""
        cdef uint32_t index = <uint32_t>number
        cdef uint32_t at = place_of(index) & self._mask
        while self._entries[at].maker is not NULL:
            if self._entries[at].index == index:
                return self._entries[at].maker
            at = (at + 1) & self._mask
        return NULL


cdef Maker *maker_of(type cls, Py_ssize_t head, Py_ssize_t count) except NULL
cdef Maker *maker_at(PyTypeObject *cls) noexcept
cdef Py_ssize_t octets_before_slots(type cls, Py_ssize_t fields) except -1
cdef object make(Maker *maker)
cdef PyObject *allocate(Maker *maker) noexcept
cdef void empty(Maker *maker, PyObject *made, Py_ssize_t first) noexcept


cdef inline PyObject **slots_of(Maker *maker, PyObject *instance) noexcept:
    return <PyObject **>(<char *>instance + maker.head)


cdef inline PyObject *take(Maker *maker) noexcept:
    """Return memory for an instance, which the collector does not know yet, or NULL with an exception. The caller
    fills all slots."""
    if maker.count > 0:
        maker.count -= 1
        return PyObject_Init(maker.idle[maker.count], maker.cls)
    return allocate(maker)


cdef inline void hand_out(Maker *maker, PyObject *made) noexcept:
    """Let the collector know an instance whose slots are filled."""
    if maker.collected:
        PyObject_GC_Track(made)
