cimport cython

from .reader_c cimport ReaderRules
from .writer_c cimport WriterRules


cdef class TableCodec:
    cdef ReaderRules _reading
    cdef ReaderRules _reading_strictly
    cdef WriterRules _writing
    cdef WriterRules _writing_strictly

    @cython.locals(rules=ReaderRules)
    cdef object _decode(self, bytes data, bint strict)
    cdef object _decode_pairs(self, bytes data)
    @cython.locals(rules=WriterRules)
    cdef object _encode(self, object table, bint strict)


cdef bytes _octets(object octets)
