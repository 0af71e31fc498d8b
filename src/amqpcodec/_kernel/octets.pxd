# Octets of the wire as numbers and back, most significant first (0-9-1 section 4.2.5.1), and what can be said
# of text eight octets at a time. Callers have made sure that the octets are there.
from cpython.object cimport PyObject
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #define amqpcodec_octets(value) ((const unsigned char *)PyBytes_AS_STRING(value))
    """
    const unsigned char *octets_in "amqpcodec_octets"(PyObject *value) noexcept
    Py_ssize_t octet_count "PyBytes_GET_SIZE"(PyObject *value) noexcept


cdef inline uint16_t u16(const unsigned char *p) noexcept nogil:
    return <uint16_t>(<uint32_t>p[0] << 8 | p[1])


cdef inline uint32_t u32(const unsigned char *p) noexcept nogil:
    return <uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3]


cdef inline uint64_t u64(const unsigned char *p) noexcept nogil:
    return <uint64_t>u32(p) << 32 | u32(p + 4)


cdef inline float f32(const unsigned char *p) noexcept nogil:
    cdef uint32_t raw = u32(p)
    cdef float value
    memcpy(&value, &raw, 4)
    return value


cdef inline double f64(const unsigned char *p) noexcept nogil:
    cdef uint64_t raw = u64(p)
    cdef double value
    memcpy(&value, &raw, 8)
    return value


cdef inline void put16(unsigned char *p, uint32_t value) noexcept nogil:
    p[0] = <unsigned char>(value >> 8)
    p[1] = <unsigned char>(value & 0xFF)


cdef inline void put32(unsigned char *p, uint32_t value) noexcept nogil:
    put16(p, value >> 16)
    put16(p + 2, value & 0xFFFF)


cdef inline void put64(unsigned char *p, uint64_t value) noexcept nogil:
    put32(p, <uint32_t>(value >> 32))
    put32(p + 4, <uint32_t>(value & 0xFFFFFFFFU))


cdef inline uint64_t word(const unsigned char *p) noexcept nogil:
    """Eight octets as they lie in memory, whatever number that makes."""
    cdef uint64_t raw
    memcpy(&raw, p, 8)
    return raw


cdef inline void copy_short(unsigned char *to, const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """A short string. An inlined memcpy of at most 255 octets may take longer to begin than this to end."""
    cdef Py_ssize_t at = 0
    if size >= 16:
        while at < size - 16:  # a loop over a range would bring the reading of Python's numbers into each module
            memcpy(to + at, p + at, 16)
            at += 16
        memcpy(to + size - 16, p + size - 16, 16)  # may overlap with what the loop wrote, as below
    elif size >= 8:
        memcpy(to, p, 8)
        memcpy(to + size - 8, p + size - 8, 8)
    elif size >= 4:
        memcpy(to, p, 4)
        memcpy(to + size - 4, p + size - 4, 4)
    elif size > 0:
        to[0] = p[0]
        to[size >> 1] = p[size >> 1]
        to[size - 1] = p[size - 1]


cdef inline uint64_t head(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """Up to seven octets, each at least once."""
    cdef uint32_t first, last
    if size >= 4:
        memcpy(&first, p, 4)
        memcpy(&last, p + size - 4, 4)
        return <uint64_t>first << 32 | last
    if size > 0:
        return <uint64_t>p[0] << 16 | <uint64_t>p[size >> 1] << 8 | p[size - 1]
    return 0


cdef inline bint is_ascii(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    cdef const unsigned char *last
    cdef uint64_t seen
    if size < 8:
        return (head(p, size) & 0x8080808080808080U) == 0
    last = p + size - 8
    seen = word(p) | word(last)  # which may overlap
    if size > 16:
        seen |= word(p + 8) | word(last - 8)
        p += 16
        while p < last - 8:  # more than 32: most are no longer, and a loop costs more to begin than this
            seen |= word(p)
            p += 8
    return (seen & 0x8080808080808080U) == 0
