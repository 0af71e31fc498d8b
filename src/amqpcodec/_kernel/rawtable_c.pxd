cimport cython

from .lookup_c cimport look_up


# `case {"key": value}` asks the type whether it is a mapping; registering with the ABC does not tell it.
# No cycle can run through it: what is decoded refers to values of the wire alone.
@cython.collection_type("mapping")
@cython.no_gc
@cython.freelist(8)
cdef class RawTable:
    cdef bytes _octets
    cdef str _profile
    cdef object _limits
    cdef object _table
    cdef int _looked_up

    cdef object _found(self, object key)
    cdef object _decoded(self)


@cython.locals(table=RawTable)
cdef RawTable kept_table(bytes octets, str profile, object limits)
