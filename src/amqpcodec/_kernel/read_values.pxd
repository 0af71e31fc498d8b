# Values of the wire for the fast path of reading: texts, times, field tables. What is unusual is declined: a function
# that gives NULL declines, whether or not it leaves an exception. Whoever uses these has called import_datetime().
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr

from .civil cimport LAST_SECOND, Civil, civil_time, time_in_utc
from .fields cimport (
    LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TIME_FIELD,
)
from .kept_tables cimport find_table, miss_table
from .kinds cimport (
    ARRAY, BOOL, DOUBLE, FLOAT, INT8, INT16, INT32, INT64, LONGSTR, OCTETS, TABLE, TIMESTAMP, UINT8, UINT16, UINT32,
    UINT64, VOID,
)
from .octets cimport f32, f64, is_ascii, u16, u32, u64
from .rawtable_c cimport kept_table
from .slots.none cimport refer_to_none
from .reader_c cimport ARGUMENTS, KEYS, CachedText, Guess, Reader
from .routines_c cimport Reading
from .table_cache_c cimport CACHED_TABLE, TableCache
from .texts cimport (
    CACHED_OCTETS, ascii_text, is_kept, mark_of, mix_of, note_miss, octets_of, place_of, same
)

cdef extern from "Python.h":
    PyObject *Py_True
    PyObject *Py_False
    Py_ssize_t length "PyUnicode_GET_LENGTH"(PyObject *text) noexcept
    PyObject *decode_utf8 "PyUnicode_DecodeUTF8"(const char *octets, Py_ssize_t size, const char *errors) noexcept
    PyObject *new_octets "PyBytes_FromStringAndSize"(const char *octets, Py_ssize_t size) noexcept
    PyObject *int_of_long "PyLong_FromLong"(long value) noexcept
    PyObject *int_of_unsigned "PyLong_FromUnsignedLongLong"(unsigned long long value) noexcept
    PyObject *int_of_signed "PyLong_FromLongLong"(long long value) noexcept
    PyObject *float_of "PyFloat_FromDouble"(double value) noexcept
    PyObject *new_dict "PyDict_New"() noexcept
    int dict_set "PyDict_SetItem"(PyObject *table, PyObject *key, PyObject *value) noexcept
    int dict_contains "PyDict_Contains"(PyObject *table, PyObject *key) noexcept
    PyObject *new_list "PyList_New"(Py_ssize_t size) noexcept
    int list_append "PyList_Append"(PyObject *items, PyObject *value) noexcept
    Py_ssize_t list_size "PyList_GET_SIZE"(PyObject *items) noexcept
    int PyErr_ExceptionMatches(object cls) noexcept
    void PyErr_Clear() noexcept
    bint PyErr_Occurred() noexcept

cdef extern from *:
    bint likely(bint condition) noexcept  # of Cython

cdef enum:
    PATIENCE = 16  # texts in a row that were not kept, after which a place is taken for one of ids
    PAUSE = 1024  # texts of such a place that nobody looks for


cdef inline PyObject *truth(bint bit) noexcept:
    cdef PyObject *value = Py_True if bit else Py_False
    Py_INCREF(<object>value)
    return value


cdef inline PyObject *time_at(Reader reader, uint64_t seconds) noexcept:
    """Return a time. The last one is kept, since messages in a row mostly come of the same second."""
    cdef Civil civil
    cdef PyObject *made
    if seconds == reader._last_seconds and reader._last_time is not None:
        made = <PyObject *>reader._last_time
        Py_INCREF(<object>made)
        return made
    if seconds > LAST_SECOND:
        return int_of_unsigned(seconds)
    civil = civil_time(seconds)
    made = time_in_utc(civil.year, civil.month, civil.day, civil.second)
    if made is not NULL:
        reader._last_time = <object>made
        reader._last_seconds = seconds
    return made


# -- text

