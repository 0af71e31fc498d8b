from .encoder_c cimport Encoder as SlowEncoder


cdef class Encoder(SlowEncoder):
    pass
