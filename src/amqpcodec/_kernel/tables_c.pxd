cimport cython

from .reader_c cimport ReaderRules
from .writer_c cimport WriterRules


cdef class TableCodec:
    cdef ReaderRules _reading
    cdef ReaderRules _reading_strictly
    cdef WriterRules _writing
    cdef WriterRules _writing_strictly

    @cython.locals(rules=ReaderRules)
    cpdef object decode_table(self, object octets, bint strict=*)
    cpdef object decode_pairs(self, object octets)
    @cython.locals(rules=WriterRules)
    cpdef object encode_table(self, object table, bint strict=*)


cdef bytes _octets(object octets)
