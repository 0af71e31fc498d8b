# cython: boundscheck=False, wraparound=False
"""Writing values by the rules of another library's codec; of the compiled build only.

Only exact types are taken, whose octets nothing that a program may override has a say in. Whatever else comes,
or does not fit, raises `Declined`: that library then judges it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Keys
from cpython.list cimport PyList_Sort
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from datetime import datetime
from decimal import Decimal

from ..types import UnreadableTable

from .._kernel.civil cimport datetime_microsecond, import_datetime, is_in_utc, seconds_in_utc
from .._kernel.fields cimport (
    ARRAY_FIELD, DOUBLE_FIELD, FLOAT_FIELD, LONG_FIELD, LONGLONG_FIELD, NAIVE_TIME_FIELD, OCTET_FIELD,
    OCTETS_FIELD, SHORT_FIELD, SHORT_TIME_FIELD, SHORTSTR_FIELD, SIGNED_LONGLONG_FIELD, TABLE_FIELD, TEXT_FIELD,
    TEXT_OR_OCTETS_FIELD,
)
from .._kernel.kinds cimport DOUBLE, FLOAT
from .._kernel.octets cimport copy_short, put16, put32, put64
from .._kernel.values import Declined
from .._kernel.writer_c cimport Writer, WriterRules

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    ctypedef struct ComparingType "PyTypeObject":
        void *tp_richcompare

import_datetime()

cdef type _datetime = datetime, _Decimal = Decimal
cdef void *_COMPARE_INTS = (<ComparingType *><PyObject *>int).tp_richcompare
cdef int64_t _MOST_LONG = 0xFFFFFFFFU


cdef class PeerRules(WriterRules):
    """Rules for everything that is written by a profile with value rules."""

    def __cinit__(self, profile, bint strict, Py_ssize_t depth_limit):
        rules = profile.values
        for tag, octets, least, most in rules.integers:
            self.integers[self.integer_count] = IntegerTag(<unsigned char>ord(tag), octets, least, most)
            self.integer_count += 1
        self.float_tag = _tag_of(rules.float_tag)
        self.bytes_tag = _tag_of(rules.octets_tag)
        self.bytearray_tag = _tag_of(rules.bytearray_tag)
        self.tuples = rules.tuples
        self.sorted_keys = rules.sorted_keys
        self.longest_key = rules.longest_key
        self.own_int = rules.own_int
        self.decimal = rules.decimal


cdef unsigned char _tag_of(str tag) except? 0:
    return <unsigned char>ord(tag) if tag else 0


cdef inline unsigned char *_grow(Writer writer, Py_ssize_t size) except NULL:
    """`Writer._grow`, which is inline in its own module only."""
    if size > writer._room - writer._size:
        writer._enlarge(size)
    writer._size += size
    return writer._out + writer._size - size


cdef bint is_number(object value, int64_t *number) noexcept:
    """Return whether a value is an int of 64 bits, whose class has not changed how it compares: an IntEnum has not."""
    cdef int overflow = 0
    if not isinstance(value, int):
        return False
    if (<ComparingType *>(<PyObject *>value).ob_type).tp_richcompare is not _COMPARE_INTS:
        return False
    number[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0


cdef int put_field(Writer writer, int kind, object value) except -1:
    """One method argument or property, but for bits."""
    if kind == SHORTSTR_FIELD:
        return _put_short(writer, value, 255)
    if kind == TABLE_FIELD:
        return put_table(writer, value)
    if OCTET_FIELD <= kind <= SIGNED_LONGLONG_FIELD:
        return _put_number(writer, kind, value)
    if TEXT_FIELD <= kind <= TEXT_OR_OCTETS_FIELD or kind == OCTETS_FIELD:
        return _put_long(writer, kind, value)
    if kind == SHORT_TIME_FIELD or kind == NAIVE_TIME_FIELD:
        return _put_time(writer, value)
    if (kind == DOUBLE_FIELD or kind == FLOAT_FIELD) and type(value) is float:
        return writer._write_real(value, DOUBLE if kind == DOUBLE_FIELD else FLOAT, None)
    if kind == ARRAY_FIELD and (type(value) is list or value is None):
        return _put_array(writer, [] if value is None else value, 1)
    raise Declined


cdef int _put_number(Writer writer, int kind, object value) except -1:
    cdef int64_t number = 0
    cdef int64_t most = 0xFFFFFFFF
    if not is_number(value, &number):
        raise Declined
    if kind == SIGNED_LONGLONG_FIELD or kind == LONGLONG_FIELD and number >= 0:
        put64(_grow(writer, 8), <uint64_t>number)
        return 0
    if number < 0:
        raise Declined
    if kind == OCTET_FIELD and number <= 0xFF:
        _grow(writer, 1)[0] = <unsigned char>number
    elif kind == SHORT_FIELD and number <= 0xFFFF:
        put16(_grow(writer, 2), <uint32_t>number)
    elif kind == LONG_FIELD and number <= most:
        put32(_grow(writer, 4), <uint32_t>number)
    else:
        raise Declined
    return 0


cdef int _put_short(Writer writer, object value, Py_ssize_t longest) except -1:
    cdef Py_ssize_t size
    cdef const unsigned char *octets
    cdef unsigned char *p
    if type(value) is not str:
        raise Declined
    if PyUnicode_IS_COMPACT_ASCII(value):
        octets = <const unsigned char *>PyUnicode_DATA(value)
        size = PyUnicode_GET_LENGTH(value)
    else:
        value = PyUnicode_AsUTF8String(value)  # its UnicodeEncodeError declines as well
        octets = <const unsigned char *>PyBytes_AS_STRING(value)
        size = PyBytes_GET_SIZE(value)
    if size > longest:
        raise Declined
    p = _grow(writer, size + 1)
    p[0] = <unsigned char>size
    copy_short(p + 1, octets, size)
    return 0


cdef int _put_octets(Writer writer, const char *octets, Py_ssize_t size) except -1:
    cdef unsigned char *p
    if size > _MOST_LONG:
        raise Declined
    p = _grow(writer, size + 4)
    put32(p, <uint32_t>size)
    memcpy(p + 4, octets, <size_t>size)
    return 0


cdef int _put_text(Writer writer, object text) except -1:
    if PyUnicode_IS_COMPACT_ASCII(text):
        return _put_octets(writer, <const char *>PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text))
    octets = PyUnicode_AsUTF8String(text)
    return _put_octets(writer, PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets))


cdef int _put_long(Writer writer, int kind, object value) except -1:
    if type(value) is str:
        return _put_text(writer, value)
    if type(value) is not bytes or kind == TEXT_OR_OCTETS_FIELD:
        raise Declined
    return _put_octets(writer, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))


cdef int _put_time(Writer writer, object value) except -1:
    """A datetime whose zone is UTC, or that has none; of those before 1970 and beyond 32 bits, whole seconds."""
    cdef int64_t seconds
    if type(value) is not _datetime:
        raise Declined
    if not is_in_utc(value):
        raise Declined
    seconds = seconds_in_utc(value)
    if seconds < 0 or seconds > _MOST_LONG and datetime_microsecond(value) != 0:
        raise Declined
    put64(_grow(writer, 8), <uint64_t>seconds)
    return 0


# -- field tables

cdef int put_table(Writer writer, object table) except -1:
    """A whole field table; None is an empty one."""
    if table is None:
        put32(_grow(writer, 4), 0)
        return 0
    if type(table) is dict:
        return _put_pairs(writer, table, 1)
    return _put_unreadable(writer, table)


cdef int _put_unreadable(Writer writer, object table) except -1:
    """A table that could not be read, as it came."""
    if type(table) is not UnreadableTable or type(table.octets) is not bytes:
        raise Declined
    return _put_octets(writer, PyBytes_AS_STRING(table.octets), PyBytes_GET_SIZE(table.octets))


cdef int _put_pairs(Writer writer, dict table, Py_ssize_t depth) except -1:
    cdef PeerRules rules = <PeerRules>writer._rules
    cdef Py_ssize_t at = _begin(writer, depth)
    if rules.sorted_keys and len(table) > 1:
        keys = PyDict_Keys(table)
        for key in keys:
            if type(key) is not str:
                raise Declined  # before anything of it is called
        PyList_Sort(keys)
        for key in keys:
            _put_short(writer, key, rules.longest_key)
            _put_value(writer, table[key], depth)
    else:
        for key, value in table.items():
            _put_short(writer, key, rules.longest_key)
            _put_value(writer, value, depth)
    return _end(writer, at)


cdef int _put_array(Writer writer, object items, Py_ssize_t depth) except -1:
    cdef Py_ssize_t at = _begin(writer, depth)
    for item in items:
        _put_value(writer, item, depth)
    return _end(writer, at)


cdef Py_ssize_t _begin(Writer writer, Py_ssize_t depth) except -1:
    if depth > writer._rules.depth_limit:
        raise Declined
    _grow(writer, 4)
    return writer._size


cdef int _end(Writer writer, Py_ssize_t at) except -1:
    if writer._size - at > _MOST_LONG:
        raise Declined
    put32(writer._out + at - 4, <uint32_t>(writer._size - at))
    return 0


cdef int _put_value(Writer writer, object value, Py_ssize_t depth) except -1:
    """A tag chosen from the value's type, then the value."""
    cdef PeerRules rules = <PeerRules>writer._rules
    cdef unsigned char *p
    cdef type kind = type(value)
    if kind is str:
        _grow(writer, 1)[0] = c"S"
        return _put_text(writer, value)
    if kind is bool:
        p = _grow(writer, 2)
        p[0] = c"t"
        p[1] = 1 if value is True else 0
        return 0
    if kind is float and rules.float_tag:
        _grow(writer, 1)[0] = rules.float_tag
        return writer._write_real(value, DOUBLE if rules.float_tag == c"d" else FLOAT, None)
    if value is None:
        _grow(writer, 1)[0] = c"V"
        return 0
    if kind is dict:
        _grow(writer, 1)[0] = c"F"
        return _put_pairs(writer, value, depth + 1)
    if kind is list or kind is tuple and rules.tuples:
        _grow(writer, 1)[0] = c"A"
        return _put_array(writer, value, depth + 1)
    if isinstance(value, int):
        return _put_integer(writer, rules, value)
    return _put_seldom(writer, rules, value)


