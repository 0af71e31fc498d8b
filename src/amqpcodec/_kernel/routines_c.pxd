# The steps that routines are made of are in read_values.pxd and write_values.pxd.
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from .reader_c cimport Guesses, Reader
from .writer_c cimport WriterRules

cdef enum:
    MOST_HEAD = 4096  # octets of a method frame and a header frame; longer ones are left to `Writer`


# What a routine has done so far. These are local to it, so that a compiler keeps them in registers.

cdef struct Reading:
    Guesses *guesses  # of the reader; NULL if it remembers nothing
    PyObject **slots  # of the record, empty
    const unsigned char *p
    const unsigned char *end
    int filled  # the slots before it, where a step declines
    unsigned int flags  # of the properties that are there
    Py_ssize_t absent  # how many are not


cdef struct Writing:
    PyObject **slots
    unsigned char *p
    const unsigned char *end
    unsigned char *at  # where the flags of properties are; NULL of arguments
    uint32_t flags


# Return whether all slots are filled, and where what was written ends, or NULL.
ctypedef bint (*ReadRoutine)(
    Reader reader, PyObject **slots, const unsigned char *p, const unsigned char *end
) noexcept
ctypedef unsigned char *(*WriteRoutine)(
    WriterRules rules, PyObject **slots, unsigned char *p, const unsigned char *end
) noexcept


@cython.final
cdef class Routines:
    cdef ReadRoutine read
    cdef WriteRoutine write


cdef Routines routines(ReadRoutine read, WriteRoutine write)
