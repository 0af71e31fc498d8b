# The wire kinds of profiles.py, as constants that C can switch on.
cdef enum:
    BOOL = 1
    INT8 = 2
    UINT8 = 3
    INT16 = 4
    UINT16 = 5
    INT32 = 6
    UINT32 = 7
    INT64 = 8
    UINT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DECIMAL = 12
    SHORTSTR = 13
    LONGSTR = 14
    OCTETS = 15
    ARRAY = 16
    TIMESTAMP = 17
    TABLE = 18
    VOID = 19
    CHARACTER = 20
