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

    # What decoders call for each table, to be inlined.

    cdef inline CachedTable *slot(self, uint64_t mark) noexcept:
        return self._slots + (mark >> 48 & (TABLE_SLOTS - 1))

    cdef inline object find(self, const unsigned char *start, Py_ssize_t size, uint64_t mark):
        """A new dict of a table that is kept, or None."""
        cdef CachedTable *kept = self.slot(mark)
        return self._compared(kept, start, size) if kept.mark == mark else None

    cdef inline int miss(
        self, const unsigned char *start, Py_ssize_t size, uint64_t mark, dict table
    ) except -1:
        """Take note of a table that `find` did not know. Those that never repeat would drive out those that do,
        so it is kept when it comes again and again, with no other in its place between."""
        cdef CachedTable *kept = self.slot(mark)
        if kept.missed == mark:
            return self._missed_again(kept, start, size, table)
        kept.missed = mark
        kept.missed_whole = 0
        return 0
