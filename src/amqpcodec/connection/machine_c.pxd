cimport cython

from .._kernel.records_c cimport Frame, Message, Method
from .channel_c cimport Channel
from .contents_c cimport ContentReader
from .handshake_c cimport Handshake
from .rules_c cimport Rule
from .timers_c cimport Timers


cdef class Connection:
    cdef int _role
    cdef int _peer
    cdef object _module
    cdef object _dialect
    cdef dict _rules
    cdef dict _classes
    cdef int _connection_class
    cdef object _limits
    cdef object _encoder
    cdef ContentReader _decoder
    cdef Handshake _handshake
    cdef object _clock
    cdef Timers _timers
    cdef dict _channels
    cdef object _next_channel
    cdef Channel _zero
    cdef object _ready
    cdef list _out
    cdef long long _out_size
    cdef object _frame_limit
    cdef object _head
    cdef object _closing
    cdef bint _ended
    cdef bint _blocked

    cdef object _first_frame_max(self, object frame_max)
    cdef Channel _entry(self, object channel)
    cdef Channel _open_channel(self, object channel)
    cdef object _next(self)
    cdef object _read_head(self, bytes octets)
    @cython.locals(rule=Rule, frame=Frame)
    cdef object _on_value(self, object value)
    @cython.locals(kind=cython.int, entry=Channel, opening=cython.bint)
    cdef object _on_method(self, object number, Rule rule, object method)
    @cython.locals(entry=Channel)
    cdef bint _discards(self, object number, Rule rule) except -1
    @cython.locals(entry=Channel, rule=Rule)
    cdef object _on_message(self, Message message)
    cdef object _on_handshake(self, Rule rule, object method)
    @cython.locals(entry=Channel)
    cdef object _on_close(self, object number, object method)
    cdef object _on_close_ok(self, object number)
    @cython.locals(entry=Channel, phase=cython.int)
    cdef object _fault(self, int sender, object number, Rule rule, object method)
    @cython.locals(kind=cython.int, phase=cython.int)
    cdef object _connection_fault(self, int sender, Rule rule, object method)
    @cython.locals(entry=Channel)
    cdef object _on_error(self, object error)
    @cython.locals(entry=Channel)
    cdef object _violated(self, object number, object fault, object class_id, object method_id, object error)
    cdef int _leave(self, object close) except -1
    cdef object _over(self, object event)
    @cython.locals(rule=Rule)
    cdef Rule _rule(self, object method)
    cdef int _judge(self, object channel, Rule rule, object method) except -1
    cdef int _put(self, object octets) except -1
    @cython.locals(entry=Channel)
    cdef int _add_channel(self, int sender, object number, Rule rule, object method) except -1
    @cython.locals(entry=Channel)
    cdef int _close(self, object channel, object method) except -1
    cdef int _pass_handshake(self, Rule rule, object method) except -1
