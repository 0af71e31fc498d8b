cimport cython

from .reader_c cimport Reader
from .writer_c cimport Writer


cdef class Record:
    cdef int _read(self, Reader reader) except -1
    cdef int _write(self, Writer writer) except -1
    cdef object _dialect(self)
    cdef int _class_id(self) except -1


cdef class Method(Record):
    cdef bint _has_content(self) except -1


cdef class Properties(Record):
    pass


# No cycle can run through these but one that a caller builds on purpose, so the collector need not know them.
@cython.no_gc
@cython.freelist(16)
cdef class Frame:
    cdef public object type
    cdef public object channel
    cdef public object payload


@cython.no_gc
@cython.freelist(16)
cdef class ContentHeader:
    cdef public object properties
    cdef public object body_size
    cdef public object weight


cdef class Heartbeat:
    pass


cdef class OpaquePayload:
    cdef public object octets


cdef class ProtocolHeader:
    cdef public object octets


@cython.no_gc
@cython.freelist(16)
cdef class Message:
    cdef public object channel
    cdef public object method
    cdef public object properties
    cdef public object body
    cdef public object complete