cdef inline PyObject *text_at(Reader reader, Guess *guess, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a short text. First it is compared with the last one in its place: names and keys repeat. Where texts
    never repeat, such as ids, they are not looked for for a while."""
    cdef PyObject *text
    if guess is NULL:
        return _new_text(reader, p, size)
    text = guess.text
    if text is not NULL and length(text) == size and same(octets_of(text), p, size):
        guess.misses = 0
        Py_INCREF(<object>text)
        return text
    if guess.misses >= PATIENCE:
        guess.misses = <unsigned int>((guess.misses + 1) % PAUSE)
        return _new_text(reader, p, size)
    if not 0 < size <= CACHED_OCTETS:
        return _new_text(reader, p, size)
    return _text_of_cache(reader, guess, p, size)


cdef inline PyObject *_text_of_cache(Reader reader, Guess *guess, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a text that may be kept."""
    cdef uint64_t mix = mix_of(p, size)
    cdef uint32_t mark = mark_of(mix, size)
    cdef CachedText *kept = place_of(&reader._texts, mix)
    cdef PyObject *text
    cdef PyObject *before
    if is_kept(kept, mark, p, size):
        text = kept.text
        before = guess.text
        Py_INCREF(<object>text)
        Py_INCREF(<object>text)
        guess.text = text
        guess.misses = 0
        Py_XDECREF(before)
        return text
    text = _new_text(reader, p, size)
    if text is not NULL:
        note_miss(&reader._texts, kept, mark, text)
        guess.misses += 1
    return text


cdef inline PyObject *_new_text(Reader reader, const unsigned char *p, Py_ssize_t size) noexcept:
    if not is_ascii(p, size):
        return _wide_text(reader, p, size)
    if reader.strict and memchr(p, 0, <size_t>size) is not NULL:
        return NULL
    return ascii_text(p, size)


cdef inline PyObject *_wide_text(Reader reader, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a text that is not ASCII; what is not UTF-8 becomes surrogate escapes, but in strict mode."""
    cdef const char *errors = "surrogateescape"
    if not reader.strict:
        return decode_utf8(<const char *>p, size, errors)
    return NULL if memchr(p, 0, <size_t>size) is not NULL else decode_utf8(<const char *>p, size, NULL)


cdef inline PyObject *_wide_long_text(const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a longstr of a table that is not ASCII: text, or the octets themselves where they are not UTF-8."""
    cdef PyObject *text = decode_utf8(<const char *>p, size, NULL)
    if text is NULL and PyErr_ExceptionMatches(UnicodeDecodeError):
        PyErr_Clear()
        return new_octets(<const char *>p, size)
    return text


# -- field tables

cdef inline PyObject *table_at(Reader reader, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a whole field table."""
    cdef uint64_t mark = 0
    cdef uint64_t entries = 0
    cdef PyObject *made
    if <uint64_t>size > reader._rules.octets_limit:
        return NULL
    if reader._rules.raw_tables:
        return _raw_table(reader, p, size)
    if not reader._keeps or not 0 < size <= CACHED_TABLE:
        return _pairs(reader, p, p + size, 1, &entries)
    mark = mix_of(p, size) | 1  # 0 is for none
    if reader._tables is None:
        reader._tables = TableCache()
    table = find_table(reader._tables, p, size, mark)
    if table is not None:
        Py_INCREF(table)
        return <PyObject *>table
    made = _pairs(reader, p, p + size, 1, &entries)
    if made is not NULL:
        miss_table(reader._tables, p, size, mark, <dict>made)
    return made


cdef inline PyObject *_raw_table(Reader reader, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return a table as its octets; what strict mode refuses must not hide in them."""
    cdef uint64_t entries = 0
    cdef PyObject *checked
    if reader.strict:
        checked = _pairs(reader, p, p + size, 1, &entries)
        if checked is NULL:
            return NULL
        Py_DECREF(<object>checked)
    table = kept_table(p[:size], reader._rules.profile_name, reader._rules.table_limits, reader._rules.tolerant)
    Py_INCREF(table)
    return <PyObject *>table


cdef inline PyObject *_pairs(
    Reader reader, const unsigned char *p, const unsigned char *end, Py_ssize_t depth, uint64_t *entries
) noexcept:
    """Return the entries of a table; of two equal keys the later wins."""
    cdef Guess *guess = NULL if reader._guesses is NULL else reader._guesses.keys
    cdef Guess *last = NULL if guess is NULL else guess + KEYS - 1
    cdef PyObject *table
    cdef PyObject *key
    cdef const unsigned char *stop
    if depth > reader._rules.depth_limit:
        return NULL
    table = new_dict()
    while table is not NULL and p < end:
        entries[0] += 1
        if p[0] >= end - p - 1 or entries[0] > reader._rules.entries_limit:
            break
        stop = p + 1 + p[0]
        key = text_at(reader, guess, p + 1, p[0])
        if key is NULL:
            break
        p = stop + 1
        if guess is not last:
            guess += 1
        if not _put(reader, table, key, _value(reader, reader._rules.kinds[stop[0]], &p, end, depth, entries)):
            break
    else:
        return table
    Py_XDECREF(table)
    return NULL


cdef inline bint _put(Reader reader, PyObject *table, PyObject *key, PyObject *value) noexcept:
    """Enter a key and its value, and let go of them; False where that is left to the slow path."""
    cdef bint entered = value is not NULL
    if entered and reader.strict and dict_contains(table, key) != 0:
        entered = False
    if entered:
        entered = dict_set(table, key, value) == 0
    Py_DECREF(<object>key)
    Py_XDECREF(value)
    return entered


cdef inline PyObject *_items(
    Reader reader, const unsigned char *p, const unsigned char *end, Py_ssize_t depth, uint64_t *entries
) noexcept:
    """Return the values of an array."""
    cdef PyObject *items
    cdef PyObject *value
    cdef bint entered
    if depth > reader._rules.depth_limit:
        return NULL
    items = new_list(0)
    while items is not NULL and p < end:
        entries[0] += 1
        if entries[0] > reader._rules.entries_limit:
            break
        if <uint64_t>list_size(items) >= reader._rules.items_limit:
            break
        p += 1
        value = _value(reader, reader._rules.kinds[(p - 1)[0]], &p, end, depth, entries)
        if value is NULL:
            break
        entered = list_append(items, value) == 0
        Py_DECREF(<object>value)
        if not entered:
            break
    else:
        return items
    Py_XDECREF(items)
    return NULL


cdef inline PyObject *_value(
    Reader reader, int kind, const unsigned char **at, const unsigned char *end, Py_ssize_t depth, uint64_t *entries
) noexcept:
    """Return the value behind a tag that means `kind`, and pass over it."""
    cdef const unsigned char *p = at[0]
    cdef Py_ssize_t left = end - p
    if kind == LONGSTR or kind == TABLE or kind == ARRAY or kind == OCTETS:
        if left < 4 or u32(p) > <uint64_t>(left - 4):
            return NULL
        at[0] = p + 4 + u32(p)
        if kind != LONGSTR:
            return _sized(reader, kind, p + 4, at[0], depth, entries)
        if is_ascii(p + 4, <Py_ssize_t>u32(p)):
            return ascii_text(p + 4, <Py_ssize_t>u32(p))
        return _wide_long_text(p + 4, <Py_ssize_t>u32(p))
    if kind == INT32 or kind == UINT32 or kind == FLOAT:
        at[0] = p + 4
        if left < 4:
            return NULL
        if kind == FLOAT:
            return float_of(f32(p))
        return int_of_long(<int32_t>u32(p)) if kind == INT32 else int_of_unsigned(u32(p))
    if kind == BOOL or kind == INT8 or kind == UINT8:
        at[0] = p + 1
        if left < 1:
            return NULL
        if kind == BOOL:
            return truth(p[0] != 0)
        return int_of_long(<int8_t>p[0] if kind == INT8 else <int>p[0])
    if kind == INT16 or kind == UINT16:
        at[0] = p + 2
        if left < 2:
            return NULL
        return int_of_long(<int16_t>u16(p) if kind == INT16 else <int>u16(p))
    return _wide_value(reader, kind, at, left)


cdef inline PyObject *_wide_value(Reader reader, int kind, const unsigned char **at, Py_ssize_t left) noexcept:
    """Return the value behind a tag of eight octets or none; other kinds are left to the slow path."""
    cdef const unsigned char *p = at[0]
    if kind == VOID:
        Py_INCREF(None)
        return <PyObject *>None
    at[0] = p + 8
    if left < 8:
        return NULL
    if kind == INT64:
        return int_of_signed(<int64_t>u64(p))
    if kind == UINT64:
        return int_of_unsigned(u64(p))
    if kind == TIMESTAMP:
        return time_at(reader, u64(p))
    if kind == DOUBLE:
        return float_of(f64(p))
    return NULL


cdef inline PyObject *_sized(
    Reader reader, int kind, const unsigned char *p, const unsigned char *end, Py_ssize_t depth, uint64_t *entries
) noexcept:
    """Return a table or an array in another, or octets."""
    if kind == TABLE:
        return _pairs(reader, p, end, depth + 1, entries)
    if kind == ARRAY:
        return _items(reader, p, end, depth + 1, entries)
    return new_octets(<const char *>p, end - p)


# -- fields of records

cdef inline PyObject *field_at(
    Reader reader, int kind, Guess *guess, const unsigned char **at, const unsigned char *end
) noexcept:
    """Return the value of an argument or property, and pass over it."""
    cdef const unsigned char *p = at[0]
    cdef Py_ssize_t left = end - p
    if kind == SHORTSTR_FIELD:
        if left < 1 or p[0] > left - 1:
            return NULL
        at[0] = p + 1 + p[0]
        return text_at(reader, guess, p + 1, p[0])
    elif kind == LONGLONG_FIELD:
        at[0] = p + 8
        return NULL if left < 8 else int_of_unsigned(u64(p))
    elif kind == OCTET_FIELD:
        at[0] = p + 1
        return NULL if left < 1 else int_of_long(p[0])
    elif kind == SHORT_FIELD:
        at[0] = p + 2
        return NULL if left < 2 else int_of_long(u16(p))
    elif kind == LONG_FIELD:
        at[0] = p + 4
        return NULL if left < 4 else int_of_unsigned(u32(p))
    elif kind == TIME_FIELD:
        at[0] = p + 8
        return NULL if left < 8 else time_at(reader, u64(p))
    if left < 4 or u32(p) > <uint64_t>(left - 4):
        return NULL
    at[0] = p + 4 + u32(p)
    if kind == TABLE_FIELD:
        return table_at(reader, p + 4, <Py_ssize_t>u32(p))
    return new_octets(<const char *>p + 4, <Py_ssize_t>u32(p))


# Steps of the routines of layouts. Each returns whether it is done, and where it declines, nothing more is.

cdef inline Reading reading(
    Reader reader, PyObject **slots, const unsigned char *p, const unsigned char *end
) noexcept:
    """Return where a routine begins."""
    cdef Reading r
    r.guesses = reader._guesses
    r.slots = slots
    r.p = p
    r.end = end
    r.filled = 0
    r.flags = 0
    r.absent = 0
    return r


cdef inline bint fill(Reader reader, Reading *r, int kind, int place) noexcept:
    """Fill the slot of an argument that is no bit."""
    cdef Guess *guess = NULL if r.guesses is NULL else r.guesses.arguments + min(place, ARGUMENTS - 1)
    r.slots[place] = field_at(reader, kind, guess, &r.p, r.end)
    r.filled = place
    return r.slots[place] is not NULL


cdef inline bint fill_bits(Reading *r, int place, int count) noexcept:
    """Fill the slots of the bits that share an octet (0-9-1 section 4.2.5.2)."""
    cdef int bit
    r.filled = place
    if r.p >= r.end:
        return False
    for bit in range(count):
        r.slots[place + bit] = truth(r.p[0] >> bit & 1)
    r.p += 1
    return True


cdef inline bint read_flags(Reading *r, unsigned int defined) noexcept:
    """Read a word of property flags, none of which may be another than these (0-9-1 section 4.2.6.1)."""
    if r.end - r.p < 2:
        return False
    r.flags = u16(r.p)
    r.p += 2
    return r.flags & ~defined == 0


cdef inline bint fill_if(Reader reader, Reading *r, int kind, int place) noexcept:
    """Fill the slot of a property, with None if it is absent."""
    cdef Guess *guess
    if not r.flags & <unsigned int>(0x8000 >> place):
        r.slots[place] = <PyObject *>None
        r.absent += 1
        return True
    guess = NULL if r.guesses is NULL else r.guesses.properties + place  # there is a place for each
    r.slots[place] = field_at(reader, kind, guess, &r.p, r.end)
    r.filled = place
    return r.slots[place] is not NULL


cdef inline bint filled(Reading *r, int count, bint done) noexcept:
    """Return whether all slots are filled and no octet is left over; if not, let go of what is in them."""
    refer_to_none(r.absent)
    if done and r.p == r.end:
        return True
    for place in range(count if done else r.filled):
        Py_DECREF(<object>r.slots[place])
    return False
