cimport cython

from .following_c cimport Followed, Message

cdef int DELIVER, GET_OK, PUBLISH, RETURN, HALF
cdef int _ARGUMENTS, _FLAGS_AT, _PROPERTIES_AT, _MORE_FLAGS, _READ, EXPIRATION
cdef int _CORRELATION_ID, _MESSAGE_ID, _SHORTSTR, _TABLE, _OCTET


@cython.final
@cython.freelist(64)
cdef class Publish:
    cdef public str vhost
    cdef public long long flow, offset, time_ns
    cdef public bytes content, ident

    cpdef list state(self)


@cython.final
@cython.freelist(64)
cdef class Kept:
    cdef public Publish publish
    cdef public Py_ssize_t count
    cdef public object places


@cython.final
cdef class Known:
    cdef dict _by_key

    @cython.locals(kept=Kept)
    cpdef object add(self, bytes key, Publish publish)
    @cython.locals(kept=Kept)
    cpdef object forget(self, bytes key)
    @cython.locals(kept=Kept, other=str)
    cpdef Publish deliver(self, bytes key, str vhost, object place)


@cython.final
cdef class Waits:
    cdef readonly object fifos
    cdef object _publishes
    cdef Py_ssize_t _most
    cdef bint _forgotten
    cdef Known _by_content, _by_ident

    cpdef object take(self, Followed followed, Message message)
    cpdef object settle(self, Message message, object outcome)
    @cython.locals(route=bytes, header=bytes, content=bytes, ident=bytes, publish=Publish, lasting=cython.bint)
    cdef object _publish(self, Followed followed, Message message)
    cdef object _remember(self, Publish publish)
    cdef object _forget(self, Publish publish)
    @cython.locals(content=bytes, ident=bytes, publish=Publish, by_ident=Publish, by_content=Publish, again=cython.bint)
    cdef object _deliver(self, Followed followed, Message message)
    cdef tuple _keys(self, Message message, bytes route, bytes header)


cpdef bytes digest(bytes header, object parts)
cdef str place_of(Message message)
cdef long flags_of(bytes header) except -1


@cython.locals(frames=bytes, at=cython.Py_ssize_t, middle=cython.Py_ssize_t, end=cython.Py_ssize_t)
cdef bytes route_of(Message message)


@cython.locals(frames=bytes, at=cython.Py_ssize_t)
cdef bint is_redelivered(Message message) except -1


@cython.locals(
    flags=cython.long, bit=cython.int, kind=cython.int, at=cython.Py_ssize_t, end=cython.Py_ssize_t,
    size=cython.Py_ssize_t, found=bytes,
)
cdef bytes ident_of(bytes header, bytes route, bytes body)
