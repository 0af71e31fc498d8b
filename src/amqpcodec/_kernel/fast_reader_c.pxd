from .makers_c cimport Maker
from .reader_c cimport Reader


cdef object read_record(Maker *maker, Reader reader)
