from cpython.object cimport PyObject
from libc.stdint cimport uint32_t


cdef struct Entry:
    uint32_t index
    PyObject *cls  # borrowed from Dispatch._classes; NULL in an empty entry


cdef class Dispatch:
    cdef dict _classes
    cdef Entry *_entries
    cdef uint32_t _mask

    cdef object create(self, uint32_t index)
