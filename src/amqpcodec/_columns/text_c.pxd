from libc.stdint cimport uint64_t

from .buffers_c cimport Column

cdef enum:
    MOST_OCTETS = 1_000_000  # of a table: with more, it may have more entries than a reader takes
    MOST_ENTRIES = 64  # of a table; comparing each key with each would take too long beyond


cdef struct Keys:  # of a table so far
    int count
    uint64_t heads[MOST_ENTRIES]  # the first octets of each with its length in front, zeros behind shorter ones
    const unsigned char *keys[MOST_ENTRIES]


cdef bint add_key(Keys *keys, const unsigned char *key, const unsigned char *end) noexcept nogil
cdef const unsigned char *put_value(
    const unsigned char *kinds, Column *map, const unsigned char *p, const unsigned char *end,
    const unsigned char *limit,
) noexcept nogil
cdef const unsigned char *behind_value(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil
cdef bint are_entries(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil
