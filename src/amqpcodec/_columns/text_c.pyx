# cython: boundscheck=False, wraparound=False, cdivision=True
"""Values of field tables as the text of map columns, and whether tables are valid. The twin of text.py.

These functions may decline; see cells_c.pyx.
"""

from cpython.exc cimport PyErr_Clear
from cpython.mem cimport PyMem_Free
from libc.math cimport isfinite
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy, strlen

from .._kernel cimport kinds as wire
from .._kernel.civil cimport LAST_SECOND, Civil, civil_time
from .._kernel.octets cimport f32, f64, u16, u32, u64, word
from .buffers_c cimport (
    MAX_OCTETS, TOO_LARGE, Column, add_octets, is_utf8, open_cell, put_text,
)

cdef extern from "Python.h":
    enum:
        Py_DTSF_ADD_DOT_0
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *kind) except NULL

cdef enum:
    _LONGEST_SCALAR = 40  # characters of a number or time
    _MOST_DIGITS = 20  # of 64 bits
    _HEAD = 8  # octets of a word
    _DEEPEST = 16
    _MOST_ITEMS = 4096  # of an array


cdef inline Py_ssize_t _width(int kind) noexcept nogil:
    """Octets of a value that has no length in front; -1 for any other kind."""
    if kind == wire.VOID:
        return 0
    if kind == wire.BOOL or kind == wire.INT8 or kind == wire.UINT8 or kind == wire.CHARACTER:
        return 1
    if kind == wire.INT16 or kind == wire.UINT16:
        return 2
    if kind == wire.INT32 or kind == wire.UINT32 or kind == wire.FLOAT:
        return 4
    if kind == wire.DECIMAL:
        return 5
    if kind == wire.INT64 or kind == wire.UINT64 or kind == wire.TIMESTAMP or kind == wire.DOUBLE:
        return 8
    return -1


cdef bint add_key(Keys *keys, const unsigned char *key, const unsigned char *end) noexcept nogil:
    """Add a key, its length in front, to those of a table that ends at `end`; False for one too many.

    Keys mostly differ in their first octets, so one comparison of two words tells them apart, however long.
    """
    cdef uint64_t head = _head(key, end)
    cdef int index
    if keys.count == MOST_ENTRIES:
        return False
    for index in range(keys.count):
        if keys.heads[index] == head and memcmp(keys.keys[index] + 1, key + 1, key[0]) == 0:
            return False
    keys.heads[keys.count] = head
    keys.keys[keys.count] = key
    keys.count += 1
    return True


cdef inline uint64_t _head(const unsigned char *key, const unsigned char *end) noexcept nogil:
    cdef const unsigned char *masks = <const unsigned char *>(
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"
    )
    cdef size_t size = min(<size_t>key[0] + 1, <size_t>_HEAD)
    cdef uint64_t head = 0
    if end - key >= _HEAD:
        return word(key) & word(masks + _HEAD - size)
    memcpy(&head, key, size)
    return head


cdef const unsigned char *put_value(
    const unsigned char *kinds, Column *map, const unsigned char *p, const unsigned char *end,
    const unsigned char *limit,
) noexcept nogil:
    """Add an entry to a map, whose key is set, with the text of the value at `p`.

    Gives what is behind the value; NULL to decline.
    """
    cdef int kind = kinds[p[0]]
    cdef Column *texts = map.inside.inside + 1
    cdef Py_ssize_t row = <Py_ssize_t>map.used
    cdef const unsigned char *value = p + 1
    cdef size_t size
    map.used += 1
    if map.used > MAX_OCTETS:
        map.trouble[0] = TOO_LARGE
    if kind == wire.TABLE or kind == wire.ARRAY:
        open_cell(texts, row, 0)
        return _add_json(kinds, texts, row, p, end, 0)
    p = _behind(kind, value, end)
    if p is NULL or kind == wire.VOID:
        return p
    if kind == wire.LONGSTR:
        return p if put_text(texts, row, value + 4, <size_t>(p - value - 4), limit) else NULL
    if open_cell(texts, row, _LONGEST_SCALAR):  # written where it stays
        size = _scalar_text(texts.values + texts.used, kind, value)
        if size == 0:
            return NULL
        texts.used += size
        texts.offsets[row + 1] = <int32_t>texts.used
    return p


cdef inline const unsigned char *_behind(int kind, const unsigned char *p, const unsigned char *end) noexcept nogil:
    """Write a value that has a simple text and return its end; NULL for any other kind, or if it is cut."""
    cdef Py_ssize_t size
    if kind == wire.LONGSTR:
        return p + 4 + u32(p) if end - p >= 4 and u32(p) <= <uint64_t>(end - p - 4) else NULL
    size = -1 if kind == wire.DECIMAL or kind == wire.CHARACTER else _width(kind)
    if size < 0 or end - p < size or (kind == wire.TIMESTAMP and u64(p) > LAST_SECOND):
        return NULL
    return p + size


