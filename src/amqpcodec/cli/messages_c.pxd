cimport cython


# No cycle can run through it: what it refers to are frames, and values of the wire.
@cython.no_gc
cdef class ShownMessage:
    cdef readonly object first
    cdef readonly bint wanted
    cdef readonly object queue
    cdef readonly object method
    cdef readonly object header
    cdef readonly list chunks
    cdef readonly long long size
    cdef long long left
    cdef readonly long long frames


cdef class Messages:
    cdef Py_ssize_t _kept
    cdef readonly dict _open
    cdef object _known
    cdef tuple _last

    @cython.locals(kind=cython.int, channels=dict, message=ShownMessage)
    cpdef object feed(self, object item, bint wanted, object queue)
    @cython.locals(kind=cython.int, size=cython.Py_ssize_t)
    cdef bint _add(self, ShownMessage message, object frame) except -1
    @cython.locals(known=set)
    cdef object _know(self, tuple direction, object channel)


cdef bint _is_next(ShownMessage message, int kind, object payload) except -1
cdef bint _is_of_class(object header, ShownMessage message) except -1
