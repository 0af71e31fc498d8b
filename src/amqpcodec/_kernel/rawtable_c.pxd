cimport cython


# `case {"key": value}` asks the type whether it is a mapping; registering with the ABC does not tell it.
@cython.collection_type("mapping")
cdef class RawTable:
    cdef bytes _octets
    cdef str _profile
    cdef object _limits
    cdef object _table

    cdef object _decoded(self)


@cython.locals(table=RawTable)
cdef RawTable kept_table(bytes octets, str profile, object limits)
