# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path of reading records, in C: what makes a record, and the steps of the routines of most layouts.

What is unusual is declined: limits that are passed, octets that are wrong, values that are seldom met. The slow path
then starts over where this one began; it raises all errors. A reader's memory of what came before, which this path
adds to, never changes what is read.
"""

from cpython.datetime cimport import_datetime
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from .fields cimport (
    LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, OCTETS_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TIME_FIELD,
)
from .read_values cimport fill, fill_if
from .slots.makers_c cimport empty, hand_out, slots_of, take

import_datetime()


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept:
    """Return the method or properties whose fields lie between `p` and `end`, to be owned by the caller. NULL, maybe
    with an exception, leaves them to the slow path."""
    cdef PyObject *made
    cdef bint whole
    if maker.read is NULL or reader._rules.declines:
        return NULL
    if reader._texts.places is NULL and reader._keeps:
        reader._make_cache()
    made = take(maker)
    if made is NULL:
        return NULL
    whole = maker.read(reader, slots_of(maker, made), p, end)
    if not whole:
        empty(maker, made, 0)
    hand_out(maker, made)
    if not whole:
        Py_DECREF(<object>made)
        return NULL
    return made


# The steps of layouts that are not usual, each of its kind once.

cdef bint fill_octet(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, OCTET_FIELD, place)


cdef bint fill_octet_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, OCTET_FIELD, place)


cdef bint fill_short(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, SHORT_FIELD, place)


cdef bint fill_short_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, SHORT_FIELD, place)


cdef bint fill_long(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, LONG_FIELD, place)


cdef bint fill_long_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, LONG_FIELD, place)


cdef bint fill_longlong(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, LONGLONG_FIELD, place)


cdef bint fill_longlong_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, LONGLONG_FIELD, place)


cdef bint fill_shortstr(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, SHORTSTR_FIELD, place)


cdef bint fill_shortstr_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, SHORTSTR_FIELD, place)


cdef bint fill_longstr(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, OCTETS_FIELD, place)


cdef bint fill_longstr_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, OCTETS_FIELD, place)


cdef bint fill_timestamp(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, TIME_FIELD, place)


cdef bint fill_timestamp_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, TIME_FIELD, place)


cdef bint fill_table(Reader reader, Reading *r, int place) noexcept:
    return fill(reader, r, TABLE_FIELD, place)


cdef bint fill_table_if(Reader reader, Reading *r, int place) noexcept:
    return fill_if(reader, r, TABLE_FIELD, place)
