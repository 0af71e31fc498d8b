cdef int read_ahead(object connection) except -1
cdef int look_at_once(object connection) except -1
