# cython: boundscheck=False, wraparound=False, cdivision=True
"""One entry of a field table, without decoding the others, in C. The twin of lookup_py.py."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t
from libc.string cimport memcmp

from .civil cimport import_datetime, time_of
from .kinds cimport (
    ARRAY, BOOL, DECIMAL, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, LONGSTR, OCTETS, TABLE, TIMESTAMP, UINT8, UINT16,
    UINT32, UINT64, VOID,
)
from .octets cimport f32, f64, u16, u32, u64

from ..limits import DEFAULT_LIMITS
from ..profiles import table_profile

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    str PyUnicode_DecodeUTF8(const char *octets, Py_ssize_t size, const char *errors)

import_datetime()

cdef enum:
    _DEEPEST = 32  # what is nested deeper is for full decoding
    _SHORT_TEXT = 100  # in a plan of rawproperties_py.py
    _HEADERS = 101

cdef tuple _found_none = ()
cdef dict _kinds = {}  # by the name of a profile, the kinds of values by tag
cdef long long _most = min(DEFAULT_LIMITS.table_octets, DEFAULT_LIMITS.table_entries, DEFAULT_LIMITS.array_items)
cdef int _levels = min(DEFAULT_LIMITS.table_depth, _DEEPEST)


cpdef object look_up(bytes octets, object key, str profile, object limits):
    """Return the value of a key in a tuple; see `lookup_py.look_up`."""
    cdef const unsigned char *p
    cdef const unsigned char *end
    cdef const unsigned char *found = NULL
    cdef const unsigned char *tag
    cdef const unsigned char *name
    cdef const unsigned char *kinds
    cdef Py_ssize_t size
    cdef long long most = _most
    cdef int levels = _levels
    if octets is None:  # of a table that was made without its constructor
        return None
    p = <const unsigned char *>PyBytes_AS_STRING(octets)
    end = p + PyBytes_GET_SIZE(octets)
    if limits is not None:
        most = min(limits.table_octets, limits.table_entries, limits.array_items)
        levels = min(limits.table_depth, _DEEPEST)
    if end - p > most or type(key) is not str or not PyUnicode_IS_COMPACT_ASCII(key):
        return None
    known = _kinds.get(profile)
    if known is None:
        known = _kinds_of(profile)
        if known is None:
            return None
    kinds = <const unsigned char *>PyBytes_AS_STRING(known)
    name = <const unsigned char *>PyUnicode_DATA(key)
    size = PyUnicode_GET_LENGTH(key)
    while p < end:
        if p[0] >= end - p - 1:
            return None
        tag = p + 1 + p[0]
        if p[0] == size and memcmp(p + 1, name, <size_t>size) == 0:
            found = tag
        p = _behind(tag, end, kinds, levels - 1)
        if p is NULL:
            return None
    return _found_none if found is NULL else _value(found, kinds[found[0]])


cdef bytes _kinds_of(str profile):
    """The kinds of values by tag; None where there is no such profile."""
    try:
        tags = table_profile(profile).readable(False)
    except ValueError:
        return None
    kinds = bytearray(256)
    for tag, kind in tags.items():
        kinds[ord(tag)] = kind
    found = _kinds[profile] = bytes(kinds)
    return found


cdef const unsigned char *_behind(
    const unsigned char *tag, const unsigned char *end, const unsigned char *kinds, int levels
) noexcept nogil:
    """Return what is behind a value, by its tag; NULL where it is not whole, or not known."""
    cdef int kind = kinds[tag[0]]
    cdef const unsigned char *p = tag + 1
    cdef const unsigned char *stop
    cdef Py_ssize_t size = _size_of(kind)
    if size >= 0:
        return p + size if size <= end - p else NULL
    if size == -1 or end - p < 4 or u32(p) > <uint64_t>(end - p - 4):
        return NULL
    stop = p + 4 + u32(p)
    p += 4
    if kind == LONGSTR or kind == OCTETS:
        return stop
    if levels < 1:
        return NULL
    while p < stop:
        if kind == TABLE:
            if p[0] >= stop - p - 1:
                return NULL
            p += 1 + p[0]
        p = _behind(p, stop, kinds, levels - 1)
        if p is NULL:
            return NULL
    return p


cdef inline int _size_of(int kind) noexcept nogil:
    """Return how many octets a value has; -2 where its length is before it, -1 for what is not known here."""
    if kind == LONGSTR or kind == TABLE or kind == ARRAY or kind == OCTETS:
        return -2
    if kind == INT32 or kind == UINT32 or kind == FLOAT:
        return 4
    if kind == BOOL or kind == INT8 or kind == UINT8:
        return 1
    if kind == INT64 or kind == UINT64 or kind == DOUBLE or kind == TIMESTAMP:
        return 8
    if kind == INT16 or kind == UINT16:
        return 2
    if kind == DECIMAL:
        return 5
    return 0 if kind == VOID else -1


cdef tuple _value(const unsigned char *tag, int kind):
    """Return the value behind a tag, which is whole, in a tuple; None for what is seldom, and what could be changed."""
    cdef const unsigned char *p = tag + 1
    if kind == LONGSTR:
        try:
            return (PyUnicode_DecodeUTF8(<const char *>p + 4, <Py_ssize_t>u32(p), NULL),)
        except UnicodeDecodeError:
            return (PyBytes_FromStringAndSize(<const char *>p + 4, <Py_ssize_t>u32(p)),)
    if kind == INT32:
        return (<int32_t>u32(p),)
    if kind == BOOL:
        return (p[0] != 0,)
    if kind == INT64:
        return (<int64_t>u64(p),)
    if kind == TIMESTAMP:
        return (time_of(u64(p)),)
    if kind == DOUBLE:
        return (f64(p),)
    if kind == FLOAT:
        return (<double>f32(p),)
    if kind == INT8:
        return (<int>(<int8_t>p[0]),)
    if kind == UINT8:
        return (<int>p[0],)
    if kind == INT16:
        return (<int>(<int16_t>u16(p)),)
    if kind == UINT16:
        return (<int>u16(p),)
    if kind == UINT32:
        return (u32(p),)
    if kind == UINT64:
        return (u64(p),)
    if kind == VOID:
        return (None,)
    if kind == OCTETS:
        return (PyBytes_FromStringAndSize(<const char *>p + 4, <Py_ssize_t>u32(p)),)
    return None


cpdef bytes headers_in(bytes octets, bytes plan):
    """Return the entries of the table `headers` in the octets of properties; see `lookup_py.headers_in`."""
    cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(octets)
    cdef const unsigned char *end = p + PyBytes_GET_SIZE(octets)
    cdef const unsigned char *headers = NULL
    cdef const unsigned char *sizes = <const unsigned char *>PyBytes_AS_STRING(plan)
    cdef Py_ssize_t at
    cdef uint64_t size
    cdef int flags, bit = 0x8000
    if end - p < 2:
        return None
    flags = u16(p)
    p += 2
    for at in range(PyBytes_GET_SIZE(plan)):
        if flags & bit:
            flags -= bit
            size = sizes[at]
            if size == _SHORT_TEXT:
                if p == end:
                    return None
                size = 1 + <uint64_t>p[0]
            elif size == _HEADERS:
                if end - p < 4:
                    return None
                headers = p
                size = 4 + <uint64_t>u32(p)
            if size > <uint64_t>(end - p):
                return None
            p += size
        bit >>= 1
    if flags or p != end:
        return None
    if headers is NULL:
        return b""
    return PyBytes_FromStringAndSize(<const char *>headers + 4, <Py_ssize_t>u32(headers))
