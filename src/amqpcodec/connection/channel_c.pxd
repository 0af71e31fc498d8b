cimport cython

from .constants cimport *
from .rules_c cimport Rule


@cython.final
cdef class Tags:
    cdef public object last
    cdef set _waiting
    cdef list _order
    cdef object _forgotten

    cpdef int add(self, object tag) except -1
    cpdef int skip(self, object tag) except -1
    cpdef object count(self)
    cpdef bint knows(self, object tag, bint multiple) except -1
    cpdef bint waits_for(self, object tag) except -1
    @cython.locals(waited=cython.Py_ssize_t)
    cpdef object settle(self, object tag, bint multiple)


@cython.final
cdef class Channel:
    cdef public object number
    cdef public int state
    cdef public object closing
    cdef public object crossed
    cdef readonly Tags deliveries
    cdef readonly Tags publishes
    cdef int _role
    cdef object _limits
    cdef object _most_deliveries
    cdef int _mode
    cdef tuple _pending
    cdef int _stopped
    cdef readonly dict consumers
    cdef set _asked
    cdef dict _leaving
    cdef set _withdrawn
    cdef list _uncommitted

    @cython.locals(kind=cython.int)
    cpdef object fault(self, int sender, Rule rule, object method)
    @cython.locals(waiting=Rule)
    cpdef bint opens(self, Rule rule) except -1
    cdef bint _is_taken(self, object consumer_tag) except -1
    cpdef bint is_stray(self, Rule rule, object method) except -1
    cdef bint _needs_no_ack(self, object consumer_tag) except -1
    cdef int _add_consumer(self, object tag, bint no_ack) except -1
    cdef int _cancel(self, object tag) except -1
    cdef int _leave(self, object tag, bint no_ack) except -1
    @cython.locals(to_consumer=cython.bint)
    cdef object _own_fault(self, Rule rule, object method)
    cdef object _tag_fault(self, object tag)
    @cython.locals(multiple=cython.bint)
    cdef object _settle_fault(self, int sender, Rule rule, object method)
    cdef object _mode_fault(self, Rule rule)
    @cython.locals(answered=cython.bint)
    cpdef object apply(self, int sender, Rule rule, object method)
    @cython.locals(waiting=Rule, ours=cython.bint)
    cdef object _request(self, int sender, Rule rule, object method)
    @cython.locals(waiting=Rule)
    cdef object _reply(self, int sender, Rule rule, object method)
    @cython.locals(kind=cython.int, bit=cython.int)
    cdef int _apply_kind(self, int sender, Rule rule, object method, object request) except -1
    cdef int _deliver(self, object tag, bint no_ack) except -1
    @cython.locals(kind=cython.int)
    cdef int _apply_consumer(self, int sender, Rule rule, object method, object request) except -1
    @cython.locals(multiple=cython.bint)
    cpdef object settle(self, int sender, Rule rule, object method)
    cpdef object sequence_number(self, Rule rule)
