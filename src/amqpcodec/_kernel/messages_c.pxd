cimport cython

from .reader_c cimport Reader
from .records_c cimport Frame, Message, Method, Properties
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD


@cython.no_gc
cdef class Content:
    cdef public Method method
    cdef public Properties properties
    cdef public object body_size
    cdef public object left
    cdef public list pieces


cdef class MessageDecoder(StreamDecoder):
    cdef bint _keep
    cdef bint _join
    cdef dict _open
    cdef object _held

    @cython.locals(frame_type=cython.int)
    cdef object _next(self)
    @cython.locals(method=Method)
    cdef object _method(self)
    @cython.locals(content=Content)
    cdef object _header(self)
    @cython.locals(content=Content)
    cdef object _body(self)
    cdef object _finished(self, object channel, Content content)
    @cython.locals(message=Message)
    cdef object _message(self, object channel, Content content, object complete)
    cdef object _unexpected(self, object message)
