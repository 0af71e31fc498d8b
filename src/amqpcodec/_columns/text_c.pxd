from .buffers_c cimport Column

cdef enum:
    MOST_OCTETS = 1_000_000  # of a table: with more, it may have more entries than a reader takes
    MOST_ENTRIES = 64  # of a table; comparing each key with each would take too long beyond


cdef bint is_among(const unsigned char **keys, int count, const unsigned char *key) noexcept nogil
cdef const unsigned char *put_value(
    const unsigned char *kinds, Column *map, const unsigned char *p, const unsigned char *end,
    const unsigned char *limit,
) noexcept nogil
cdef bint are_entries(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil
