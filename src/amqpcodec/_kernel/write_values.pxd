# Ordinary values in the form of the wire, written through a pointer into memory whose end is known: for fast_writer_c,
# which says what that is about. Each function returns where its octets end, or NULL for what `Writer` has to write.
# Whoever uses these has called import_datetime().
cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from .civil cimport PyDateTime_CheckExact, is_in_utc, seconds_in_utc
from .fields cimport LONGLONG_FIELD, OCTET_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TIME_FIELD
from .ints cimport small, unsigned_value
from .kinds cimport INT32, INT64
from .octets cimport copy_short, octet_count, octets_in, put16, put32, put64
from .rawtable_c cimport RawTable
from .routines_c cimport MOST_HEAD, Writing
from .writer_c cimport WriterRules

cdef enum:
    MOST_LEVELS = 32  # tables and arrays inside each other, likewise

cdef extern from *:
    """
    /* Where the characters of a text lie that is compact and ASCII. */
    #define amqpcodec_characters(text) ((const unsigned char *)((PyASCIIObject *)(text) + 1))
    """
    const unsigned char *characters "amqpcodec_characters"(PyObject *text) noexcept

cdef extern from "Python.h":
    bint is_text "PyUnicode_CheckExact"(PyObject *value) noexcept
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject *text) noexcept
    Py_ssize_t length "PyUnicode_GET_LENGTH"(PyObject *text) noexcept
    bint is_bytes "PyBytes_CheckExact"(PyObject *value) noexcept
    bint is_int "PyLong_CheckExact"(PyObject *value) noexcept
    bint is_float "PyFloat_CheckExact"(PyObject *value) noexcept
    double real "PyFloat_AS_DOUBLE"(PyObject *value) noexcept
    bint is_dict "PyDict_CheckExact"(PyObject *value) noexcept
    bint is_list "PyList_CheckExact"(PyObject *value) noexcept
    bint is_tuple "PyTuple_CheckExact"(PyObject *value) noexcept
    int PyDict_Next(PyObject *table, Py_ssize_t *at, PyObject **key, PyObject **value) noexcept
    PyObject **items_of "PySequence_Fast_ITEMS"(PyObject *items) noexcept
    Py_ssize_t count_of "PySequence_Fast_GET_SIZE"(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t at) noexcept
    PyObject *PyUnicode_AsUTF8String(PyObject *text) noexcept
    PyObject *Py_True
    PyObject *Py_False
    void PyErr_Clear() noexcept
    void Py_DECREF(PyObject *thing) noexcept


# -- values


cdef inline void put_octets(unsigned char *p, const unsigned char *octets, Py_ssize_t size) noexcept:
    if size <= 255:
        copy_short(p, octets, size)
    else:
        memcpy(p, octets, <size_t>size)


cdef inline unsigned char *put_encoded(
    unsigned char *p, const unsigned char *end, PyObject *text, Py_ssize_t most
) noexcept:
    """Write a text that is not ASCII, its length in one octet or in four before it."""
    cdef PyObject *octets = PyUnicode_AsUTF8String(text)
    cdef int before = 1 if most == 255 else 4
    cdef Py_ssize_t size
    if octets is NULL:
        PyErr_Clear()  # a surrogate, which may stand for an octet
        return NULL
    size = octet_count(octets)
    if size > most or end - p < size + before:
        p = NULL
    else:
        if before == 1:
            p[0] = <unsigned char>size
        else:
            put32(p, <uint32_t>size)
        memcpy(p + before, octets_in(octets), <size_t>size)
        p += before + size
    Py_DECREF(octets)
    return p


cdef inline unsigned char *put_short(unsigned char *p, const unsigned char *end, PyObject *value) noexcept:
    cdef Py_ssize_t size
    if not is_text(value):
        return NULL
    if not is_ascii(value):
        return put_encoded(p, end, value, 255)
    size = length(value)
    if size > 255 or end - p <= size:
        return NULL
    p[0] = <unsigned char>size
    copy_short(p + 1, characters(value), size)
    return p + 1 + size


cdef inline unsigned char *put_sized(
    unsigned char *p, const unsigned char *end, const unsigned char *octets, Py_ssize_t size
) noexcept:
    """Write octets with their number in four octets before them."""
    if end - p < size + 4:
        return NULL
    put32(p, <uint32_t>size)
    put_octets(p + 4, octets, size)
    return p + 4 + size


cdef inline unsigned char *put_long_text(unsigned char *p, const unsigned char *end, PyObject *value) noexcept:
    if is_ascii(value):
        return put_sized(p, end, characters(value), length(value))
    return put_encoded(p, end, value, MOST_HEAD)


cdef inline unsigned char *put_time(unsigned char *p, const unsigned char *end, PyObject *value) noexcept:
    cdef uint64_t number = 0
    cdef int64_t seconds
    if end - p < 8:
        return NULL
    if PyDateTime_CheckExact(<object>value):
        if not is_in_utc(<object>value):
            return NULL
        seconds = seconds_in_utc(<object>value)
        if seconds < 0:
            return NULL
        number = <uint64_t>seconds
    elif not is_int(value) or not unsigned_value(<object>value, &number):
        return NULL
    put64(p, number)
    return p + 8


cdef inline unsigned char *put_number(
    unsigned char *p, const unsigned char *end, int kind, PyObject *value
) noexcept:
    cdef uint64_t number = 0
    if not is_int(value) or end - p < 8 or not unsigned_value(<object>value, &number):
        return NULL
    if kind == LONGLONG_FIELD:
        put64(p, number)
        return p + 8
    if kind == OCTET_FIELD:
        p[0] = <unsigned char>number
        return p + 1 if number <= 0xFF else NULL
    if kind == SHORT_FIELD:
        put16(p, <uint32_t>(number & 0xFFFF))
        return p + 2 if number <= 0xFFFF else NULL
    put32(p, <uint32_t>(number & 0xFFFFFFFFU))
    return p + 4 if number <= 0xFFFFFFFFU else NULL


# -- field tables

cdef inline unsigned char *put_int(
    unsigned char *p, const unsigned char *end, PyObject *value, WriterRules rules
) noexcept:
    cdef int overflow = 0
    cdef int64_t number = small(<object>value)
    if number < 0:
        number = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    if overflow != 0 or end - p < 9:
        return NULL
    if -0x80000000 <= number <= 0x7FFFFFFF and rules.kinds[c"I"] == INT32:
        p[0] = c"I"
        put32(p + 1, <uint32_t>(<uint64_t>number & 0xFFFFFFFFU))
        return p + 5
    if rules.kinds[c"l"] != INT64:
        return NULL
    p[0] = c"l"
    put64(p + 1, <uint64_t>number)
    return p + 9


cdef inline unsigned char *put_value(
    unsigned char *p, const unsigned char *end, PyObject *value, WriterRules rules, Py_ssize_t depth
) noexcept:
    """Write a value with its tag before it, which the profile has to have."""
    cdef const unsigned char *kinds = rules.kinds
    if end - p < 2:
        return NULL
    if is_text(value):
        p[0] = c"S"
        return put_long_text(p + 1, end, value) if kinds[c"S"] else NULL
    if is_int(value):
        return put_int(p, end, value, rules)
    if value is Py_True or value is Py_False:
        p[0] = c"t"
        p[1] = value is Py_True
        return p + 2 if kinds[c"t"] else NULL
    if is_dict(value):
        p[0] = c"F"
        return put_table(p + 1, end, value, rules, depth + 1) if kinds[c"F"] else NULL
    if value is <PyObject *>None:
        p[0] = c"V"
        return p + 1 if kinds[c"V"] else NULL
    return put_other_value(p, end, value, rules, depth)


cdef inline unsigned char *put_other_value(
    unsigned char *p, const unsigned char *end, PyObject *value, WriterRules rules, Py_ssize_t depth
) noexcept:
    """Write a value of a kind that is less often met. There is room for its tag."""
    cdef uint64_t bits
    cdef double number
    cdef unsigned char tag
    if is_float(value):
        tag = c"d"
    elif is_list(value) or is_tuple(value):
        tag = c"A"
    elif is_bytes(value):
        tag = rules.octets_tag
    elif PyDateTime_CheckExact(<object>value):
        tag = c"T"
    elif type(<object>value) is RawTable:
        tag = c"F"
    else:
        return NULL
    if rules.kinds[tag] == 0:
        return NULL
    p[0] = tag
    p += 1
    if tag == c"d":
        if end - p < 8:
            return NULL
        number = real(value)
        if rules.finite and not isfinite(number):
            return NULL
        memcpy(&bits, &number, 8)
        put64(p, bits)
        return p + 8
    if tag == c"A":
        return put_array(p, end, value, rules, depth + 1)
    if tag == c"T":
        return put_time(p, end, value)
    if tag == c"F":
        return put_table(p, end, value, rules, depth)
    return put_sized(p, end, octets_in(value), octet_count(value))


