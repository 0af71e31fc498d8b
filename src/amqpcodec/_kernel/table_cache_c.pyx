"""Field tables that repeat; of the compiled build only.

Many publishers send the same headers with every message. A copy of a dict takes a fraction of the time that
decoding it again takes: keys are not looked up, hashed and compared, and the dict has its size from the start.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.datetime cimport datetime, import_datetime
from cpython.dict cimport PyDict_Copy
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport memcmp

from decimal import Decimal

import_datetime()

cdef object _IMMUTABLE = frozenset((str, int, float, bool, bytes, type(None), datetime, Decimal))


cdef class TableCache:
    """Field tables that came twice, by their octets."""

    def __dealloc__(self):
        for slot in range(TABLE_SLOTS):
            Py_XDECREF(self._slots[slot].octets)
            Py_XDECREF(self._slots[slot].table)

    cdef object _compared(self, KeptTable *kept, const unsigned char *start, Py_ssize_t size):
        """A new dict of the table that is kept, or None where its octets are others."""
        if PyBytes_GET_SIZE(<object>kept.octets) != size:
            return None
        if memcmp(PyBytes_AS_STRING(<object>kept.octets), start, <size_t>size) != 0:
            return None
        return PyDict_Copy(<object>kept.table) if kept.flat else _copied(<object>kept.table)

    cdef int _keep(self, KeptTable *kept, const unsigned char *start, Py_ssize_t size, dict table) except -1:
        own = _copied(table)
        if own is None:
            return 0
        octets = PyBytes_FromStringAndSize(<const char *>start, size)
        flat = not any([type(value) in (dict, list) for value in table.values()])
        # Nothing fails from here on.
        _replace(&kept.octets, octets)
        _replace(&kept.table, own)
        kept.flat = flat
        kept.mark = kept.met
        return 0


cdef void _replace(PyObject **place, object value) noexcept:
    cdef PyObject *before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject *>value
    Py_XDECREF(before)


cdef object _copied(object value):
    """A value with dicts and lists of its own; None for one that holds what may be changed otherwise.

    A table has a few levels at most: the limits of a decoder say how many.
    """
    if type(value) is dict:
        made = PyDict_Copy(value)
        items = (<dict>value).items()
    else:
        made = list(<list>value)
        items = enumerate(<list>value)
    for key, item in items:
        if type(item) is dict or type(item) is list:
            item = _copied(item)
            if item is None:
                return None
            made[key] = item
        elif type(item) not in _IMMUTABLE:
            return None
    return made