# -- tables and arrays inside, as JSON

cdef const unsigned char *_add_json(
    const unsigned char *kinds,
    Column *texts,
    Py_ssize_t row,
    const unsigned char *p,
    const unsigned char *end,
    int depth,
) noexcept nogil:
    """Add the JSON of the value at `p` to a cell; what is behind it, or NULL."""
    cdef int kind = kinds[p[0]]
    cdef unsigned char text[_LONGEST_SCALAR]
    cdef const unsigned char *value = p + 1
    cdef size_t size
    cdef bint quoted
    if kind == wire.TABLE or kind == wire.ARRAY:
        if depth == _DEEPEST or end - value < 4 or u32(value) > <uint64_t>(end - value - 4):
            return NULL
        end = value + 4 + u32(value)
        if kind == wire.TABLE:
            return end if _add_entries(kinds, texts, row, value + 4, end, depth + 1) else NULL
        return end if _add_items(kinds, texts, row, value + 4, end, depth + 1) else NULL
    p = _behind(kind, value, end)
    if p is NULL:
        return NULL
    if kind == wire.LONGSTR:
        return p if _add_quoted(texts, row, value + 4, <size_t>(p - value - 4)) else NULL
    if kind == wire.VOID:
        add_octets(texts, row, b"null", 4)
    else:
        size = _scalar_text(text, kind, value)
        if size == 0:
            return NULL
        quoted = kind == wire.TIMESTAMP or (kind == wire.FLOAT and not isfinite(f32(value)))
        if quoted or (kind == wire.DOUBLE and not isfinite(f64(value))):
            return p if _add_quoted(texts, row, text, size) else NULL
        add_octets(texts, row, text, size)
    return p


cdef bint _add_entries(
    const unsigned char *kinds,
    Column *texts,
    Py_ssize_t row,
    const unsigned char *p,
    const unsigned char *end,
    int depth,
) noexcept nogil:
    cdef Keys keys
    keys.count = 0
    add_octets(texts, row, b"{", 1)
    while p < end:
        if p[0] >= end - p - 1 or not add_key(&keys, p, end):
            return False
        if keys.count > 1:
            add_octets(texts, row, b",", 1)
        if not _add_quoted(texts, row, p + 1, p[0]):
            return False
        add_octets(texts, row, b":", 1)
        p = _add_json(kinds, texts, row, p + 1 + p[0], end, depth)
        if p is NULL:
            return False
    add_octets(texts, row, b"}", 1)
    return True


cdef bint _add_items(
    const unsigned char *kinds,
    Column *texts,
    Py_ssize_t row,
    const unsigned char *p,
    const unsigned char *end,
    int depth,
) noexcept nogil:
    cdef int count = 0
    add_octets(texts, row, b"[", 1)
    while p < end:
        if count == _MOST_ITEMS:
            return False
        if count:
            add_octets(texts, row, b",", 1)
        count += 1
        p = _add_json(kinds, texts, row, p, end, depth)
        if p is NULL:
            return False
    add_octets(texts, row, b"]", 1)
    return True


cdef bint _add_quoted(Column *texts, Py_ssize_t row, const unsigned char *p, size_t size) noexcept nogil:
    """Add a string; False if its octets are not UTF-8."""
    cdef const unsigned char *end = p + size
    cdef const unsigned char *begin = p
    cdef char escape[6]
    if not is_utf8(p, size):
        return False
    add_octets(texts, row, b'"', 1)
    while p < end:
        if p[0] >= 32 and p[0] != 34 and p[0] != 92:  # a quotation mark, a backslash
            p += 1
            continue
        add_octets(texts, row, begin, <size_t>(p - begin))
        add_octets(texts, row, escape, _escape(escape, p[0]))
        p += 1
        begin = p
    add_octets(texts, row, begin, <size_t>(p - begin))
    add_octets(texts, row, b'"', 1)
    return True


cdef inline size_t _escape(char *text, unsigned char octet) noexcept nogil:
    """Write an octet as JSON has it; return the number of characters."""
    cdef const char *letters = b"btn-fr"  # of 8 to 13, of which 11 has none
    cdef const char *digits = b"0123456789abcdef"
    text[0] = 92
    if octet >= 32:
        text[1] = <char>octet
        return 2
    if 8 <= octet <= 13 and octet != 11:
        text[1] = letters[octet - 8]
        return 2
    memcpy(text + 1, b"u00", 3)
    text[4] = digits[octet >> 4]
    text[5] = digits[octet & 15]
    return 6


# -- numbers and times

