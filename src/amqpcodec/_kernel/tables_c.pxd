cimport cython

from .reader_c cimport Reader, ReaderRules
from .readers_c cimport ReaderPool
from .writer_c cimport WriterRules


cdef class TableCodec:
    cdef ReaderPool _reading
    cdef ReaderPool _reading_strictly
    cdef WriterRules _writing
    cdef WriterRules _writing_strictly

    @cython.locals(readers=ReaderPool)
    cdef object _decode(self, bytes data, bint strict)
    cdef object _decode_pairs(self, bytes data)
    @cython.locals(rules=WriterRules)
    cdef object _encode(self, object table, bint strict)


@cython.locals(rules=ReaderRules, reader=Reader)
cpdef object read_pairs(bytes octets, str profile, object limits, bint tolerant)
cdef bytes _octets(object octets)
