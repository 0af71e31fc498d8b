from . cimport encoder_c


cdef class Encoder(encoder_c.Encoder):
    pass
