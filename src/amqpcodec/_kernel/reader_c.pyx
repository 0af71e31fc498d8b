# cython: boundscheck=False, wraparound=False
"""Reading wire types, in C. The twin of reader_py.py: same names, values, errors and offsets.

All pointer work on input is in this file. A `Reader` stands on the payload of one frame and compares
every length with what is left before it moves: lengths are never added to pointers unchecked.
"""

cimport cython

from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_Contains, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memset

from decimal import Decimal

from .._protocol.codes import FRAME_ERROR, RESOURCE_ERROR, SYNTAX_ERROR
from ..errors import DecodeError
from ..limits import table_limits
from ..types import InlineContent, ReferenceContent, UnreadableTable

from .civil cimport LAST_SECOND, import_datetime, naive_time, time_of
from .fields cimport (
    ARRAY_FIELD, CONTENT_FIELD, DOUBLE_FIELD, FLOAT_FIELD, LONG_FIELD, LONGLONG_FIELD, NAIVE_TIME_FIELD, OCTET_FIELD,
    OCTETS_FIELD, SHORT_FIELD, SHORT_TIME_FIELD, SHORTSTR_FIELD, SIGNED_LONGLONG_FIELD, TABLE_FIELD, TEXT_FIELD,
    TEXT_OR_OCTETS_FIELD, TIME_FIELD,
)
from .kept_tables cimport find_table, miss_table
from .kinds cimport (
    ARRAY, BOOL, BYTEARRAY, CHARACTER, CUT_DOUBLE, CUT_FLOAT, DECIMAL, DOUBLE, FLOAT, INT8, INT16,
    INT32, INT64, LONGSTR, NAIVE_TIME, OCTETS, OWN_INT, QUOTIENT, SCALED, SHORT_TIME, SHORTSTR, TABLE, TEXT,
    TIMESTAMP, UINT8, UINT16, UINT32, UINT64, VOID,
)
from .octets cimport f32, f64, is_ascii, u16, u32, u64
from .rawtable_c cimport kept_table
from .table_cache_c cimport CACHED_TABLE, TableCache
from .texts cimport CACHED_OCTETS, is_kept, mark_of, mix_of, note_miss, place_of
from .framing import framing_error
from .values import Declined

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void *PyUnicode_DATA(object text)
    char *PyByteArray_AS_STRING(object array)

import_datetime()

# What a table may be refused by; the rules of another library refuse values in more ways.
cdef tuple _REFUSALS = (DecodeError, Declined, ArithmeticError, UnicodeDecodeError)


cdef inline object _ascii_text(const unsigned char *p, Py_ssize_t size):
    text = PyUnicode_New(size, 127)
    memcpy(PyUnicode_DATA(text), p, <size_t>size)
    return text


cdef inline object _octets(const unsigned char *p, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char *>p, size)


cdef object _decimal(const unsigned char *p):
    return Decimal(f"{<int32_t>u32(p + 1)}E-{<int>p[0]}")


cdef class ReaderRules:
    """Rules for everything that a decoder reads, worked out once and shared freely."""

    def __cinit__(self, profile, bint strict, limits, bint raw_tables, bint tolerant=False):
        memset(self.kinds, 0, sizeof(self.kinds))
        self.profile_name = profile.name
        self.strict = strict
        self.tolerant = tolerant
        self.tolerant_inside = tolerant and not raw_tables  # of what stays octets, all is refused or nothing
        self.depth_limit = limits.table_depth
        self.octets_limit = limits.table_octets
        self.entries_limit = limits.table_entries
        self.items_limit = limits.array_items
        self.cache_slots = 1 << (limits.cached_strings.bit_length() - 1)
        self.raw_tables = raw_tables
        self.table_limits = table_limits(limits) if raw_tables else None
        self.declines = profile.values is not None
        if self.declines:
            self.octets_as_text = profile.values.octets_as_text
            self.own_int = profile.values.own_int
        for tag, kind in profile.readable(strict).items():
            self.kinds[<int>ord(tag)] = kind

    cdef Reader reader(self, bint keeps):
        """A reader by these rules; `keeps` tells that it will read many payloads, in which short strings and
        tables will repeat."""
        cdef Reader reader = Reader.__new__(Reader)
        reader._rules = self
        reader.strict = self.strict
        reader.attach(b"")
        reader._keeps = keeps
        return reader


