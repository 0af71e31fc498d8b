from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef enum:
    CACHED_TABLE = 512  # octets of the largest field table that is kept
    TABLE_SLOTS = 8  # a power of two


cdef struct KeptTable:
    uint64_t mark  # what `mix_of` makes of the octets that are kept; 0 for none
    uint64_t met  # the same of those last looked for here in vain
    PyObject *octets
    PyObject *table
    bint flat  # no value of it can be changed


cdef class TableCache:
    cdef KeptTable _slots[TABLE_SLOTS]

    cdef object _compared(self, KeptTable *kept, const unsigned char *start, Py_ssize_t size)
    cdef int _keep(self, KeptTable *kept, const unsigned char *start, Py_ssize_t size, dict table) except -1

    # What decoders call for each table, to be inlined.

    cdef inline KeptTable *slot(self, uint64_t mark) noexcept:
        return self._slots + (mark >> 48 & (TABLE_SLOTS - 1))

    cdef inline object find(self, const unsigned char *start, Py_ssize_t size, uint64_t mark):
        """A new dict of a table that is kept, or None."""
        cdef KeptTable *kept = self.slot(mark)
        return self._compared(kept, start, size) if kept.mark == mark else None

    cdef inline int meet(
        self, const unsigned char *start, Py_ssize_t size, uint64_t mark, dict table
    ) except -1:
        """Take note of a table that `find` did not know. It is kept once it is met twice, with no other in its
        place between: those that never repeat would drive out those that do. One that looks like what is
        kept, and is not, is left out, so that a stream of such tables costs comparisons alone."""
        cdef KeptTable *kept = self.slot(mark)
        if kept.met != mark:
            kept.met = mark
        elif kept.mark != mark:
            self._keep(kept, start, size, table)
        return 0
