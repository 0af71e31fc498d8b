# Texts of the reader's cache: what they hash to, and whether two of them are equal, eight octets at a time.
# Up to seven octets before a text are read with it.
from libc.stdint cimport uint64_t

from .octets cimport word

cdef extern from "Python.h":
    bint PY_BIG_ENDIAN


cdef inline Py_ssize_t first(Py_ssize_t size) noexcept nogil:
    """Where the first word of a text begins: one shorter than a word is in that which ends where it does."""
    return min(size - 8, 0)


cdef inline uint64_t mask_of(Py_ssize_t size) noexcept nogil:
    """Return masks of the octets in the first and last word that belong to the text, which is not empty."""
    cdef int outside = <int>(-8 * first(size))
    return ~<uint64_t>0 >> outside if PY_BIG_ENDIAN else ~<uint64_t>0 << outside


cdef inline uint64_t mix_of(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """A hash of up to 32 octets of a text. What it leaves out only costs a miss: hits are compared whole."""
    cdef uint64_t mask = mask_of(size)
    cdef uint64_t mix = (word(p + first(size)) & mask) ^ (word(p + size - 8) & mask) * 0xC2B2AE3D27D4EB4FU
    if size > 16:
        mix += word(p + 8) * 0x165667B19E3779F9U ^ word(p + size - 16) * 0xD6E8FEB86659FD93U
    return (mix ^ mix >> 32) * 0x9E3779B97F4A7C15U


cdef inline bint same(const unsigned char *p, const unsigned char *q, Py_ssize_t size) noexcept nogil:
    """Return whether two texts of one size are equal."""
    cdef Py_ssize_t at = 8
    cdef uint64_t differ = word(p + first(size)) ^ word(q + first(size))
    differ |= word(p + size - 8) ^ word(q + size - 8)
    if differ & mask_of(size):
        return False
    while at < size - 8:
        if word(p + at) != word(q + at):
            return False
        at += 8
    return True