@cython.final
@cython.freelist(4)
cdef class Reader:
    """A bounded cursor over one payload, with the rules for making values of what it reads."""

    def __dealloc__(self):
        if self._texts.places is not NULL:
            for slot in range(self._texts.mask + 1):
                Py_XDECREF(self._texts.places[slot].text)
            PyMem_Free(self._texts.places)
        if self._guesses is not NULL:
            for guess in (<Guess *>self._guesses)[: ARGUMENTS + PROPERTIES + KEYS]:
                Py_XDECREF(guess.text)
            PyMem_Free(self._guesses)

    # -- where the reader stands

    cdef int attach(self, object data) except -1:
        """Take the octets that the next calls speak of; of a bytearray, its size must not change."""
        if isinstance(data, bytes):
            self._data = <const unsigned char *>PyBytes_AS_STRING(data)
        elif isinstance(data, bytearray):
            self._data = <const unsigned char *>PyByteArray_AS_STRING(data)
        else:
            raise TypeError(f"expected bytes or a bytearray, not {type(data).__name__}")
        self._owner = data
        return 0

    cdef void aim(self, Py_ssize_t start, Py_ssize_t end, long long offset) noexcept:
        """Stand on data[start:end]; `offset` is where data[start] lies in the stream. A reader that keeps
        texts needs an envelope before `start`: with the length of a text, 8 octets before any. The head of a
        bytes object will do as well."""
        self._start = self._data + start
        self._pos = self._start
        self._end = self._data + end
        self._base = offset

    cdef int _refuse_envelope(
        self, FrameStatus status, Py_ssize_t at, long long size_limit, long long offset
    ) except -1:
        cdef object name = self.header_limit_name if self._data[at] == HEADER else self.limit_name
        raise framing_error(status, self.frame_size, self._owner, at, size_limit, offset, name)

    cdef bytes head(self):
        """The first four octets of the payload, as far as they are there; errors name the ids in them."""
        return _octets(self._start, min(4, self._end - self._start))

    cdef long long offset(self) noexcept:
        """Octets of the stream before the cursor."""
        return self._base + (self._pos - self._start)

    cdef int content_head(self) except -1:
        """Read the fixed part of a content header (0-9-1 section 4.2.6.1), and return its class id.

        That is kept, as are weight and body size.
        """
        cdef const unsigned char *p = self._pos
        if self._end - p < 12:
            self.short("class-id")  # one of the three raises
            self.short("weight")
            self.longlong("body-size")
        self.weight = u16(p + 2)
        self.body_size = u64(p + 4)
        self.class_id = u16(p)
        self._pos = p + 12
        return self.class_id

    cdef int _refuse_rest(self) except -1:
        raise self._error(FRAME_ERROR, f"{self._end - self._pos} octets left over", self._pos, None)

    cdef object refuse(self, int code, object message, Py_ssize_t back):
        """An error at `back` octets before the cursor."""
        return self._error(code, message, self._pos - back, None)

    cdef object refuse_frame(self, int code, object message):
        """An error at the channel of the frame whose payload the reader was aimed at."""
        return self._error(code, message, self._start - 6, None)

    cdef object _error(self, int code, object message, const unsigned char *at, object field):
        if self._rules.declines and not self._rules.tolerant:
            return Declined
        return DecodeError(message, code, self._base + (at - self._start), field=field)

    cdef object _short_of(self, object field, object what, Py_ssize_t need):
        message = f"{what} needs {need} octets, {self._end - self._pos} left"
        return self._error(FRAME_ERROR, message, self._pos, field)

    # -- method arguments and properties

    cdef object octet(self, object field):
        cdef const unsigned char *p = self._pos
        if p >= self._end:
            raise self._short_of(field, "octet", 1)
        self._pos = p + 1
        return <int>p[0]

    cdef int bits(self, object field) except -1:
        """One octet of packed bits, the first in the lowest place (0-9-1 section 4.2.5.2)."""
        cdef const unsigned char *p = self._pos
        if p >= self._end:
            raise self._short_of(field, "octet of bits", 1)
        self._pos = p + 1
        return p[0]

    cdef object short(self, object field):
        cdef const unsigned char *p = self._pos
        if self._end - p < 2:
            raise self._short_of(field, "short", 2)
        self._pos = p + 2
        return <int>u16(p)

    cdef object long(self, object field):
        cdef const unsigned char *p = self._pos
        if self._end - p < 4:
            raise self._short_of(field, "long", 4)
        self._pos = p + 4
        return u32(p)

    cdef object longlong(self, object field):
        cdef const unsigned char *p = self._pos
        if self._end - p < 8:
            raise self._short_of(field, "longlong", 8)
        self._pos = p + 8
        return u64(p)

    cdef object timestamp(self, object field):
        cdef const unsigned char *p = self._pos
        if self._end - p < 8:
            raise self._short_of(field, "timestamp", 8)
        self._pos = p + 8
        return self._time(u64(p))

    cdef inline object _time(self, uint64_t seconds):
        """The last one is kept, since messages in a row mostly come of the same second."""
        if seconds != self._last_seconds or self._last_time is None:
            self._last_time = time_of(seconds)
            self._last_seconds = seconds
        return self._last_time

    cdef object shortstr(self, object field):
        cdef const unsigned char *p = self._pos
        if p >= self._end or p[0] > self._end - p - 1:
            self._refuse_shortstr(field)
        self._pos = p + 1 + p[0]
        return self._text(p + 1, p[0], field)

    cdef int _refuse_shortstr(self, object field) except -1:
        cdef const unsigned char *p = self._pos
        if p >= self._end:
            raise self._short_of(field, "length of a shortstr", 1)
        message = f"shortstr of {p[0]} octets, {self._end - p - 1} left"
        raise self._error(FRAME_ERROR, message, p, field)

    cdef object longstr(self, object field):
        cdef const unsigned char *p = self._pos
        cdef Py_ssize_t left = self._end - p - 4
        if left < 0:
            raise self._short_of(field, "length of a longstr", 4)
        if u32(p) > <uint64_t>left:
            raise self._error(FRAME_ERROR, f"longstr of {u32(p)} octets, {left} left", p, field)
        self._pos = p + 4 + u32(p)
        return _octets(p + 4, <Py_ssize_t>u32(p))

    cdef object content(self, object field):
        """A 0-9 content: a discriminator, then a longstr (0-9 section 4.2.5.6)."""
        kind = self.octet(field)
        if kind > 1:
            message = f"content discriminator {kind}, not 0 or 1"
            raise self._error(SYNTAX_ERROR, message, self._pos - 1, field)
        octets = self.longstr(field)
        return ReferenceContent(octets) if kind else InlineContent(octets)

    cdef object table(self, object field):
        """A whole field table: a dict, or a `RawTable` where the reader was asked for those. A tolerant reader
        makes an `UnreadableTable` of one that cannot be read, if its length is good."""
        cdef const unsigned char *p = self._pos
        cdef Py_ssize_t left = self._end - p - 4
        if left < 0:
            raise self._short_of(field, "length of a table", 4)
        if u32(p) > <uint64_t>left:
            raise self._error(FRAME_ERROR, f"table of {u32(p)} octets, {left} left", p, field)
        if self._rules.tolerant:
            return _tolerated(self, p + 4, <Py_ssize_t>u32(p), 1, field)
        return self._sized_table(p + 4, <Py_ssize_t>u32(p), field)

    cdef inline object _sized_table(self, const unsigned char *start, Py_ssize_t size, object field):
        """The table whose entries have so many octets from there on."""
        self._check_size(size, field)
        self._pos = start
        self._entries = 0
        if self._rules.raw_tables:
            if self.strict:
                self._pairs(start + size, 1, field)  # what strict mode refuses must not hide in octets
            self._pos = start + size
            return kept_table(
                _octets(start, size), self._rules.profile_name, self._rules.table_limits, self._rules.tolerant
            )
        if self._keeps and 0 < size <= CACHED_TABLE:
            return self._cached_table(start, size, field)
        return self._pairs(start + size, 1, field)

    cdef object _unreadable(self, const unsigned char *start, Py_ssize_t size, object error):
        """The entries of so many octets from there on as octets, and stand behind them."""
        if isinstance(error, DecodeError):
            error = error.again()
        else:
            error = self._error(SYNTAX_ERROR, str(error) or f"{self._rules.profile_name} refuses a value", start, None)
        self._pos = start + size
        return UnreadableTable(_octets(start, size), error)

    cdef dict _cached_table(self, const unsigned char *start, Py_ssize_t size, object field):
        """The entries of a small table, which may repeat."""
        cdef uint64_t mark = mix_of(start, size) | 1  # 0 is for none
        if self._tables is None:
            self._tables = TableCache()
        table = find_table(self._tables, start, size, mark)
        if table is not None:
            self._pos = start + size
            return table
        table = self._pairs(start + size, 1, field)
        miss_table(self._tables, start, size, mark, table)
        return table

    cdef int _check_size(self, Py_ssize_t size, object field) except -1:
        if <uint64_t>size > self._rules.octets_limit:
            message = f"table of {size} octets, limit {self._rules.octets_limit}"
            raise self._error(RESOURCE_ERROR, message, self._pos, field)
        return 0

    cdef object pairs(self, object field):
        """All that is left as the entries of one table, its length known to the caller."""
        cdef const unsigned char *start = self._pos
        self._entries = 0
        try:
            self._check_size(self._end - start, field)
            return self._pairs(self._end, 1, field)
        except DecodeError as error:
            if not self._rules.tolerant:
                raise
            return self._unreadable(start, self._end - start, error)

    cdef object rest(self):
        """Everything up to the end, as bytes."""
        cdef const unsigned char *p = self._pos
        self._pos = self._end
        return _octets(p, self._end - p)

    cdef int flag_word(self) except -1:
        """One word of property flags (0-9-1 section 4.2.6.1); bit 0 says that another follows."""
        cdef const unsigned char *p = self._pos
        if self._end - p < 2:
            raise self._short_of(None, "word of property flags", 2)
        self._pos = p + 2
        return u16(p)

    cdef int further_flags(self, int last, int undefined) except -1:
        """Pass over flag words beyond those of the class; `last` is the last word read, `undefined`
        those of its bits that stand for no property. Strict mode refuses any bit without a property."""
        if self.strict and undefined:
            raise self.refuse(SYNTAX_ERROR, f"property flags {undefined:#06x} are not defined", 2)
        while last & 1:
            last = self.flag_word()
            if self.strict and last & 0xFFFE:
                raise self.refuse(SYNTAX_ERROR, f"property flags {last & 0xFFFE:#06x} are not defined", 2)
        return 0

    # -- text

    cdef inline object _text(self, const unsigned char *start, Py_ssize_t size, object field):
        """Octets as text. Short ASCII strings repeat (keys, names, content types), so some are kept."""
        cdef uint64_t mix
        cdef uint32_t mark
        cdef CachedText *kept
        if not self._keeps or not 0 < size <= CACHED_OCTETS:
            return self._new_text(start, size, field)
        if self._texts.places is NULL:
            self._make_cache()
        mix = mix_of(start, size)
        mark = mark_of(mix, size)
        kept = place_of(&self._texts, mix)
        if is_kept(kept, mark, start, size):
            return <object>kept.text
        text = self._new_text(start, size, field)
        if type(text) is str:  # octets that are no UTF-8 may be bytes
            note_miss(&self._texts, kept, mark, <PyObject *>text)
        return text

    cdef int _make_cache(self) except -1:
        """Room for texts; made when the first comes, since it is most of what making a decoder would cost."""
        self._texts.mask = self._rules.cache_slots - 1
        self._texts.places = <CachedText *>PyMem_Calloc(self._rules.cache_slots, sizeof(CachedText))
        self._guesses = <Guesses *>PyMem_Calloc(1, sizeof(Guesses))
        if self._texts.places is NULL or self._guesses is NULL:
            raise MemoryError
        return 0

    cdef inline object _new_text(self, const unsigned char *start, Py_ssize_t size, object field):
        """Octets as text; what is not UTF-8 becomes surrogate escapes, which encode back unchanged."""
        if not is_ascii(start, size):
            return self._wide_text(start, size, field)
        if self.strict:
            self._refuse_zero(start, size, field)
        return _ascii_text(start, size)

    cdef object _wide_text(self, const unsigned char *start, Py_ssize_t size, object field):
        try:
            text = PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
        except UnicodeDecodeError:
            if self._rules.octets_as_text:
                return _octets(start, size)
            if self.strict or self._rules.declines:
                raise self._error(SYNTAX_ERROR, "shortstr is not UTF-8", start - 1, field) from None
            return PyUnicode_DecodeUTF8(<const char *>start, size, "surrogateescape")
        if self.strict:
            self._refuse_zero(start, size, field)
        return text

    cdef int _refuse_zero(self, const unsigned char *start, Py_ssize_t size, object field) except -1:
        if memchr(start, 0, <size_t>size) is not NULL:
            raise self._error(SYNTAX_ERROR, "shortstr holds a zero octet", start - 1, field)
        return 0

    # -- field tables

    cdef dict _pairs(self, const unsigned char *end, Py_ssize_t depth, object field):
        """Key, tag and value up to `end`; of two equal keys the later wins."""
        cdef const unsigned char *at
        cdef const unsigned char *stop
        cdef dict table = {}
        self._enter(depth, field)
        while self._pos < end:
            at = self._pos
            if at[0] >= end - at - 1:
                self._refuse_key(at, end, field)
            stop = at + 1 + at[0]
            key = self._text(at + 1, at[0], field)
            if self.strict and PyDict_Contains(table, key):
                self._refuse_twice(key, at, field)
            self._entries += 1
            if self._entries > self._rules.entries_limit:
                self._too_many(at, field)
            self._pos = stop + 1
            PyDict_SetItem(table, key, self._value(self._rules.kinds[stop[0]], end, depth, field))
        return table

    cdef int _refuse_key(self, const unsigned char *at, const unsigned char *end, object field) except -1:
        message = f"table key of {at[0]} octets and a tag, {end - at - 1} left"
        raise self._error(SYNTAX_ERROR, message, at, field)

    cdef int _refuse_twice(self, object key, const unsigned char *at, object field) except -1:
        raise self._error(SYNTAX_ERROR, f"table key {key!r} twice", at, field)

    cdef list _items(self, const unsigned char *end, Py_ssize_t depth, object field):
        """Tag and value up to `end`: a field array has no keys, and its length counts octets."""
        cdef const unsigned char *at
        cdef list items = []
        self._enter(depth, field)
        while self._pos < end:
            at = self._pos
            if <unsigned long long>PyList_GET_SIZE(items) >= self._rules.items_limit:
                self._too_many_items(at, field)
            self._entries += 1
            if self._entries > self._rules.entries_limit:
                self._too_many(at, field)
            self._pos = at + 1
            items.append(self._value(self._rules.kinds[at[0]], end, depth, field))
        return items

    cdef inline int _enter(self, Py_ssize_t depth, object field) except -1:
        if depth > self._rules.depth_limit:
            self._too_deep(field)
        return 0

    cdef int _too_deep(self, object field) except -1:
        message = f"tables nested deeper than {self._rules.depth_limit}"
        raise self._error(RESOURCE_ERROR, message, self._pos, field)

    cdef int _too_many(self, const unsigned char *at, object field) except -1:
        message = f"table of more than {self._rules.entries_limit} entries"
        raise self._error(RESOURCE_ERROR, message, at, field)

    cdef int _too_many_items(self, const unsigned char *at, object field) except -1:
        message = f"array of more than {self._rules.items_limit} items"
        raise self._error(RESOURCE_ERROR, message, at, field)

    cdef inline const unsigned char *_take(
        self, Py_ssize_t size, const unsigned char *end, object field
    ) except NULL:
        """Pass over `size` octets of a value; where they begin."""
        if size > end - self._pos:
            self._refuse_value(size, end, field)
        self._pos += size
        return self._pos - size

    cdef int _refuse_value(self, Py_ssize_t size, const unsigned char *end, object field) except -1:
        message = f"table value needs {size} octets, {end - self._pos} left"
        raise self._error(SYNTAX_ERROR, message, self._pos, field)

    cdef inline const unsigned char *_take_sized(self, const unsigned char *end, object field) except NULL:
        """Read a length and pass over as many octets; where they begin."""
        cdef const unsigned char *p = self._pos
        if end - p < 4:
            self._refuse_value(4, end, field)
        if u32(p) > <uint64_t>(end - p - 4):
            self._refuse_sized_value(p, end, field)
        self._pos = p + 4 + u32(p)
        return p + 4

    cdef int _refuse_sized_value(
        self, const unsigned char *p, const unsigned char *end, object field
    ) except -1:
        message = f"table value of {u32(p)} octets, {end - p - 4} left"
        raise self._error(SYNTAX_ERROR, message, p, field)

    cdef inline object _value(self, int kind, const unsigned char *end, Py_ssize_t depth, object field):
        """The value after a tag that means `kind`."""
        if kind == LONGSTR:
            return self._longstr_value(end, field)
        if kind == BOOL:
            return self._take(1, end, field)[0] != 0
        if kind == INT8:
            return <int>(<int8_t>self._take(1, end, field)[0])
        if kind == UINT8:
            return <int>self._take(1, end, field)[0]
        if kind == INT16:
            return <int>(<int16_t>u16(self._take(2, end, field)))
        if kind == UINT16:
            return <int>u16(self._take(2, end, field))
        if kind == INT32:
            return <int32_t>u32(self._take(4, end, field))
        if kind == UINT32:
            return u32(self._take(4, end, field))
        if kind == INT64:
            return <int64_t>u64(self._take(8, end, field))
        if kind == UINT64:
            return u64(self._take(8, end, field))
        if kind == FLOAT:
            return <double>f32(self._take(4, end, field))
        if kind == DOUBLE:
            return f64(self._take(8, end, field))
        if kind == TIMESTAMP:
            return self._time(u64(self._take(8, end, field)))
        if kind == VOID:
            return None
        return self._nested(kind, end, depth, field)

    cdef object _longstr_value(self, const unsigned char *end, object field):
        cdef const unsigned char *p = self._take_sized(end, field)
        return _long_text(p, self._pos - p)

    cdef object _nested(self, int kind, const unsigned char *end, Py_ssize_t depth, object field):
        """The kinds that hold others or are seldom met, and the tags nobody knows."""
        cdef const unsigned char *p
        if kind == TABLE or kind == ARRAY:
            p = self._take_sized(end, field)
            end = self._pos
            self._pos = p
            if kind == ARRAY:
                return self._items(end, depth + 1, field)
            if self._rules.tolerant_inside:
                return _tolerated(self, p, end - p, depth + 1, field)
            return self._pairs(end, depth + 1, field)
        if kind == OCTETS:
            p = self._take_sized(end, field)
            return _octets(p, self._pos - p)
        if kind == DECIMAL:
            return _decimal(self._take(5, end, field))
        if kind == SHORTSTR:
            p = self._take(1, end, field)
            p = self._take(p[0], end, field)
            return self._new_text(p, self._pos - p, field)
        if kind == CHARACTER:
            return chr(self._take(1, end, field)[0])
        if kind >= BYTEARRAY:
            return self._peer_value(kind, end)
        tag = chr((self._pos - 1)[0])
        message = f"tag {tag!r} is unknown to table profile {self._rules.profile_name}"
        raise self._error(SYNTAX_ERROR, message, self._pos - 1, field)

    # -- what only the codecs of other libraries have; each refusal is a `Declined`

    cdef object _peer_value(self, int kind, const unsigned char *end):
        """The table values whose octets these make other Python values of."""
        cdef const unsigned char *p
        if kind == TEXT or kind == BYTEARRAY:
            p = self._take_sized(end, None)
            if kind == TEXT:
                return _utf8_text(p, self._pos - p)
            return PyByteArray_FromStringAndSize(<const char *>p, self._pos - p)
        if kind == OWN_INT:
            return self._rules.own_int(<int64_t>u64(self._take(8, end, None)))
        if kind == CUT_FLOAT:
            return self._rules.own_int(<double>f32(self._take(4, end, None)))
        if kind == CUT_DOUBLE:
            return self._rules.own_int(f64(self._take(8, end, None)))
        if kind == SCALED:
            p = self._take(5, end, None)
            return Decimal(<int32_t>u32(p + 1)) * Decimal(10) ** -<int>p[0]
        if kind == QUOTIENT:
            p = self._take(5, end, None)
            return Decimal(<int32_t>u32(p + 1)) / Decimal(10 ** <object>(<int>p[0]))
        return _peer_time(kind, u64(self._take(8, end, None)))

    cdef object field(self, int kind, object name):
        """One method argument or property by the kinds of fields.pxd, but for bits."""
        if kind == SHORTSTR_FIELD:
            return self.shortstr(name)
        if kind == LONGLONG_FIELD:
            return self.longlong(name)
        if kind == TABLE_FIELD:
            return self.table(name)
        if kind == SHORT_FIELD:
            return self.short(name)
        if kind == OCTET_FIELD:
            return self.octet(name)
        if kind == LONG_FIELD:
            return self.long(name)
        if kind == OCTETS_FIELD:
            return self.longstr(name)
        return self._seldom_field(kind, name)

    cdef object _seldom_field(self, int kind, object name):
        cdef const unsigned char *p
        cdef const unsigned char *end = self._end
        if kind == SIGNED_LONGLONG_FIELD:
            return <int64_t>u64(self._take(8, end, None))
        if kind == TEXT_OR_OCTETS_FIELD:
            p = self._take_sized(end, None)
            return _long_text(p, self._pos - p)
        if kind == TEXT_FIELD:
            p = self._take_sized(end, None)
            return _utf8_text(p, self._pos - p)
        if kind == SHORT_TIME_FIELD:
            if u32(self._take(4, end, None)) != 0:
                raise Declined
            self._pos -= 4
            return self.timestamp(None)
        if kind == NAIVE_TIME_FIELD:
            return _peer_time(NAIVE_TIME, u64(self._take(8, end, None)))
        if kind == DOUBLE_FIELD:
            return f64(self._take(8, end, None))
        if kind == FLOAT_FIELD:
            return <double>f32(self._take(4, end, None))
        if kind == ARRAY_FIELD:
            p = self._take_sized(end, None)
            end = self._pos
            self._pos = p
            self._entries = 0
            return self._items(end, 1, None)
        if kind == TIME_FIELD:
            return self.timestamp(name)
        if kind == CONTENT_FIELD:
            return self.content(name)
        raise Declined


