# Whether field tables are sound, without a look at what they say.
from .._kernel cimport kinds as wire

cdef enum:
    MOST_OCTETS = 1_000_000  # of a table: with more, it may have more entries than a reader takes


cdef bint are_entries(
    const unsigned char *kinds, const unsigned char *p, const unsigned char *end, int depth
) noexcept nogil


cdef inline Py_ssize_t width(int kind) noexcept nogil:
    """Octets of a value that has no length in front; -1 for any other kind."""
    if kind == wire.VOID:
        return 0
    if kind == wire.BOOL or kind == wire.INT8 or kind == wire.UINT8 or kind == wire.CHARACTER:
        return 1
    if kind == wire.INT16 or kind == wire.UINT16:
        return 2
    if kind == wire.INT32 or kind == wire.UINT32 or kind == wire.FLOAT:
        return 4
    if kind == wire.DECIMAL:
        return 5
    if kind == wire.INT64 or kind == wire.UINT64 or kind == wire.TIMESTAMP or kind == wire.DOUBLE:
        return 8
    return -1
