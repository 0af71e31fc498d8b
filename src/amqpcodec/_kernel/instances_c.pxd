cdef class Maker:
    cdef object _model
    cdef Py_ssize_t _fields
    cdef Py_ssize_t _size

    cdef object make(self)


cdef int quicken(type cls) except -1
