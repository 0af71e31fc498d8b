cimport cython

cdef long long _SEQUENCE_MASK, _HALF, _UNKNOWN
cdef list _NOTHING
cdef long long _LATE_SEGMENTS, _LATE_OCTETS, _LATE_NS, _LATE_LEADING_SEGMENTS, _CHUNK_OVERHEAD


@cython.no_gc
@cython.freelist(64)
cdef class Chunk:
    cdef public long long position
    cdef public long long length
    cdef public object octets
    cdef public long long packet
    cdef public object time_ns
    cdef public bint snapped

    cdef Chunk part(self, long long start, long long stop)


@cython.final
@cython.no_gc  # no cycle can run through it
cdef class Reassembler:
    cdef long long _out_of_order_bytes
    cdef long long _out_of_order_segments
    cdef list _waiting
    cdef public long long waiting_octets
    cdef long long _base
    cdef long long _next
    cdef bint _leading
    cdef long long _acknowledged
    cdef long long _early_ack
    cdef long long _unheard
    cdef long long _isn
    cdef long long _fin
    cdef long long _before
    cdef readonly bint ending
    cdef readonly bint finished
    cdef public object stray

    @cython.locals(position=cython.longlong, length=cython.longlong)
    cpdef object take_before(self, long long seq, long long recorded)
    cpdef Py_ssize_t kept(self) except -1
    cpdef bint open(self, long long isn) except -1
    @cython.locals(ahead=cython.longlong)
    cpdef bint fits(self, long long seq) noexcept
    @cython.locals(known=cython.longlong, ahead=cython.longlong)
    cdef bint expects(self, long long seq) except -1
    cdef bint precedes(self, long long seq, long long length) except -1
    cpdef bint continues(self, long long seq) noexcept
    cpdef long long distance(self, long long seq) noexcept
    @cython.locals(ahead=cython.longlong)
    cpdef object position_of(self, long long seq, long long length)
    @cython.locals(position=cython.longlong, recorded=cython.longlong)
    cpdef list add(self, long long seq, bytes data, long long length, long long packet, object time_ns)
    cpdef list acknowledge(self, long long ack, object time_ns)
    cpdef int finish_at(self, long long seq) except -1
    @cython.locals(hole=cython.longlong)
    cpdef list jump(self, long long seq)
    cpdef list skip_holes(self)
    cpdef list flush(self, bint peer_ending)
    @cython.locals(missing=cython.longlong)
    cdef long long _missing_at_end(self, bint peer_ending) noexcept
    @cython.locals(ahead=cython.longlong)
    cdef long long _position(self, long long seq) noexcept
    @cython.locals(ahead=cython.longlong)
    cdef int _begin(self, long long seq) except -1
    @cython.locals(start=cython.longlong, end=cython.longlong, stop=cython.longlong, index=cython.Py_ssize_t,
                   following=Chunk)
    cdef int _store(self, Chunk chunk) except -1
    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t, chunk=Chunk)
    cdef Py_ssize_t _first_ending_at(self, long long position) except -1
    cdef list _drain(self, object time_ns)
    @cython.locals(count=cython.Py_ssize_t, chunk=Chunk)
    cdef list _in_order(self)
    @cython.locals(last=Chunk)
    cdef bint _overfull(self) except -1
    @cython.locals(first=Chunk, enough=cython.longlong)
    cdef bint _late(self, object time_ns) except -1
    @cython.locals(first=Chunk, hole=cython.longlong)
    cdef list _skip_first_hole(self)
    @cython.locals(chunk=Chunk)
    cdef int _rebase(self, long long hole) except -1
