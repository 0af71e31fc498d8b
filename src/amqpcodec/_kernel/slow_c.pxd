cimport cython

from .reader_c cimport Reader
from .writer_c cimport Writer

cdef int read_slowly(object record, Reader reader) except -1
cdef int write_slowly(object record, Writer writer) except -1


@cython.locals(kind=cython.int, octet=cython.int, place=cython.int)
cdef int _read_arguments(object record, Reader reader) except -1


@cython.locals(kind=cython.int, octet=cython.int, place=cython.int)
cdef int _write_arguments(object record, Writer writer) except -1


@cython.locals(kind=cython.int)
cdef int _read_properties(object record, Reader reader) except -1
cdef int _write_properties(object record, Writer writer) except -1
