# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path of reading records, in C: what makes a record, and the steps of the routines of most layouts.

What is unusual is declined: limits that are passed, octets that are wrong, values that are seldom met. The slow path
then starts over where this one began; it raises all errors. A reader's memory of what came before, which this path
adds to, never changes what is read.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from .civil cimport import_datetime
from .read_values cimport fill, fill_if
from .routines_c cimport ReadRoutine
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
    whole = (<ReadRoutine>maker.read)(reader, slots_of(maker, made), p, end)
    if not whole:
        empty(maker, made, 0)
    hand_out(maker, made)
    if not whole:
        Py_DECREF(<object>made)
        return NULL
    return made


# The steps of layouts that are not usual, which call them.

cdef bint fill_by_call(Reader reader, Reading *r, int kind, int place) noexcept:
    return fill(reader, r, kind, place)


cdef bint fill_if_by_call(Reader reader, Reading *r, int kind, int place) noexcept:
    return fill_if(reader, r, kind, place)
