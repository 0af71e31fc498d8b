from .frames_c cimport FrameDecoder as ExactFrameDecoder
from .messages_c cimport MessageDecoder as ExactMessageDecoder


cdef class FrameDecoder(ExactFrameDecoder):
    cdef int _channel
    cdef object _boxed_channel  # the same as an object: most frames are of the channel of the one before

    cdef object _next(self)


cdef class MessageDecoder(ExactMessageDecoder):
    cdef bint _advance(self) except -1
