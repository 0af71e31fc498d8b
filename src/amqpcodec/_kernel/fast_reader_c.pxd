from cpython.object cimport PyObject

from .slots.makers_c cimport Maker
from .reader_c cimport Reader
from .routines_c cimport Reading


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept

cdef bint fill_by_call(Reader reader, Reading *r, int kind, int place) noexcept
cdef bint fill_if_by_call(Reader reader, Reading *r, int kind, int place) noexcept
