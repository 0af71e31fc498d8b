cimport cython

from .reader_c cimport Reader
from .records_c cimport ContentHeader, Frame
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD, PROTOCOL_HEADER

cdef object _METHOD, _HEADER, _BODY


cdef class FrameDecoder(StreamDecoder):
    cdef bint _raw
    cdef int _channel
    cdef object _channel_object

    @cython.locals(reader=Reader, frame=Frame)
    cdef object _read(self)
    @cython.locals(header=ContentHeader)
    cdef object _header(self)
    @cython.locals(reader=Reader, octets=bytes)
    cdef Frame _read_raw(self)
