cimport cython

from .reader_c cimport Reader, ReaderRules
from .writer_c cimport Writer, WriterRules


@cython.locals(reader=Reader)
cpdef object decode_table(object octets, object profile=*, bint strict=*)
@cython.locals(reader=Reader)
cpdef object decode_pairs(object octets, object profile=*)
@cython.locals(writer=Writer)
cpdef object encode_table(object table, object profile=*, bint strict=*)
