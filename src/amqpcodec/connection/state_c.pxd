cimport cython

from .constants cimport *
from .channel_c cimport Channel
from .rules_c cimport Rule


@cython.final
cdef class Handshake:
    cdef public int phase
    cdef readonly object channel_max
    cdef readonly object frame_max
    cdef readonly object heartbeat
    cdef readonly object tune
    cdef public object largest

    cdef object _tune_fault(self, object name, object answer, object offer, object least)


@cython.final
cdef class Timers:
    cdef object _clock
    cdef double _received_at
    cdef double _sent_at
    cdef readonly int heartbeat
    cdef public double handshake_ends
    cdef public double close_ends

    cpdef int received(self) except -1
    cpdef int sent(self) except -1


@cython.final
cdef class State:
    cdef readonly int role
    cdef readonly int peer
    cdef readonly object dialect
    cdef readonly dict rules
    cdef readonly dict classes
    cdef readonly object limits
    cdef readonly Handshake handshake
    cdef readonly dict channels
    cdef readonly set left
    cdef public long long ignored
    cdef readonly Channel zero
    cdef public object closing
    cdef public object crossed
    cdef public bint blocked
    cdef int _connection_class
    cdef Channel _recent
    cdef object _recent_class
    cdef Rule _recent_rule

    cpdef Channel entry(self, object number)
    @cython.locals(recent=Channel)
    cdef Channel channel(self, object number)
    @cython.locals(rule=Rule)
    cdef Rule rule_of_content(self, object method)
    cdef Channel drop_channel(self, object number, bint by_peer)
    @cython.locals(entry=Channel)
    cpdef int add_channel(self, int sender, object number, Rule rule, object method) except -1
    @cython.locals(entry=Channel)
    cpdef int close_channel(self, object number, object close) except -1
    @cython.locals(entry=Channel)
    cpdef bint ignores(self, object number) except -1
    cpdef int answered(self) except -1
    cpdef bint discards(self, object number, Rule rule) except -1
    cpdef bint forgives(self, object number, bint wrong) except -1
    @cython.locals(entry=Channel, kind=cython.int)
    cdef bint _is_due(self, object number, Rule rule) except -1
    @cython.locals(rule=Rule, entry=Channel, ordinary=cython.bint)
    cpdef object judge_content(self, object number, object method)
    @cython.locals(entry=Channel, phase=cython.int)
    cpdef object fault(self, int sender, object number, Rule rule, object method)
    @cython.locals(kind=cython.int, phase=cython.int)
    cdef object _connection_fault(self, int sender, Rule rule, object method)
