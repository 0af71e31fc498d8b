# Where a frame ends: `frame_at` of framing.py in C, without the interpreter lock and without exceptions.
from .octets cimport u32
from .wire cimport ENVELOPE_SIZE, FRAME_END, OVERHEAD, PROTOCOL_HEADER


cdef enum FrameStatus:
    WHOLE = 0
    MORE = 1
    UNKNOWN_TYPE = 2
    TOO_LARGE = 3
    WRONG_END = 4


cdef inline FrameStatus frame_at(
    const unsigned char *p, Py_ssize_t left, unsigned int types, long long size_limit, bint opens, long long *size
) noexcept nogil:
    """Look for a whole frame at `p`, where `left` octets lie.

    `types` has bit n set for an accepted frame type n, `size_limit` is the largest payload to accept, and where
    `opens` is set a protocol header may stand in place of a frame. `size` is set to the octets of the whole
    frame as far as they are known; before the envelope is there, to the size of the envelope.
    """
    cdef long long whole
    if left < ENVELOPE_SIZE:
        size[0] = ENVELOPE_SIZE
        return MORE
    whole = <long long>u32(p + 3) + OVERHEAD
    size[0] = whole
    if p[0] > 31 or not types >> p[0] & 1:
        if p[0] != PROTOCOL_HEADER or not opens:
            return UNKNOWN_TYPE
        size[0] = OVERHEAD
        return MORE if left < OVERHEAD else WHOLE
    if whole > size_limit + OVERHEAD:
        return TOO_LARGE
    if whole > left:
        return MORE
    return WHOLE if p[whole - 1] == FRAME_END else WRONG_END
