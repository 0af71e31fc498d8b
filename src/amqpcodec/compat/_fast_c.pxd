from cpython.object cimport PyObject

ctypedef object (*fast_call)(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names)


cdef class Counts:
    cdef public long long fast
    cdef public long long tolerated
    cdef readonly dict declined

    cdef int decline(self, str reason) except -1


cdef class FastFunction:
    cdef fast_call vectorcall
    cdef readonly object original
    cdef object state
    cdef dict __dict__
    cdef object __weakref__


cdef FastFunction fast_function(object original, fast_call call, object state)
cdef object call_original(
    PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names
)
cdef Py_ssize_t count_of(size_t nargsf) noexcept
