"""From the ids on the wire to the generated class, in C. The twin of dispatch_py.py.

A hash table with open addressing, at most half full, so that a look-up makes no Python object.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject, PyTypeObject

cdef tuple _NO_ARGUMENTS = ()


cdef inline uint32_t _place(uint32_t index) noexcept nogil:
    return (index * 0x9E3779B1U) >> 16


cdef class Dispatch:
    """Makes an empty instance of the class registered under a number."""

    def __cinit__(self, classes):
        cdef uint32_t size = 8
        cdef uint32_t at
        self._classes = dict(classes)
        while size < 2 * <uint32_t>len(self._classes):
            size *= 2
        self._mask = size - 1
        self._entries = <Entry *>PyMem_Calloc(size, sizeof(Entry))
        if self._entries is NULL:
            raise MemoryError
        for index, cls in self._classes.items():
            at = _place(index) & self._mask
            while self._entries[at].cls is not NULL:
                at = (at + 1) & self._mask
            self._entries[at].index = index
            self._entries[at].cls = <PyObject *>cls

    def __dealloc__(self):
        PyMem_Free(self._entries)

    cdef object create(self, uint32_t index):
        """A new, unfilled instance, or None where nothing is registered."""
        cdef uint32_t at = _place(index) & self._mask
        cdef PyObject *cls
        while True:
            cls = self._entries[at].cls
            if cls is NULL:
                return None
            if self._entries[at].index == index:
                return (<PyTypeObject *>cls).tp_new(<type>cls, <PyObject *>_NO_ARGUMENTS, NULL)
            at = (at + 1) & self._mask
