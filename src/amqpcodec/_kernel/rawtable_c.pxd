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
    cdef bint _tolerant
    cdef unsigned int _looked_up

    cdef object _found(self, object key)
    cdef object _decoded(self)

    # Several threads may read one table, and one of them decode it.

    cdef inline object _known(self):
        with cython.critical_section(self):
            return self._table

    cdef inline object _remember(self, object table):
        with cython.critical_section(self):
            if self._table is None:
                self._table = table
            return self._table

    cdef inline unsigned int _look_ups(self):
        with cython.critical_section(self):
            self._looked_up += 1
            return self._looked_up


@cython.locals(table=RawTable)
cdef RawTable kept_table(bytes octets, str profile, object limits, bint tolerant)
