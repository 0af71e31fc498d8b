from cpython.object cimport PyObject

from .slots.makers_c cimport Maker
from .reader_c cimport Reader


cdef PyObject *read_record(Maker *maker, Reader reader, const unsigned char *p, const unsigned char *end) noexcept
