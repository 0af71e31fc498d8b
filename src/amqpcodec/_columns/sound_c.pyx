# cython: boundscheck=False, wraparound=False
"""Whether field tables are sound, without a look at what they say.

Only what is plainly right gets through; see plan_c.pyx.
"""

from libc.stdint cimport uint64_t

from .._kernel cimport kinds as wire
from .._kernel.octets cimport u32

cdef enum:
    _DEEPEST = 16


cdef bint are_entries(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """Whether octets are the entries of a table that is inside so many others; at most MOST_OCTETS in all.

    Args:
        kinds: table tag to wire kind, 0 for a tag nobody knows.
    """
    while p < end:
        if p[0] >= end - p - 1:
            return False
        p = _behind(kinds, p + 1 + p[0], end, depth)
        if p is NULL:
            return False
    return True


cdef bint _are_items(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """Whether octets are the values of an array."""
    while p < end:
        p = _behind(kinds, p, end, depth)
        if p is NULL:
            return False
    return True


cdef const unsigned char *_behind(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil:
    """What is behind the value whose tag is at `p`, before `end`; NULL if it is not sound."""
    cdef int kind = kinds[p[0]]
    cdef Py_ssize_t size = width(kind)
    p += 1
    if size >= 0:
        return p + size if end - p >= size else NULL
    if kind == wire.SHORTSTR:
        return p + 1 + p[0] if end - p >= 1 and p[0] < end - p else NULL
    if kind == 0 or end - p < 4 or u32(p) > <uint64_t>(end - p - 4):
        return NULL
    end = p + 4 + u32(p)
    if kind == wire.TABLE or kind == wire.ARRAY:
        if depth == _DEEPEST:
            return NULL
        if kind == wire.TABLE:
            return end if are_entries(kinds, p + 4, end, depth + 1) else NULL
        return end if _are_items(kinds, p + 4, end, depth + 1) else NULL
    return end
