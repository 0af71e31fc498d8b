"""The short way from frame to frame, which the decoders of the compiled build try first.

It takes methods, content headers and bodies that lie in one chunk, when nothing about their envelope is odd;
with any other, the decoders of stream_py.py start over.
"""

from .frames_c cimport FrameDecoder as ExactFrameDecoder
from .messages_c cimport MessageDecoder as ExactMessageDecoder
from .reader_c cimport Reader
from .records_c cimport Frame
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD

cdef object _METHOD = METHOD, _HEADER = HEADER, _BODY = BODY


cdef inline bint _step(StreamDecoder decoder) except -1:
    """Aim the reader at the payload of the next frame; False where the exact way has to judge."""
    cdef Py_ssize_t size
    if decoder._partial is not None:
        return False
    size = decoder._reader.step(
        decoder._chunk, decoder._pos, decoder._end, decoder._size_limit, decoder._offset
    )
    decoder._pos += size
    decoder._offset += size
    return size != 0


cdef class FrameDecoder(ExactFrameDecoder):

    cdef object _next(self):
        cdef Reader reader = self._reader
        cdef Frame frame
        if not _step(self):
            return ExactFrameDecoder._next(self)
        frame = Frame.__new__(Frame)
        if reader.frame_type == METHOD:
            frame.type = _METHOD
            frame.payload = self._read_method()
        elif reader.frame_type == HEADER:
            frame.type = _HEADER
            frame.payload = self._header()
        else:
            frame.type = _BODY
            frame.payload = self._read_body()
        if reader.channel != self._channel or self._boxed_channel is None:
            self._channel = reader.channel
            self._boxed_channel = reader.channel
        frame.channel = self._boxed_channel
        return frame


cdef class MessageDecoder(ExactMessageDecoder):

    cdef bint _advance(self) except -1:
        return _step(self) or ExactMessageDecoder._advance(self)
