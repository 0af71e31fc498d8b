from .._kernel.slots.layout_c cimport Layout
from .._kernel.slots.makers_c cimport MOST_FIELDS
from .._kernel.reader_c cimport Reader
from .._kernel.writer_c cimport Writer
from ._guards_c cimport TypeGuard


cdef class RecordLayout:
    cdef readonly type cls
    cdef readonly list names
    cdef TypeGuard _guard
    cdef list _defaults
    cdef Py_ssize_t count
    cdef Layout *layout  # of a class with slots; NULL of one whose attributes are in its dict
    cdef unsigned char kinds[MOST_FIELDS]

    cdef bint unchanged(self) except -1
    cdef object make(self)
    cdef object value(self, object instance, Py_ssize_t field)
    cdef int set_value(self, object instance, Py_ssize_t field, object value) except -1
    cdef object read(self, Reader reader)
    cdef object read_flagged(self, Reader reader, int flags)
    cdef int write(self, Writer writer, object instance) except -1
    cdef int write_flagged(self, Writer writer, object instance, bint empty_is_absent) except -1
    cdef int _find_slots(self) except -1
    cdef object _empty(self)
