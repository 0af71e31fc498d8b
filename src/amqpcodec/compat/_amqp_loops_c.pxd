cdef int read_ahead(object connection) except -1
