from libc.stdint cimport int64_t

from .._kernel.writer_c cimport Writer, WriterRules

cdef enum:
    MOST_INTEGER_TAGS = 16


cdef struct IntegerTag:
    unsigned char tag
    int octets
    int64_t least
    int64_t most


cdef class PeerRules(WriterRules):
    cdef IntegerTag integers[MOST_INTEGER_TAGS]
    cdef int integer_count
    cdef unsigned char float_tag
    cdef unsigned char bytes_tag
    cdef unsigned char bytearray_tag
    cdef bint tuples
    cdef bint sorted_keys
    cdef Py_ssize_t longest_key
    cdef object own_int
    cdef object decimal


cdef bint is_number(object value, int64_t *number) noexcept
cdef int put_field(Writer writer, int kind, object value) except -1
cdef int put_table(Writer writer, object table) except -1
