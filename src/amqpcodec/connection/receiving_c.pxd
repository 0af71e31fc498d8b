cimport cython

from .constants cimport *
from .._kernel.messages_c cimport Content, MessageDecoder
from .._kernel.reader_c cimport Reader
from .._kernel.records_c cimport Frame, Message, Record
from .channel_c cimport Channel
from .outbox_c cimport Outbox
from .rules_c cimport Rule
from .state_c cimport Handshake, State, Timers
from .tuples cimport make_event, make_event_of_six


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


@cython.final
cdef class Receiver:
    cdef State _state
    cdef ContentReader _decoder
    cdef Outbox _outbox
    cdef Timers _timers
    cdef object _ready
    cdef object _head
    cdef bint _ended

    cpdef int feed(self, object data) except -1
    cdef bytes _read_head(self, bytes octets)
    cpdef object next(self)
    @cython.locals(rule=Rule)
    cdef object _on_value(self, object value)
    @cython.locals(state=State, kind=cython.int)
    cdef object _on_method(self, object number, Rule rule, object method)
    @cython.locals(state=State, entry=Channel, kind=cython.int, opening=cython.bint)
    cdef object _on_other(self, object number, Rule rule, object method)
    @cython.locals(state=State, entry=Channel, rule=Rule)
    cdef object _on_message(self, Message message)
    @cython.locals(rule=Rule)
    cdef bint _cut_by_close(self) except -1
    @cython.locals(state=State)
    cdef object _on_flow(self, object number, object method)
    cdef object _on_handshake(self, Rule rule, object method)
    @cython.locals(handshake=Handshake)
    cpdef int pass_handshake(self, Rule rule, object method) except -1
    @cython.locals(state=State, entry=Channel)
    cdef object _on_close(self, object number, object method)
    cdef object _on_close_ok(self, object number)
    @cython.locals(entry=Channel)
    cdef object _channel_over(self, object number, object by, object close)
    cpdef int leave(self, object close) except -1
    cdef object _over(self, object event)
    cdef bint _answer(self, object number, object method) except -1
    @cython.locals(state=State, entry=Channel)
    cdef object _on_error(self, object error)
    cdef object _flooded(self)
    cdef object _violated(self, object number, object fault, object class_id, object method_id, object error)
    cpdef int on_time(self, double now) except -1
    cdef int _time_out(self, object code, object text) except -1
