cimport cython

from .constants cimport *
from .channel_c cimport Channel
from .outbox_c cimport Outbox
from .receiving_c cimport Receiver
from .rules_c cimport Rule
from .state_c cimport Handshake, State, Timers


cdef class Connection:
    cdef object _module
    cdef object _encoder
    cdef object _clock
    cdef Timers _timers
    cdef Outbox _outbox
    cdef State _state
    cdef Receiver _receiver
    cdef object _next_channel
    cdef object _send_buffer
    cdef object _sent_class
    cdef Rule _sent_rule

    cdef Channel _open_channel(self, object channel)
    @cython.locals(rule=Rule)
    cdef Rule _rule(self, object method)
    @cython.locals(state=State)
    cdef int _judge(self, object channel, Rule rule, object method) except -1
    @cython.locals(handshake=Handshake)
    cdef int _judge_size(self, Rule rule, object size) except -1
    @cython.locals(rule=Rule, state=State, entry=Channel, kind=cython.int)
    cpdef object send(self, object channel, object method)
    @cython.locals(rule=Rule, entry=Channel)
    cpdef object send_message(self, object channel, object method, object properties, object body)
