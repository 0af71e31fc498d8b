from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef enum:
    CACHED_TABLE = 512  # octets of the largest field table that is kept
    TABLE_SLOTS = 8  # a power of two
    MOST_BYTES = 6144  # of memory that the tables which are kept take
    PAUSE = 256  # tables that are read before those that are kept make room


cdef struct CachedTable:
    uint64_t mark  # what `mix_of` makes of the octets that are kept; 0 for none
    uint64_t missed  # the same of those last looked for here in vain
    uint64_t missed_whole  # a hash of all of those
    PyObject *octets
    PyObject *table
    bint flat  # no value of it can be changed
    Py_ssize_t size  # bytes of memory that both take


cdef class TableCache:
    cdef CachedTable _slots[TABLE_SLOTS]
    cdef Py_ssize_t _size  # of all slots
    cdef int _pause  # tables not to be kept, before those that are make room

    cdef void _drop(self) noexcept
    cdef object _compared(self, CachedTable *kept, const unsigned char *start, Py_ssize_t size)
    cdef int _missed_again(self, CachedTable *kept, const unsigned char *start, Py_ssize_t size, dict table) except -1
    cdef int _keep(self, CachedTable *kept, const unsigned char *start, Py_ssize_t size, dict table) except -1
