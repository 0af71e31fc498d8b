cimport cython

from .._kernel.messages_c cimport Content, MessageDecoder
from .._kernel.reader_c cimport Reader
from .._kernel.records_c cimport Record
from .constants cimport *
from .state_c cimport State


cdef class ContentReader(MessageDecoder):
    cdef State _state
    cdef long long _held
    cdef long long _held_limit

    @cython.locals(reader=Reader, most=cython.longlong)
    cdef int _set_limits(self, object frame_max, long long size_limit) except -1
    cdef bint _judge(self, int channel, Record method) except -1
    cdef int _forget(self) except -1
    @cython.locals(size=cython.Py_ssize_t)
    cdef object _header(self)
    @cython.locals(size=cython.Py_ssize_t)
    cdef object _body(self)
    @cython.locals(content=Content)
    cdef int _hold(self, Py_ssize_t size) except -1
    cdef int _drop(self, Content content) except -1
