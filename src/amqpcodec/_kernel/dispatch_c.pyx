"""From the ids on the wire to the generated class, in C. The twin of dispatch_py.py.

A hash table with open addressing, at most half full, so that a look-up makes no Python object.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free

from .fast_reader_c cimport read_record
from .fixed_c cimport FixedMethods
from .layout_c cimport prepare
from .makers_c cimport make, maker_of


cdef inline uint32_t _place(uint32_t index) noexcept nogil:
    return (index * 0x9E3779B1U) >> 16


cdef class Dispatch:
    """Makes an empty instance of the class registered under a number."""

    def __cinit__(self, classes):
        cdef uint32_t size = 8
        cdef uint32_t at
        self.fixed = FixedMethods(classes.values())
        while size < 2 * <uint32_t>len(classes):
            size *= 2
        self._mask = size - 1
        self._entries = <Entry *>PyMem_Calloc(size, sizeof(Entry))
        if self._entries is NULL:
            raise MemoryError
        for index, cls in classes.items():
            prepare(cls)
            at = _place(index) & self._mask
            while self._entries[at].maker is not NULL:
                at = (at + 1) & self._mask
            self._entries[at].index = index
            self._entries[at].maker = maker_of(cls)

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef Record create(self, long long number):
        """A new, unfilled instance, or None where nothing is registered; the number has 32 bits."""
        cdef Maker *maker = self.find(number)
        return None if maker is NULL else <Record>make(maker)

    cdef Record read_fast(self, long long number, Reader reader):
        """Return an instance read from the payload that the reader is aimed at, or None where `create` and `read`
        must do that: the fast path declines, or nothing is registered."""
        cdef Maker *maker = self.find(number)
        return None if maker is NULL else <Record>read_record(maker, reader)

    cdef bint has(self, long long number) noexcept:
        """Return whether something is registered."""
        return self.find(number) is not NULL

    cdef inline Maker *find(self, long long number) noexcept:
        cdef uint32_t index = <uint32_t>number
        cdef uint32_t at = _place(index) & self._mask
        while self._entries[at].maker is not NULL:
            if self._entries[at].index == index:
                return self._entries[at].maker
            at = (at + 1) & self._mask
        return NULL
