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
from libc.stdint cimport uint64_t

from .read_values cimport (
    guess_at, int_of_long, int_of_unsigned, new_octets, table_at, text_at, time_at, truth,
)
from .fields cimport (
    BIT_FIELD, LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TIME_FIELD,
)
from .makers_c cimport empty, hand_out, refer_to_none, slots_of, take
from .octets cimport u16, u32, u64
from .reader_c cimport ARGUMENTS, Guess

import_datetime()


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept:
    """Return the method or properties whose fields lie between `p` and `end`, to be owned by the caller. NULL, maybe
    with an exception, leaves them to the slow path."""
    cdef PyObject *made
    cdef bint whole
    if not maker.plain or reader._rules.declines:
        return NULL
    if reader._cache is NULL and reader._keeps:
        reader._make_cache()
    made = take(maker)
    if made is NULL:
        return NULL
    if maker.optional:
        whole = _fill_properties(maker, reader, made, p, end)
    else:
        whole = _fill_arguments(maker, reader, made, p, end)
    hand_out(maker, made)
    if not whole:
        Py_DECREF(<object>made)
        return NULL
    return made


# Both leave no slot empty, also where they decline.

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
            slots[at] = _field(reader, maker.kinds[at], guess_at(guesses, ARGUMENTS, at), &p, end)
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
        slots[at] = _field(reader, maker.kinds[at], guess, &p, end)
        if slots[at] is NULL:
            refer_to_none(absent)
            empty(maker, made, at)
            return False
    refer_to_none(absent)
    return p == end


cdef inline PyObject *_field(
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
