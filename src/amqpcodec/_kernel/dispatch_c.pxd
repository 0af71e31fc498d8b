cimport cython
from cpython.object cimport PyObject

from .fixed_c cimport Fixed, FixedMethods
from .makers_c cimport MakerTable
from .reader_c cimport Reader
from .records_c cimport Record
from .writer_c cimport Writer, WriterRules


@cython.final
cdef class Dispatch:
    cdef FixedMethods fixed
    cdef MakerTable makers

    cdef bint has(self, long long number) noexcept
    cdef Record create(self, long long number)
    cdef Record read_fast(self, long long number, Reader reader)

    cdef inline int read(self, Record record, Reader reader) except -1:
        """Fill an instance from the payload that the reader is aimed at."""
        return record._read(reader)

    cdef inline int write(self, Record record, Writer writer) except -1:
        """Write the attributes of an instance."""
        return record._write(writer)

    cdef inline object frame(self, object channel, object method, long long limit, WriterRules rules):
        """Return a whole method frame in one go, or None where `write` must make its payload."""
        cdef Fixed *fixed = self.fixed.find((<PyObject *>method).ob_type)
        return None if fixed is NULL else self.fixed.frame(fixed, channel, method, limit)

    cdef inline int decline(self, object method, Writer writer) except -1:
        """Have the slow path write what `frame` declined; the fast path shares nothing with it here."""
        return 0
