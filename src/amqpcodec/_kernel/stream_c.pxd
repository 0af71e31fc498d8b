cimport cython

from .dispatch_c cimport Dispatch
from .reader_c cimport Reader, ReaderRules
from .records_c cimport Frame, Heartbeat, Method, OpaquePayload, Properties, ProtocolHeader
from .turn_c cimport Turn
from .wire cimport ENVELOPE_SIZE, FRAME_END, HEARTBEAT, OVERHEAD, PROTOCOL_HEADER


cdef class StreamDecoder:
    cdef object _dialect
    cdef Reader _reader
    cdef Dispatch _methods
    cdef Dispatch _properties
    cdef unsigned int _types
    cdef long long _size_limit
    cdef bint _strict
    cdef Turn _turn
    cdef object _receive
    cdef object _pin
    cdef object _chunk
    cdef Py_ssize_t _pos
    cdef Py_ssize_t _end
    cdef object _queue
    cdef object _partial
    cdef long long _need
    cdef long long _offset
    cdef object _error
    cdef object _record

    cdef object _next(self)
    cdef int _take_turn(self, Turn turn) except -1
    cdef object _entry_refused(self)
    cdef int _forget(self) except -1
    cdef int _let_go(self) except -1
    cdef bint _put(self, bytes octets) except -1
    cdef bint _only_adds(self, bytes octets) except -1
    cdef int _put_received(self, Py_ssize_t size) except -1
    cdef int _blame(self, object error) except -1
    @cython.locals(left=cython.Py_ssize_t, at=cython.Py_ssize_t, size=cython.longlong)
    cdef bint _advance(self) except -1
    cdef int _set_aside(self, long long need) except -1
    cdef bint _fill(self) except -1
    @cython.locals(stop=cython.Py_ssize_t)
    cdef bint _top_up(self, long long size) except -1
    @cython.locals(reader=Reader, size=cython.longlong, frame_type=cython.int)
    cdef long long _frame_size(self, Py_ssize_t at) except -1
    @cython.locals(reader=Reader, octet=cython.int)
    cdef int _enter(self, Py_ssize_t at, long long size) except -1
    cdef object _fatal(self, object message, long long ahead)
    @cython.locals(frame=Frame)
    cdef Frame _frame(self, object frame_type, object channel, object payload)
    @cython.locals(reader=Reader, method=Method, index=cython.longlong)
    cdef object _read_method(self)
    @cython.locals(reader=Reader)
    cdef int _check_method(self, object method, long long class_id) except -1
    @cython.locals(reader=Reader, properties=Properties, class_id=cython.int)
    cdef object _read_properties(self)
    @cython.locals(reader=Reader)
    cdef object _read_body(self)
    @cython.locals(reader=Reader)
    cdef object _read_other(self)
    cdef object _read_protocol_header(self)
