from cpython.object cimport PyObject

from .slots.makers_c cimport Maker
from .reader_c cimport Reader
from .routines_c cimport Reading


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept

cdef bint fill_octet(Reader reader, Reading *r, int place) noexcept
cdef bint fill_octet_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_short(Reader reader, Reading *r, int place) noexcept
cdef bint fill_short_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_long(Reader reader, Reading *r, int place) noexcept
cdef bint fill_long_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_longlong(Reader reader, Reading *r, int place) noexcept
cdef bint fill_longlong_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_shortstr(Reader reader, Reading *r, int place) noexcept
cdef bint fill_shortstr_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_longstr(Reader reader, Reading *r, int place) noexcept
cdef bint fill_longstr_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_timestamp(Reader reader, Reading *r, int place) noexcept
cdef bint fill_timestamp_if(Reader reader, Reading *r, int place) noexcept
cdef bint fill_table(Reader reader, Reading *r, int place) noexcept
cdef bint fill_table_if(Reader reader, Reading *r, int place) noexcept