cdef object _tolerated(Reader reader, const unsigned char *start, Py_ssize_t size, Py_ssize_t depth, object field):
    """The table whose entries have so many octets from there on, or these as they are. In a function of its own:
    whoever catches exceptions is slower, also where none comes."""
    try:
        if depth == 1:
            return reader._sized_table(start, size, field)
        return reader._pairs(start + size, depth, field)
    except _REFUSALS as error:
        return reader._unreadable(start, size, error)


cdef object _utf8_text(const unsigned char *start, Py_ssize_t size):
    if is_ascii(start, size):
        return _ascii_text(start, size)
    return PyUnicode_DecodeUTF8(<const char *>start, size, NULL)  # a UnicodeDecodeError declines as well


cdef object _peer_time(int kind, uint64_t seconds):
    if seconds > LAST_SECOND or kind == SHORT_TIME and seconds > 0xFFFFFFFFU:
        raise Declined
    return naive_time(seconds) if kind == NAIVE_TIME else time_of(seconds)


cdef object _long_text(const unsigned char *start, Py_ssize_t size):
    """A longstr in a table: text, or the octets themselves where they are not UTF-8."""
    return _ascii_text(start, size) if is_ascii(start, size) else _wide_long_text(start, size)


cdef object _wide_long_text(const unsigned char *start, Py_ssize_t size):
    try:
        return PyUnicode_DecodeUTF8(<const char *>start, size, NULL)
    except UnicodeDecodeError:
        return _octets(start, size)
