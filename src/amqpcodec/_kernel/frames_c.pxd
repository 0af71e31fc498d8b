cimport cython

from .reader_c cimport Reader
from .records_c cimport ContentHeader
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD


cdef class FrameDecoder(StreamDecoder):
    @cython.locals(reader=Reader, frame_type=cython.int)
    cdef object _next(self)
    @cython.locals(header=ContentHeader)
    cdef object _header(self)
