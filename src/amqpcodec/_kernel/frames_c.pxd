cimport cython

from .reader_c cimport Reader
from .records_c cimport new_frame, new_header
from .stream_c cimport BODY, HEADER, METHOD, StreamDecoder


cdef class FrameDecoder(StreamDecoder):
    @cython.locals(reader=Reader, frame_type=cython.int)
    cdef object _next(self)
