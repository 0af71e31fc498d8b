# The numbers of wire.py as C constants; a text whose .pxd cimports them does not import wire.py.
cdef enum:
    METHOD = 1
    HEADER = 2
    BODY = 3
    HEARTBEAT = 8
    PROTOCOL_HEADER = 65
    ENVELOPE_SIZE = 7
    OVERHEAD = 8
    FRAME_END = 0xCE

cdef extern from *:
    const long long MAX_PAYLOAD "4294967295LL"