cdef int _put_integer(Writer writer, PeerRules rules, object value) except -1:
    """By the first tag whose range holds the number; a number of the peer's own class has 8 octets."""
    cdef int64_t number = 0
    cdef IntegerTag *choice
    cdef unsigned char *p
    cdef int least_octets = 8 if type(value) is rules.own_int else 0
    if not is_number(value, &number):
        raise Declined
    for at in range(rules.integer_count):
        choice = &rules.integers[at]
        if choice.least <= number <= choice.most and choice.octets >= least_octets:
            p = _grow(writer, choice.octets + 1)
            p[0] = choice.tag
            if choice.octets == 1:
                p[1] = <unsigned char>(number & 0xFF)
            elif choice.octets == 2:
                put16(p + 1, <uint32_t>(number & 0xFFFF))
            elif choice.octets == 4:
                put32(p + 1, <uint32_t>(number & _MOST_LONG))
            else:
                put64(p + 1, <uint64_t>number)
            return 0
    raise Declined


cdef int _put_seldom(Writer writer, PeerRules rules, object value) except -1:
    cdef unsigned char *p
    if type(value) is bytes and rules.bytes_tag:
        _grow(writer, 1)[0] = rules.bytes_tag
        return _put_octets(writer, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    if type(value) is bytearray and rules.bytearray_tag:
        _grow(writer, 1)[0] = rules.bytearray_tag
        octets = bytes(value)  # which nobody else can resize meanwhile
        return _put_octets(writer, PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets))
    if type(value) is _datetime:
        _grow(writer, 1)[0] = c"T"
        return _put_time(writer, value)
    if type(value) is _Decimal and rules.decimal is not None:
        scale, mantissa = rules.decimal(value)
        if not 0 <= scale <= 255 or not -0x80000000 <= mantissa <= 0x7FFFFFFF:
            raise Declined
        p = _grow(writer, 6)
        p[0] = c"D"
        p[1] = <unsigned char>(<int>scale)
        put32(p + 2, <uint32_t>(<int32_t>mantissa))
        return 0
    _grow(writer, 1)[0] = c"F"
    return _put_unreadable(writer, value)
