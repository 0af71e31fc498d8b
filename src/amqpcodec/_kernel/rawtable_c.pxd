cdef class RawTable:
    cdef public object octets
    cdef public object profile
    cdef object _table

    cdef object _decoded(self)
