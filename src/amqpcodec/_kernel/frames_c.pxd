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


cdef inline Frame fast_frame(FrameDecoder decoder):
    """Return the next frame, or None where it is for the slow path, and has changed nothing then."""
    cdef Frame frame = None
    if decoder._raw or not decoder._begin_fast():
        return None
    try:
        if decoder._aim_fast(1U << METHOD | 1U << HEADER | 1U << BODY):
            if decoder._reader.channel != decoder._channel:
                decoder._channel = decoder._channel_object = decoder._reader.channel
            frame = decoder._read_fast()
            if frame is not None:
                decoder._end_fast(decoder._reader.frame_size)
    finally:
        decoder._lock.release()
    return frame
