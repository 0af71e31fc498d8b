# cython: boundscheck=False, wraparound=False, cdivision=True
# distutils: extra_compile_args = -fno-builtin-memset
"""Writing wire types, in C. The twin of writer_py.py: same octets, same refusals.

All pointer work on output is in this file. A `Writer` collects one answer in memory of its own and gives it
out whole: a value that cannot be carried raises `EncodeError` before anything has left. `_grow` is the only
way to room in it.

The compiler is kept from clearing a new writer inline, which may take longer to begin than a call to end.

`isinstance` is asked about one Python class at a time: given several, Cython takes an error for a yes.
"""

cimport cython

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memset

from ..errors import EncodeError
from ..profiles import KIND_NAMES, profiles_with, table_profile
from ..types import FieldValue, InlineContent, ReferenceContent, UnreadableTable
from .civil cimport import_datetime, is_in_utc, seconds_in_utc
from .fields cimport (
    LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, OCTETS_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TIME_FIELD,
)
from .ints cimport unsigned_value
from .kinds cimport (
    ARRAY, BOOL, CHARACTER, DECIMAL, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, LONGSTR, OCTETS, SHORTSTR,
    TABLE, TIMESTAMP, UINT8, UINT16, UINT32, UINT64, VOID,
)
from .octets cimport copy_short, put16, put32, put64
from .rawtable_c cimport RawTable
from .slots.sharing_c import share
from .values import (
    INTEGER_TAGS,
    RANGES,
    exact_int,
    named,
    not_finite,
    octets_of,
    scaled,
    seconds_of,
    shown,
    utf8,
)
from .wire cimport MAX_PAYLOAD, OVERHEAD

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    bint is_text "PyUnicode_Check"(PyObject *value)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject *text)
    void *characters "PyUnicode_DATA"(PyObject *text)
    Py_ssize_t length "PyUnicode_GET_LENGTH"(PyObject *text)

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define AMQPCODEC_KEPT 0
    #else
    #define AMQPCODEC_KEPT 1
    #endif
    """
    enum:
        KEPT "AMQPCODEC_KEPT"  # whether a writer can be kept for the next call

cdef extern from "Python.h":
    Py_ssize_t references "Py_REFCNT"(object thing) noexcept

import_datetime()

cdef uint64_t _MAX_SIZE = 0xFFFFFFFFU


cdef bytes _utf8(object text, object field):
    try:
        return PyUnicode_AsUTF8String(text)
    except UnicodeEncodeError:
        return utf8(text, field)  # knows about surrogates


# Errors are put together in functions of their own, which keeps what is on the hot path small.

cdef uint64_t _checked_integer(object value, uint64_t most, object what, object field) except? 0:
    exact = exact_int(value, what, field)
    if not 0 <= exact <= most:
        raise EncodeError(f"{what} must be 0 to {most}, not {shown(exact)}", field)
    return PyLong_AsUnsignedLongLong(exact)


cdef object _bad_shortstr(Py_ssize_t size, object field):
    if size > 255:
        return EncodeError(f"shortstr must have at most 255 octets, not {size}", field)
    return EncodeError("shortstr holds a zero octet", field)


cdef object _oversized(object what, Py_ssize_t size, object field):
    return EncodeError(f"{what} must have at most {_MAX_SIZE} octets, not {size}", field)


cdef object _oversized_frame(Py_ssize_t size, long long size_limit):
    return EncodeError(f"frame of {size + OVERHEAD} octets, frame_max {size_limit + OVERHEAD}")


cdef object _too_deep(Py_ssize_t limit, object field):
    return EncodeError(f"tables nested deeper than {limit}", field)


cdef object _expected(object what, object value, object field):
    return EncodeError(f"expected {what}, not {named(value)}", field)


cdef inline bint _is_mapping(object value) except -1:
    """Return whether a value is a mapping, by its class where a decoder made it: asking an abstract base
    class takes as long as writing a small table."""
    return isinstance(value, dict) or isinstance(value, RawTable) or isinstance(value, Mapping)


cdef object _no_bit(object value, object field):
    return EncodeError(f"a bit must be True or False, not {named(value)}", field)


# The last writer made serves the next call as well, unless it is still in use: making one costs as much as writing
# a short method.
cdef Writer _spare = None


cdef void release(Writer writer) noexcept:
    """Let a writer go once its call is over."""
    global _spare
    if writer is _spare:
        _spare = None


cdef class WriterRules:
    """Rules for everything that an encoder writes, worked out once."""

    def __cinit__(self, profile, bint strict, Py_ssize_t depth_limit):
        memset(self.kinds, 0, sizeof(self.kinds))
        self.profile = profile
        self.strict = strict
        self.finite = profile.finite
        self.depth_limit = depth_limit
        self.integer_tags = [(tag, profile.tags[tag]) for tag in INTEGER_TAGS if tag in profile.tags]
        self.octets_tag = <unsigned char>(<int>c"x" if "x" in profile.tags else <int>c"S")
        for tag, kind in profile.tags.items():
            self.kinds[<int>ord(tag)] = kind

    cdef Writer writer(self):
        """A writer by these rules, with nothing written yet."""
        global _spare
        cdef Writer writer = _spare
        if writer is None or references(writer) != 2:  # the variable's and `_spare`'s
            writer = Writer.__new__(Writer)
            writer._out = writer._small
            writer._room = SMALL
            if KEPT:
                _spare = writer
        writer._rules = self
        writer._size = 0
        return writer

    cdef long long payload_limit(self, object frame_max) except -1:
        """Octets a frame may carry where whole frames have at most `frame_max`, 0 for no limit."""
        cdef uint64_t number = 0
        if type(frame_max) is int:
            if unsigned_value(frame_max, &number) and number > OVERHEAD:
                return <long long>min(number - OVERHEAD, <uint64_t>MAX_PAYLOAD)
        else:
            frame_max = exact_int(frame_max, "frame_max", "frame_max")
        if frame_max == 0:
            return MAX_PAYLOAD
        if frame_max <= OVERHEAD:
            raise EncodeError(f"frame_max must be 0 or more than {OVERHEAD}, not {frame_max}")
        return min(frame_max - OVERHEAD, MAX_PAYLOAD)


@cache
def writer_rules(profile, strict, depth_limit):
    """The rules of a profile's name, made once: every encoder that writes by them shares them."""
    rules = WriterRules(table_profile(profile), strict, depth_limit)
    share([rules])
    return rules


