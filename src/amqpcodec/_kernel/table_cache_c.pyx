# cython: boundscheck=False, wraparound=False
"""Field tables that repeat; of the compiled build only.

Many publishers send the same headers with every message. A copy of a dict takes a fraction of the time that
decoding it again takes: keys are not looked up, hashed and compared, and the dict has its size from the start.

What is kept is bounded by the memory it takes, since few octets can make many objects, and a server may have
thousands of idle decoders.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Copy, PyDict_Next, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE, PyList_GetSlice
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.string cimport memcmp

from datetime import datetime
from decimal import Decimal
from sys import getsizeof

cdef extern from "Python.h":
    PyObject *PyList_GET_ITEM(object items, Py_ssize_t at) noexcept

from .octets cimport head, word

cdef object _IMMUTABLE = frozenset((str, int, float, bool, bytes, type(None), datetime, Decimal))


cdef uint64_t _hash_of(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """A hash of all octets, not 0."""
    cdef uint64_t mix = <uint64_t>size
    while size >= 8:
        mix = (mix ^ word(p)) * 0x9E3779B97F4A7C15U
        mix ^= mix >> 32
        p += 8
        size -= 8
    return (mix ^ head(p, size)) * 0xD6E8FEB86659FD93U | 1


cdef class TableCache:
    """Field tables that repeat, by their octets."""

    def __dealloc__(self):
        self._drop()

    cdef void _drop(self) noexcept:
        """Keep none of the tables."""
        cdef int slot
        for slot in range(<int>TABLE_SLOTS):
            self._slots[slot].mark = 0
            _replace(&self._slots[slot].octets, NULL)
            _replace(&self._slots[slot].table, NULL)
            self._slots[slot].size = 0
        self._size = 0

    cdef object _compared(self, CachedTable *kept, const unsigned char *start, Py_ssize_t size):
        """A new dict of the table that is kept, or None where its octets are others."""
        if PyBytes_GET_SIZE(<object>kept.octets) != size:
            return None
        if memcmp(PyBytes_AS_STRING(<object>kept.octets), start, <size_t>size) != 0:
            return None
        return PyDict_Copy(<object>kept.table) if kept.flat else _copied(<object>kept.table)

    cdef int _missed_again(
        self, CachedTable *kept, const unsigned char *start, Py_ssize_t size, dict table
    ) except -1:
        """Of a table whose first and last octets came before: keep it if all of them did."""
        cdef uint64_t whole = _hash_of(start, size)
        if kept.missed_whole == whole:
            return self._keep(kept, start, size, table)
        kept.missed_whole = whole
        return 0

    cdef int _keep(self, CachedTable *kept, const unsigned char *start, Py_ssize_t size, dict table) except -1:
        cdef Py_ssize_t memory
        if self._pause > 1:
            self._pause -= 1
            return 0
        if not _is_of_the_wire(table):
            return 0
        own = _copied(table)
        octets = PyBytes_FromStringAndSize(<const char *>start, size)
        flat = not any([type(value) in (dict, list) for value in table.values()])
        memory = getsizeof(octets) + _memory_of(own)
        if memory > MOST_BYTES:
            return 0
        if self._size - kept.size + memory > MOST_BYTES:
            # More tables repeat than there is room for: those that are kept stay a while, since to keep one costs
            # more than to read it. Then they make room, and come back if they still repeat.
            if self._pause == 0:
                self._pause = PAUSE
                return 0
            self._pause = 0
            self._drop()
        # Nothing fails from here on. The collector may know the dict: whether it does is copied with it.
        self._size += memory - kept.size
        kept.size = memory
        _replace(&kept.octets, <PyObject *>octets)
        _replace(&kept.table, <PyObject *>own)
        kept.flat = flat
        kept.mark = kept.missed
        return 0


cdef void _replace(PyObject **place, PyObject *value) noexcept:
    cdef PyObject *before = place[0]
    Py_XINCREF(value)
    place[0] = value
    Py_XDECREF(before)


cdef Py_ssize_t _memory_of(object value) except -1:
    """Bytes of memory of a value with all that is in it; what others have too counts as well."""
    cdef Py_ssize_t size = getsizeof(value)
    if type(value) is dict:
        for key, item in (<dict>value).items():
            size += getsizeof(key) + _memory_of(item)
    elif type(value) is list:
        for item in <list>value:
            size += _memory_of(item)
    return size


cdef bint _is_of_the_wire(object value) except -1:
    """Return whether a value holds nothing but what a copy may share, and dicts and lists of such.

    A table has a few levels at most, here as below: the limits of a decoder say how many.
    """
    if type(value) is dict:
        return all([_is_of_the_wire(item) for item in (<dict>value).values()])
    if type(value) is list:
        return all([_is_of_the_wire(item) for item in <list>value])
    return type(value) in _IMMUTABLE


cdef inline bint _may_change(PyObject *value) noexcept:
    return type(<object>value) is dict or type(<object>value) is list


cdef dict _copied(dict table):
    """A table with dicts and lists of its own."""
    cdef Py_ssize_t at = 0
    cdef PyObject *key
    cdef PyObject *value
    cdef dict made = PyDict_Copy(table)
    while PyDict_Next(table, &at, &key, &value):
        if _may_change(value):
            PyDict_SetItem(made, <object>key, _copied_value(<object>value))
    return made


cdef object _copied_value(object value):
    cdef Py_ssize_t at
    cdef list made
    if type(value) is dict:
        return _copied(<dict>value)
    made = PyList_GetSlice(value, 0, PyList_GET_SIZE(value))
    for at in range(PyList_GET_SIZE(made)):
        if _may_change(PyList_GET_ITEM(made, at)):
            made[at] = _copied_value(made[at])
    return made