cdef inline unsigned char *put_table(
    unsigned char *p, const unsigned char *end, PyObject *table, WriterRules rules, Py_ssize_t depth
) noexcept:
    """Write a whole field table at a depth."""
    cdef unsigned char *start = p + 4
    cdef PyObject *kept
    if not is_dict(table):
        if type(<object>table) is not RawTable or (<RawTable>table)._octets is None:
            return NULL
        kept = <PyObject *>(<RawTable>table)._octets
        return put_sized(p, end, octets_in(kept), octet_count(kept))
    if end - p < 4 or depth > rules.depth_limit or depth > MOST_LEVELS:
        return NULL
    with cython.critical_section(<object>table):
        p = put_pairs(start, end, table, rules, depth)
    if p is not NULL:
        put32(start - 4, <uint32_t>(p - start))
    return p


cdef inline unsigned char *put_pairs(
    unsigned char *p, const unsigned char *end, PyObject *table, WriterRules rules, Py_ssize_t depth
) noexcept:
    cdef Py_ssize_t at = 0
    cdef PyObject *key
    cdef PyObject *value
    while PyDict_Next(table, &at, &key, &value):
        p = put_short(p, end, key)
        if p is NULL:
            return NULL
        p = put_value(p, end, value, rules, depth)
        if p is NULL:
            return NULL
    return p


cdef inline unsigned char *put_array(
    unsigned char *p, const unsigned char *end, PyObject *items, WriterRules rules, Py_ssize_t depth
) noexcept:
    """Write a list or tuple at a depth."""
    cdef unsigned char *start = p + 4
    cdef Py_ssize_t at
    if end - p < 4 or depth > rules.depth_limit or depth > MOST_LEVELS:
        return NULL
    with cython.critical_section(<object>items):
        p = start
        for at in range(count_of(items)):
            p = put_value(p, end, items_of(items)[at], rules, depth)
            if p is NULL:
                break
    if p is not NULL:
        put32(start - 4, <uint32_t>(p - start))
    return p


# -- fields of records

cdef inline unsigned char *put_field(
    unsigned char *p, const unsigned char *end, int kind, PyObject *value, WriterRules rules
) noexcept:
    """Write a field that is no bit."""
    if kind == SHORTSTR_FIELD:
        return put_short(p, end, value)
    if kind <= LONGLONG_FIELD:
        return put_number(p, end, kind, value)
    if kind == TABLE_FIELD:
        return put_table(p, end, value, rules, 1)
    if kind == TIME_FIELD:
        return put_time(p, end, value)
    if is_bytes(value):
        return put_sized(p, end, octets_in(value), octet_count(value))
    return put_long_text(p, end, value) if is_text(value) else NULL


# Steps of the routines of layouts, as in read_values.pxd.

cdef inline Writing writing(PyObject **slots, unsigned char *p, const unsigned char *end) noexcept:
    """Return where a routine begins."""
    cdef Writing w
    w.slots = slots
    w.p = p
    w.end = end
    w.at = NULL
    w.flags = 0
    return w


cdef inline bint emit(WriterRules rules, Writing *w, int kind, int place) noexcept:
    """Write an argument that is no bit."""
    w.p = put_field(w.p, w.end, kind, w.slots[place], rules)
    return w.p is not NULL


cdef inline bint emit_bits(Writing *w, int place, int count) noexcept:
    """Write the bits that share an octet (0-9-1 section 4.2.5.2)."""
    cdef int bit
    cdef unsigned char octet = 0
    if w.p >= w.end:
        return False
    for bit in range(count):
        if w.slots[place + bit] is Py_True:
            octet |= <unsigned char>(1 << bit)
        elif w.slots[place + bit] is not Py_False:
            return False
    w.p[0] = octet
    w.p += 1
    return True


cdef inline bint write_flags(Writing *w) noexcept:
    """Leave room for a word of property flags."""
    w.at = w.p
    w.p += 2
    return w.end - w.p >= 0


cdef inline bint emit_if(WriterRules rules, Writing *w, int kind, int place) noexcept:
    """Write a property, unless it is None."""
    if w.slots[place] is <PyObject *>None:
        return True
    w.flags |= 0x8000U >> place
    w.p = put_field(w.p, w.end, kind, w.slots[place], rules)
    return w.p is not NULL


cdef inline unsigned char *written(Writing *w, bint done) noexcept:
    """Return where all that was written ends, its flags filled in; NULL where a step declines."""
    if not done:
        return NULL
    if w.at is not NULL:
        put16(w.at, w.flags)
    return w.p
