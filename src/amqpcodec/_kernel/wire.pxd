# What is in wire.py, for C; a text whose .pxd cimports it does not import wire.py.
cdef enum:
    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8
    PROTOCOL_HEADER = 65
    ENVELOPE_SIZE = 7
    OVERHEAD = 8
    FRAME_END = 0xCE
    FRAME_SLACK = 8

cdef extern from *:
    const long long MAX_PAYLOAD "4294967295LL"


cdef inline unsigned long long as_unsigned(long long size) noexcept nogil:
    return <unsigned long long>size
