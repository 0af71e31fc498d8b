cimport cython

from .fast_frames_c cimport read_frame
from .reader_c cimport Reader
from .records_c cimport ContentHeader, Frame
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD, PROTOCOL_HEADER

cdef object _METHOD, _HEADER, _BODY


cdef class FrameDecoder(StreamDecoder):
    cdef bint _raw
    cdef int _channel
    cdef object _channel_object

    @cython.locals(reader=Reader, frame=Frame, fast=Frame)
    cdef object _read(self)
    @cython.locals(header=ContentHeader)
    cdef object _header(self)
    @cython.locals(reader=Reader, octets=bytes)
    cdef Frame _read_raw(self)

    cdef inline Frame _read_fast(self):
        """Return the frame that the reader is aimed at, or None where the slow path must read it."""
        return read_frame(self._reader, self._methods, self._properties, self._raw_reading, self._channel_object)