cdef const char *_PAIRS = (
    b"00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    b"49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
    b"9899"
)

cdef size_t _scalar_text(unsigned char *text, int kind, const unsigned char *p) noexcept nogil:
    """The text of a number, a truth value or a time; octets of it, 0 to decline."""
    cdef uint64_t number
    if kind == wire.BOOL:
        memcpy(text, b"true " if p[0] else b"false", 5)
        return 4 if p[0] else 5
    if kind == wire.TIMESTAMP:
        return _time_text(text, u64(p))
    if kind == wire.FLOAT or kind == wire.DOUBLE:
        return _float_text(text, <double>f32(p) if kind == wire.FLOAT else f64(p))
    if kind == wire.INT8:
        number = <uint64_t>(<int64_t>(<int8_t>p[0]))
    elif kind == wire.UINT8:
        number = p[0]
    elif kind == wire.INT16:
        number = <uint64_t>(<int64_t>(<int16_t>u16(p)))
    elif kind == wire.UINT16:
        number = u16(p)
    elif kind == wire.INT32:
        number = <uint64_t>(<int64_t>(<int32_t>u32(p)))
    elif kind == wire.UINT32:
        number = u32(p)
    else:
        number = u64(p)
    return _number_text(text, number, kind != wire.UINT64 and <int64_t>number < 0)


cdef size_t _float_text(unsigned char *text, double value) noexcept with gil:
    """The shortest decimal that reads back as the same number, as Python prints it.

    24 characters at most; 0 without memory.
    """
    cdef char *printed = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    cdef size_t size
    if printed is NULL:
        PyErr_Clear()
        return 0
    size = strlen(printed)
    memcpy(text, printed, size)
    PyMem_Free(printed)
    return size


cdef size_t _number_text(unsigned char *text, uint64_t number, bint negative) noexcept nogil:
    cdef size_t size = 1, at
    cdef uint64_t limit = 10
    if negative:
        text[0] = 45  # a minus sign
        text += 1
        number = 0 - number
    while size < _MOST_DIGITS and number >= limit:
        limit *= 10
        size += 1
    at = size
    while at >= 2:
        at -= 2
        memcpy(text + at, _PAIRS + 2 * (number % 100), 2)
        number //= 100
    if at:
        text[0] = <unsigned char>(48 + number)
    return size + <size_t>negative


cdef size_t _time_text(unsigned char *text, uint64_t seconds) noexcept nogil:
    """Seconds since 1970 as civil time, such as 2026-11-21T06:00:00Z; octets of it."""
    cdef Civil civil = civil_time(seconds)
    _digits(text, civil.year, 4, 45)
    _digits(text + 5, civil.month, 2, 45)
    _digits(text + 8, civil.day, 2, 84)
    _digits(text + 11, civil.second // 3600, 2, 58)
    _digits(text + 14, civil.second // 60 % 60, 2, 58)
    _digits(text + 17, civil.second % 60, 2, 90)
    return 20


cdef inline void _digits(unsigned char *text, int number, int count, unsigned char behind) noexcept nogil:
    """Decimal digits and the character behind them."""
    text[count] = behind
    while count > 0:
        count -= 1
        text[count] = <unsigned char>(48 + number % 10)
        number //= 10


# -- whether tables are valid, without a look at what they say


cdef bint are_entries(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """Return whether octets are the entries of a table that is inside so many others; at most MOST_OCTETS in all.

    Args:
        kinds: table tag to wire kind, 0 for a tag nobody knows.
    """
    while p < end:
        if p[0] >= end - p - 1:
            return False
        p = behind_value(kinds, p + 1 + p[0], end, depth)
        if p is NULL:
            return False
    return True


cdef bint _are_items(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """Return whether octets are the values of an array."""
    while p < end:
        p = behind_value(kinds, p, end, depth)
        if p is NULL:
            return False
    return True


cdef const unsigned char *behind_value(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """Return the end of the value whose tag is at `p`, before `end`; NULL if it is not valid."""
    cdef int kind = kinds[p[0]]
    cdef Py_ssize_t size = _width(kind)
    p += 1
    if size >= 0:
        return p + size if end - p >= size else NULL
    if kind == wire.SHORTSTR:
        return p + 1 + p[0] if end - p >= 1 and p[0] < end - p else NULL
    if kind == 0 or end - p < 4 or u32(p) > <uint64_t>(end - p - 4):
        return NULL
    end = p + 4 + u32(p)
    if kind == wire.TABLE or kind == wire.ARRAY:
        if depth == _DEEPEST:
            return NULL
        if kind == wire.TABLE:
            return end if are_entries(kinds, p + 4, end, depth + 1) else NULL
        return end if _are_items(kinds, p + 4, end, depth + 1) else NULL
    return end
