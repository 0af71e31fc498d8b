from libc.stdint cimport uint64_t

from .buffers_c cimport Column

cdef extern from *:
    const uint64_t LAST_SECOND "253402300799ULL"  # 9999-12-31T23:59:59Z

cdef enum:
    MOST_ENTRIES = 64  # of a table; comparing each key with each would take too long beyond


cdef bint is_among(const unsigned char **keys, int count, const unsigned char *key) noexcept nogil
cdef const unsigned char *put_value(
    const unsigned char *kinds, Column *map, const unsigned char *p, const unsigned char *end,
    const unsigned char *limit,
) noexcept nogil
