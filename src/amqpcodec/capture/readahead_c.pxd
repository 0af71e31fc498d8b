cdef class ReadAhead:
    cdef object _source
    cdef object _memory
    cdef unsigned char *octets
    cdef Py_ssize_t at
    cdef Py_ssize_t end
    cdef Py_ssize_t _capacity
    cdef long long _offset
    cdef readonly bint ended

    cdef Py_ssize_t index_of(self, long long offset) noexcept
    cdef int fill(self, Py_ssize_t size) except -1
    cdef int _grow(self) except -1
