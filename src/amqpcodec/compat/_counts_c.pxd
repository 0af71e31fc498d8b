cdef class Counts:
    cdef public long long fast
    cdef public long long tolerated
    cdef readonly dict declined

    cdef int decline(self, str reason) except -1
