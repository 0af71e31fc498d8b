cimport cython


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
