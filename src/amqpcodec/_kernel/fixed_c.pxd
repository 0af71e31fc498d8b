from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t, uintptr_t

cdef enum:
    MOST_ARGUMENTS = 8
    MOST_OCTETS = 80  # of a frame: envelope, ids, so many numbers


cdef struct Argument:
    uint64_t most  # the greatest number
    unsigned short slot  # where it is in an instance
    unsigned char at  # where it goes in the frame
    unsigned char size  # octets of a number; 0 for a bit
    unsigned char mask  # of a bit


cdef struct Fixed:
    PyObject *cls
    Py_ssize_t size
    unsigned char octets[MOST_OCTETS]  # the frame for channel 0, its arguments zero
    int count
    Argument arguments[MOST_ARGUMENTS]


cdef inline size_t hash_of(PyObject *cls) noexcept:
    return <uintptr_t>cls >> 6


cdef class FixedMethods:
    cdef list _classes
    cdef Fixed **_entries
    cdef size_t _mask

    cdef int _enter(self, type cls) except -1
    cdef object frame(self, Fixed *fixed, object channel, object method, long long size_limit)

    cdef inline Fixed *find(self, PyTypeObject *cls) noexcept:
        """Return the layout of a class; NULL if it is none of these."""
        cdef size_t at = hash_of(<PyObject *>cls) & self._mask
        while self._entries[at] is not NULL and self._entries[at].cls is not <PyObject *>cls:
            at = (at + 1) & self._mask
        return self._entries[at]