@cython.final
@cython.no_gc  # no cycle can run through it
cdef class Writer:
    """Collects octets, checking every value against its wire type. Made by `WriterRules.writer`."""

    cdef int _enlarge(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t room = self._size + size + (self._size + size) // 2
        if self._heap is None:
            release(self)  # or the memory would stay
            self._heap = PyByteArray_FromStringAndSize(<const char *>self._small, self._size)
        PyByteArray_Resize(self._heap, room)
        self._out = <unsigned char *>PyByteArray_AS_STRING(self._heap)
        self._room = room
        return 0

    # -- frames

    cdef int _refuse_frame(self, Py_ssize_t size, long long size_limit) except -1:
        raise _oversized_frame(size, size_limit)

    cdef int put_envelope(self, int frame_type, object channel, Py_ssize_t size) except -1:
        """Write an envelope whose payload of `size` octets follows elsewhere."""
        cdef Py_ssize_t at = self.begin_frame(frame_type, channel)
        put32(self._out + at + 3, <uint32_t>size)
        return 0

    cdef int ids(self, int class_id, int method_id) except -1:
        """Write the ids that begin a method."""
        cdef unsigned char *p = self._grow(4)
        put16(p, <uint32_t>class_id)
        put16(p + 2, <uint32_t>method_id)
        return 0

    cdef uint32_t weight(self, object value) except? 0:
        """The weight of a content header, checked."""
        return <uint32_t>self._integer(value, 0xFFFF, "short", "weight")

    cdef uint64_t body_size(self, object value) except? 0:
        """The body size of a content header, checked."""
        return self._integer(value, 0xFFFFFFFFFFFFFFFFU, "longlong", "body-size")

    cdef object finish(self):
        """Everything written."""
        return PyBytes_FromStringAndSize(<const char *>self._out, self._size)

    cdef object finish_with(self, int frame_type, object channel, object octets, long long size_limit):
        """Everything written, then `octets` in frames of at most `size_limit` each: all in one copy."""
        cdef Py_buffer view
        if type(octets) is bytes:
            return self._joined(
                frame_type, channel, PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets), size_limit
            )
        PyObject_GetBuffer(octets, &view, PyBUF_SIMPLE)
        try:
            return self._joined(frame_type, channel, <const char *>view.buf, view.len, size_limit)
        finally:
            PyBuffer_Release(&view)

    cdef object _joined(
        self, int frame_type, object channel, const char *octets, Py_ssize_t size, long long size_limit
    ):
        cdef uint32_t number = <uint32_t>self._integer(channel, 0xFFFF, "short", "channel")
        cdef Py_ssize_t piece = size if size < size_limit else <Py_ssize_t>size_limit
        cdef Py_ssize_t frames = (size + piece - 1) // piece if piece else 0
        cdef unsigned char *p
        whole = PyBytes_FromStringAndSize(NULL, self._size + size + frames * 8)
        p = <unsigned char *>PyBytes_AS_STRING(whole)
        memcpy(p, self._out, <size_t>self._size)
        p += self._size
        while size > 0:
            piece = size if size < piece else piece
            p[0] = <unsigned char>frame_type
            put16(p + 1, number)
            put32(p + 3, <uint32_t>piece)
            memcpy(p + 7, octets, <size_t>piece)
            p[7 + piece] = 0xCE
            p += piece + 8
            octets += piece
            size -= piece
        return whole

    # -- method arguments and properties

    cdef int octet(self, object value, object field) except -1:
        cdef uint64_t number = self._integer(value, 0xFF, "octet", field)
        self._grow(1)[0] = <unsigned char>number
        return 0

    cdef int short(self, object value, object field) except -1:
        cdef uint64_t number = self._integer(value, 0xFFFF, "short", field)
        put16(self._grow(2), <uint32_t>number)
        return 0

    cdef int long(self, object value, object field) except -1:
        cdef uint64_t number = self._integer(value, 0xFFFFFFFFU, "long", field)
        put32(self._grow(4), <uint32_t>number)
        return 0

    cdef int longlong(self, object value, object field) except -1:
        cdef uint64_t number = self._integer(value, 0xFFFFFFFFFFFFFFFFU, "longlong", field)
        put64(self._grow(8), number)
        return 0

    cdef int bit(self, object value, object field) except -1:
        """A bit's value for `bits`: only True and False, so that no other value slips into a flag."""
        if value is True:
            return 1
        if value is False:
            return 0
        raise _no_bit(value, field)

    cdef int bits(self, int octet) except -1:
        """Write one octet of packed bits."""
        self._grow(1)[0] = <unsigned char>octet
        return 0

    cdef int octets(self, bytes octets) except -1:
        """Write octets as they are."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(octets)
        memcpy(self._grow(size), PyBytes_AS_STRING(octets), <size_t>size)
        return 0

    cdef int word(self, int word) except -1:
        """Write 16 bits that need no check: property flags, ids."""
        put16(self._grow(2), <uint32_t>word)
        return 0

    cdef int timestamp(self, object value, object field) except -1:
        cdef int64_t seconds
        if type(value) is datetime and is_in_utc(value):
            seconds = seconds_in_utc(value)
            if seconds >= 0:
                put64(self._grow(8), <uint64_t>seconds)
                return 0
        if type(value) is not int and isinstance(value, datetime):
            value = seconds_of(value, field)
        return self.longlong(value, field)

    cdef int shortstr(self, PyObject *value, object field) except -1:
        """A reference to the text is not counted, since threads may write the same one all the time."""
        cdef const unsigned char *octets
        cdef Py_ssize_t size
        cdef unsigned char *p
        if not is_text(value) or not is_ascii(value):
            return self._other_shortstr(<object>value, field)
        octets = <const unsigned char *>characters(value)
        size = length(value)
        if size > 255 or self._rules.strict:
            return self._put_short(octets, size, field)
        p = self._grow(size + 1)  # as `_put_short` does where nothing is left to check
        p[0] = <unsigned char>size
        copy_short(p + 1, octets, size)
        return 0

    cdef int longstr(self, object value, object field) except -1:
        if not isinstance(value, str):
            return self._sized(octets_of(value, field), field)
        if PyUnicode_IS_COMPACT_ASCII(value):
            return self._put_sized(<const char *>PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value), field)
        return self._sized(_utf8(value, field), field)

    cdef int content(self, object value, object field) except -1:
        if not (isinstance(value, InlineContent) or isinstance(value, ReferenceContent)):
            raise EncodeError(f"expected InlineContent or ReferenceContent, not {named(value)}", field)
        self._grow(1)[0] = 1 if isinstance(value, ReferenceContent) else 0
        return self.longstr(value.octets, field)

    cdef int field(self, int kind, object value, object name) except -1:
        """One method argument or property by the kinds of fields.pxd, but for bits."""
        if kind == SHORTSTR_FIELD:
            return self.shortstr(<PyObject *>value, name)
        if kind == LONGLONG_FIELD:
            return self.longlong(value, name)
        if kind == TABLE_FIELD:
            return self.table(value, name)
        if kind == SHORT_FIELD:
            return self.short(value, name)
        if kind == OCTET_FIELD:
            return self.octet(value, name)
        if kind == LONG_FIELD:
            return self.long(value, name)
        if kind == OCTETS_FIELD:
            return self.longstr(value, name)
        return self.timestamp(value, name) if kind == TIME_FIELD else self.content(value, name)

    cdef int table(self, object value, object field) except -1:
        """A whole field table from a mapping; a `RawTable` or `UnreadableTable` goes out as it came in."""
        if isinstance(value, RawTable):
            return self._kept(value, field)
        if not _is_mapping(value):
            raise _expected("a mapping", value, field)
        try:
            return self._table(value, 1, field)
        except RecursionError:
            raise  # the stack was full before the limit on depth was reached: no fault of the table
        except RuntimeError as error:
            raise EncodeError("the table was changed while being encoded", field) from error

    cdef int _other_shortstr(self, object value, object field) except -1:
        if not isinstance(value, str):
            raise EncodeError(f"shortstr must be a str, not {named(value)}", field)
        octets = _utf8(value, field)
        return self._put_short(<const unsigned char *>PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets), field)

    cdef int _put_short(self, const unsigned char *octets, Py_ssize_t size, object field) except -1:
        cdef unsigned char *p
        if size > 255 or (self._rules.strict and memchr(octets, 0, <size_t>size) is not NULL):
            raise _bad_shortstr(size, field)
        p = self._grow(size + 1)
        p[0] = <unsigned char>size
        copy_short(p + 1, octets, size)
        return 0

    # -- checks shared by the above

    cdef uint64_t _integer(self, object value, uint64_t most, object what, object field) except? 0:
        cdef uint64_t number = 0
        if type(value) is int and unsigned_value(value, &number) and number <= most:
            return number
        return _checked_integer(value, most, what, field)

    cdef int _sized(self, bytes octets, object field) except -1:
        return self._put_sized(PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets), field)

    cdef int _put_sized(self, const char *octets, Py_ssize_t size, object field) except -1:
        cdef unsigned char *p
        if <uint64_t>size > _MAX_SIZE:
            raise _oversized("longstr", size, field)
        p = self._grow(size + 4)
        put32(p, <uint32_t>size)
        memcpy(p + 4, octets, <size_t>size)
        return 0

    # -- field tables

    cdef int _table(self, object table, Py_ssize_t depth, object field) except -1:
        cdef Py_ssize_t at
        if type(table) is not dict and isinstance(table, RawTable):
            return self._kept(table, field)
        if type(table) is not dict and isinstance(table, UnreadableTable):
            return self._sized(octets_of(table.octets, field), field)
        at = self._begin(depth, field)
        if type(table) is dict:
            self._pairs(table, depth, field)
        else:
            self._pairs_of_mapping(table, depth, field)
        return self._end(at, field)

    cdef inline int _kept(self, object table, object field) except -1:
        # One made around its constructor holds no octets at all.
        cdef bytes octets = (<RawTable>table)._octets
        return self._sized(b"" if octets is None else octets, field)

    cdef int _pairs(self, dict table, Py_ssize_t depth, object field) except -1:
        # A dict, so that C goes through it; `_pairs_of_mapping` is the same for what has only methods.
        cdef Py_ssize_t left = len(table)
        key = None
        try:
            for key, value in table.items():
                self.shortstr(<PyObject *>key, field)
                self._value(value, depth, field)
                left -= 1
            if left != 0:
                raise RuntimeError("dictionary keys changed during iteration")
        except EncodeError as error:
            error.path = (key, *error.path)
            raise
        return 0

    cdef int _pairs_of_mapping(self, object table, Py_ssize_t depth, object field) except -1:
        key = None
        try:
            for key, value in table.items():
                self.shortstr(<PyObject *>key, field)
                self._value(value, depth, field)
        except EncodeError as error:
            error.path = (key, *error.path)
            raise
        return 0

    cdef int _array(self, object items, Py_ssize_t depth, object field) except -1:
        cdef Py_ssize_t at = self._begin(depth, field)
        cdef Py_ssize_t index = 0
        cdef Py_ssize_t size
        try:
            size = len(items)
            for value in items:
                if index == size:
                    break
                self._value(value, depth, field)
                index += 1
            if index != size or len(items) != size:
                raise RuntimeError("list changed size during iteration")
        except EncodeError as error:
            error.path = (index, *error.path)
            raise
        return self._end(at, field)

    cdef Py_ssize_t _begin(self, Py_ssize_t depth, object field) except -1:
        if depth > self._rules.depth_limit:
            raise _too_deep(self._rules.depth_limit, field)
        self._grow(4)
        return self._size

    cdef int _end(self, Py_ssize_t at, object field) except -1:
        cdef Py_ssize_t size = self._size - at
        if <uint64_t>size > _MAX_SIZE:
            raise _oversized("table", size, field)
        put32(self._out + at - 4, <uint32_t>size)
        return 0

    cdef int _value(self, object value, Py_ssize_t depth, object field) except -1:
        """A tag chosen from the value's Python type, then the value."""
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, bool):
            self._tag(c"t", BOOL, value, field)
            return self.bits(1 if value is True else 0)
        if isinstance(value, int):
            return self._int(value, field)
        if isinstance(value, float):
            self._tag(c"d", DOUBLE, value, field)
            return self._write_real(value, DOUBLE, field)
        if value is None:
            return self._tag(c"V", VOID, value, field)
        if isinstance(value, dict):
            self._tag(c"F", TABLE, value, field)
            return self._table(value, depth + 1, field)
        if isinstance(value, (list, tuple)):
            self._tag(c"A", ARRAY, value, field)
            return self._array(value, depth + 1, field)
        if isinstance(value, FieldValue):
            return self._tagged(value, depth, field)
        if self._seldom_value(value, field):
            return 0
        if not _is_mapping(value):
            raise EncodeError(f"no table tag carries {named(value)}", field)
        self._tag(c"F", TABLE, value, field)
        return self._table(value, depth + 1, field)

    cdef int _text(self, object value, object field) except -1:
        cdef Py_ssize_t size = PyUnicode_GET_LENGTH(value)
        cdef unsigned char *p
        if PyUnicode_IS_COMPACT_ASCII(value) and <uint64_t>size <= _MAX_SIZE and self._rules.kinds[c"S"]:
            p = self._grow(size + 5)  # what the calls below would do one by one
            p[0] = c"S"
            put32(p + 1, <uint32_t>size)
            memcpy(p + 5, PyUnicode_DATA(value), <size_t>size)
            return 0
        self._tag(c"S", LONGSTR, value, field)
        return self.longstr(value, field)

    cdef bint _seldom_value(self, object value, object field) except -1:
        """A value of a type seldom met, that holds no other; False if it is of none of those."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            self._tag(self._rules.octets_tag, OCTETS, value, field)
            self._sized(octets_of(value, field), field)
        elif issubclass(type(value), datetime):
            self._tag(c"T", TIMESTAMP, value, field)
            self.timestamp(value, field)
        elif issubclass(type(value), Decimal):
            self._tag(c"D", DECIMAL, value, field)
            self._by_seldom_kind(value, DECIMAL, field)
        else:
            return False
        return True

    cdef inline int _tag(self, unsigned char tag, int kind, object value, object field) except -1:
        if self._rules.kinds[tag] == 0:
            self._refuse_tag(tag, kind, value, field)
        self._grow(1)[0] = tag
        return 0

    cdef int _refuse_tag(self, unsigned char tag, int kind, object value, object field) except -1:
        raise self._not_in_profile(f"{named(value)} (tag {chr(tag)!r})", kind, field)

    cdef int _int(self, object value, object field) except -1:
        cdef int overflow = 0
        cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
        cdef uint64_t wide = 0
        cdef unsigned char *p
        if overflow == 0 and -0x80000000 <= number <= 0x7FFFFFFF and self._rules.kinds[c"I"] == INT32:
            p = self._grow(5)
            p[0] = c"I"
            put32(p + 1, <uint32_t>(<uint64_t>number & 0xFFFFFFFFU))
            return 0
        if overflow == 0 and self._rules.kinds[c"l"] == INT64:
            return self._int64(c"l", <uint64_t>number)
        if self._rules.kinds[c"l"] == UINT64 and unsigned_value(value, &wide):
            return self._int64(c"l", wide)
        if overflow == 0 and self._rules.kinds[c"L"] == INT64:
            return self._int64(c"L", <uint64_t>number)
        exact = exact_int(value, "int", field)
        for tag, kind in self._rules.integer_tags:
            least, most = RANGES[kind]
            if least <= exact <= most:
                self._grow(1)[0] = <unsigned char>ord(tag)
                return self._write_integer(exact, kind, field)
        if not -(2**63) <= exact < 2**64:
            raise EncodeError("no table tag carries an int of more than 64 bits", field)
        raise self._not_in_profile(str(exact), INT64 if exact < 2**63 else UINT64, field)

    cdef int _int64(self, unsigned char tag, uint64_t number) except -1:
        cdef unsigned char *p = self._grow(9)
        p[0] = tag
        put64(p + 1, number)
        return 0

    cdef int _tagged(self, object wrapper, Py_ssize_t depth, object field) except -1:
        cdef int kind = self._chosen_tag(wrapper, field)
        value = wrapper.value
        if kind == TABLE:
            if not _is_mapping(value):
                raise _expected("a mapping", value, field)
            return self._table(value, depth + 1, field)
        if kind == ARRAY:
            if not isinstance(value, (list, tuple)):
                raise _expected("a list or tuple", value, field)
            return self._array(value, depth + 1, field)
        return self._by_kind(value, kind, field)

    cdef int _chosen_tag(self, object wrapper, object field) except -1:
        """Write the tag of a `FieldValue`; the kind it stands for."""
        tag = wrapper.tag
        tag = str.__str__(tag) if isinstance(tag, str) else tag
        kind = self._rules.profile.tags.get(tag) if type(tag) is str else None
        if kind is None:
            raise EncodeError(f"table profile {self._rules.profile.name} has no tag {tag!r}", field)
        self._grow(1)[0] = <unsigned char>ord(tag)
        return kind

    cdef object _not_in_profile(self, object what, int kind, object field):
        able = profiles_with(kind)
        return EncodeError(f"table profile {self._rules.profile.name} cannot carry {what}; {able} can", field)

    cdef int _by_kind(self, object value, int kind, object field) except -1:
        """A value that holds no other, after its tag and checked against the tag's kind."""
        if kind == LONGSTR:
            return self.longstr(value, field)
        if kind == BOOL:
            return self.bits(self.bit(value, field))
        if kind == DOUBLE or kind == FLOAT:
            return self._write_real(value, kind, field)
        if kind == OCTETS:
            return self._sized(octets_of(value, field), field)
        if kind == TIMESTAMP:
            return self.timestamp(value, field)
        if kind == SHORTSTR:
            return self.shortstr(<PyObject *>value, field)
        return self._by_seldom_kind(value, kind, field)

    cdef int _by_seldom_kind(self, object value, int kind, object field) except -1:
        cdef unsigned char *p
        if kind == DECIMAL:
            scale, mantissa = scaled(value, field)
            p = self._grow(5)
            p[0] = <unsigned char>scale
            put32(p + 1, <uint32_t>(<int32_t>mantissa))
            return 0
        if kind == VOID:
            if value is not None:
                raise EncodeError(f"void must be None, not {named(value)}", field)
            return 0
        if kind == CHARACTER:
            text = str.__str__(value) if isinstance(value, str) else ""
            if len(text) != 1 or ord(text) > 255:
                raise EncodeError("character must be a str of one character up to U+00FF", field)
            self._grow(1)[0] = <unsigned char>ord(text)
            return 0
        return self._write_integer(value, kind, field)

    cdef int _write_integer(self, object value, int kind, object field) except -1:
        cdef uint64_t number
        exact = exact_int(value, KIND_NAMES[kind], field)
        least, most = RANGES[kind]
        if not least <= exact <= most:
            raise EncodeError(f"{KIND_NAMES[kind]} must be {least} to {most}, not {shown(exact)}", field)
        number = <uint64_t>(<int64_t>exact) if exact < 0 else <uint64_t>exact
        if kind == INT8 or kind == UINT8:
            self._grow(1)[0] = <unsigned char>(number & 0xFF)
        elif kind == INT16 or kind == UINT16:
            put16(self._grow(2), <uint32_t>(number & 0xFFFF))
        elif kind == INT32 or kind == UINT32:
            put32(self._grow(4), <uint32_t>(number & 0xFFFFFFFFU))
        else:
            put64(self._grow(8), number)
        return 0

    cdef int _write_real(self, object value, int kind, object field) except -1:
        cdef double real
        cdef float narrow
        cdef uint32_t bits32
        cdef uint64_t bits64
        if not isinstance(value, float):
            raise EncodeError(f"{KIND_NAMES[kind]} must be a float, not {named(value)}", field)
        real = value
        if self._rules.finite and not isfinite(real):
            raise not_finite(self._rules.profile.name, real, field)
        if kind == DOUBLE:
            memcpy(&bits64, &real, 8)
            put64(self._grow(8), bits64)
            return 0
        narrow = <float>real
        if isfinite(real) and not isfinite(narrow):
            raise EncodeError(f"float cannot hold {real!r}", field)
        memcpy(&bits32, &narrow, 4)
        put32(self._grow(4), bits32)
        return 0
