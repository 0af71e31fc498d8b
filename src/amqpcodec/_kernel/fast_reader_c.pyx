# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path of reading records, in C. That of the pure build is fast_reader_py.py.

All that a record is made of is read in this one module, so that the compiler can put it together. What is unusual is
declined: limits that are passed, octets that are wrong, values that are seldom met. The slow path then starts over
where this one began; it raises all errors. A reader's memory of what came before, which this path adds to, never
changes what is read.
"""

from cpython.datetime cimport import_datetime
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from .._generated.contents cimport deliver_at, get_ok_at, properties_at, publish_at, return_at
from .._generated.layouts cimport (
    DELIVER_LAYOUT, GET_OK_LAYOUT, OTHER_LAYOUT, PROPERTIES_LAYOUT, PUBLISH_LAYOUT, RETURN_LAYOUT,
)
from .fields cimport BIT_FIELD
from .slots.makers_c cimport empty, hand_out, refer_to_none, slots_of, take
from .octets cimport u16
from .read_values cimport field_at, guess_at, truth
from .reader_c cimport ARGUMENTS, Guess

import_datetime()


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept:
    """Return the method or properties whose fields lie between `p` and `end`, to be owned by the caller. NULL, maybe
    with an exception, leaves them to the slow path."""
    cdef PyObject *made
    cdef bint whole
    if not maker.plain or reader._rules.declines:
        return NULL
    if reader._texts.places is NULL and reader._keeps:
        reader._make_cache()
    made = take(maker)
    if made is NULL:
        return NULL
    if maker.layout != OTHER_LAYOUT and reader._guesses is not NULL:
        whole = _fill_usual(maker, reader, made, p, end)
    elif maker.optional:
        whole = _fill_properties(maker, reader, made, p, end)
    else:
        whole = _fill_arguments(maker, reader, made, p, end)
    hand_out(maker, made)
    if not whole:
        Py_DECREF(<object>made)
        return NULL
    return made


# These leave no slot empty, also where they decline.

cdef inline bint _fill_usual(
    Maker *maker, Reader reader, PyObject *made, const unsigned char *p, const unsigned char *end
) noexcept:
    """Fill in what is of one of the layouts that have functions of their own."""
    cdef PyObject **slots = slots_of(maker, made)
    cdef int filled = 0
    if maker.layout == PROPERTIES_LAYOUT:
        if end - p >= 2 and u16(p) & ~maker.flags == 0:
            filled = properties_at(reader, reader._guesses, slots, &p, end)
    elif maker.layout == DELIVER_LAYOUT:
        filled = deliver_at(reader, reader._guesses, slots, &p, end)
    elif maker.layout == PUBLISH_LAYOUT:
        filled = publish_at(reader, reader._guesses, slots, &p, end)
    elif maker.layout == GET_OK_LAYOUT:
        filled = get_ok_at(reader, reader._guesses, slots, &p, end)
    elif maker.layout == RETURN_LAYOUT:
        filled = return_at(reader, reader._guesses, slots, &p, end)
    if filled == maker.fields:
        return p == end
    empty(maker, made, filled)
    return False


cdef inline bint _fill_arguments(
    Maker *maker, Reader reader, PyObject *made, const unsigned char *p, const unsigned char *end
) noexcept:
    """Fill in the arguments of a method."""
    cdef Guess *guesses = NULL if reader._guesses is NULL else reader._guesses.arguments
    cdef PyObject **slots = slots_of(maker, made)
    cdef Py_ssize_t at
    cdef int octet = 0
    for at in range(maker.fields):
        if maker.kinds[at] != BIT_FIELD:
            slots[at] = field_at(reader, maker.kinds[at], guess_at(guesses, ARGUMENTS, at), &p, end)
            if slots[at] is NULL:
                empty(maker, made, at)
                return False
            continue
        if maker.bits[at] == 0:
            if p >= end:
                empty(maker, made, at)
                return False
            octet = p[0]
            p += 1
        slots[at] = truth(octet >> maker.bits[at] & 1)
    return p == end


cdef inline bint _fill_properties(
    Maker *maker, Reader reader, PyObject *made, const unsigned char *p, const unsigned char *end
) noexcept:
    """Fill in the properties whose flags are set (0-9-1 section 4.2.6.1)."""
    cdef Guess *guesses = NULL if reader._guesses is NULL else reader._guesses.properties
    cdef PyObject **slots = slots_of(maker, made)
    cdef Guess *guess
    cdef unsigned int flags
    cdef Py_ssize_t at, absent = 0
    flags = u16(p) if end - p >= 2 else 1
    if flags & ~maker.flags:
        empty(maker, made, 0)
        return False
    p += 2
    for at in range(maker.fields):
        if not flags & 0x8000:
            flags <<= 1
            slots[at] = <PyObject *>None
            absent += 1
            continue
        flags <<= 1
        guess = NULL if guesses is NULL else guesses + at  # there is a place for each
        slots[at] = field_at(reader, maker.kinds[at], guess, &p, end)
        if slots[at] is NULL:
            refer_to_none(absent)
            empty(maker, made, at)
            return False
    refer_to_none(absent)
    return p == end
