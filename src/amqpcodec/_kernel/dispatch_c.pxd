from libc.stdint cimport uint32_t


cdef struct Entry:
    uint32_t index
    void *maker  # borrowed from Dispatch._makers; NULL in an empty entry


cdef class Dispatch:
    cdef list _makers
    cdef Entry *_entries
    cdef uint32_t _mask

    cdef object create(self, long long number)
