cimport cython

from .reassembly_c cimport Chunk, Reassembler

cdef long long _NO_TIME, _NEVER, _LARGEST_JUMP, _CLOSING_NS, _HELD_NS
cdef int COMPARED, ENOUGH


@cython.final
@cython.no_gc  # no cycle can run through it
cdef class Flow:
    cdef readonly object connection
    cdef readonly object client
    cdef readonly bint selected
    cdef public bint current
    cdef readonly tuple directions
    cdef public long long packet
    cdef public int seen
    cdef public long long time_ns
    cdef public long long touched
    cdef public long long waiting
    cdef public int alike, compared

    cdef int note(self, long long packet, object time_ns) except -1
    cdef int direction(self, object source) except -1
    @cython.locals(own=Reassembler)
    cdef bint abandoned(self, object segment, long long timeout_ns) except -1
    @cython.locals(chunk=Chunk)
    cdef int emit(self, int direction, list chunks, list events) except -1
    @cython.locals(reassembler=Reassembler)
    cdef object close(self, int direction, list events)
    @cython.locals(own=Reassembler)
    cdef int add(self, int direction, object segment, list events) except -1
    cdef object _last_time(self)
    @cython.locals(direction=cython.int, own=Reassembler, peer=Reassembler, alone=cython.bint)
    cdef bint may_be_answered_by(self, object segment) except -1


@cython.final
cdef class StreamTracker:
    cdef object _ports
    cdef tuple _window
    cdef long long _timeout_ns
    cdef long long _max_waiting
    cdef Py_ssize_t _max_connections
    cdef dict _flows
    cdef dict _unanswered
    cdef dict _other_tunnels
    cdef list _silent
    cdef object _closing
    cdef object _held
    cdef long long _deadline
    cdef long long _fed
    cdef long long _count
    cdef long long _waiting
    cdef object _copies
    cdef bint _drops_copies
    cdef public long long recorded_twice
    cdef public bint heard
    cdef readonly object elsewhere

    @cython.locals(flow=Flow, events=list, direction=cython.int)
    cpdef list feed(self, object segment)
    @cython.locals(flow=Flow, own=Reassembler, direction=cython.int)
    cpdef object locate(self, object segment)
    @cython.locals(answered=Flow)
    cdef object _placed(self, object segment)
    @cython.locals(known=Flow, flow=Flow)
    cdef Flow _answered(self, object segment)
    @cython.locals(each=Flow)
    cdef int _note_unanswered(self, Flow flow, object segment) except -1
    @cython.locals(each=Flow)
    cdef int _note_answered(self, Flow flow, object segment) except -1
    cdef int _bound(self, dict table) except -1
    @cython.locals(flow=Flow, events=list)
    cpdef list finish(self)
    @cython.locals(flow=Flow, own=Reassembler)
    cdef Flow _flow_of(self, object segment, list events)
    cdef object _compare(self, Flow flow, object segment, list events)
    cdef object _mark_copy(self, Flow flow, object original, list events)
    @cython.locals(own=Reassembler, peer=Reassembler, flags=cython.int, length=cython.longlong)
    cdef object _advance(self, Flow flow, int direction, object segment, list events)
    @cython.locals(own=Reassembler)
    cdef bint _joins(self, Flow flow, int direction, object segment, list events) except -1
    cdef int _hold(self, Flow flow) except -1
    @cython.locals(own=Reassembler, direction=cython.int)
    cdef int _let_go(self, Flow flow, list events) except -1
    @cython.locals(own=Reassembler)
    cdef object _far_away(self, Flow flow, int direction, object segment, list events)
    @cython.locals(flow=Flow, former=Flow)
    cdef Flow _new_flow(self, object key, object segment)
    cdef object _client(self, object segment)
    @cython.locals(one=Reassembler, other=Reassembler)
    cdef int _expect_close(self, Flow flow) except -1
    cdef int _set_deadline(self) except -1
    @cython.locals(flow=Flow)
    cdef int _settle(self, object time_ns, list events) except -1
    cdef int _finish_flow(self, Flow flow, list events) except -1
    @cython.locals(one=Reassembler, other=Reassembler, waiting=cython.longlong)
    cdef int _recount(self, Flow flow) except -1
    @cython.locals(flow=Flow)
    cdef int _forget_oldest(self, list events) except -1
    cdef list _by_silence(self)
    @cython.locals(flow=Flow)
    cdef Flow _restored(self, object state)
    cdef bint _selects(self, object key) except -1
    @cython.locals(flow=Flow, direction=cython.int, own=Reassembler)
    cdef object _make_room(self, list events)


cdef tuple _key(object segment)
