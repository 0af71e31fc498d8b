cimport cython

from cpython.object cimport PyObject


# Instances of generated classes are the head of an object, and a slot for each field: no method is in C.
cdef class Record:
    pass


cdef class Method(Record):
    pass


cdef class Properties(Record):
    pass


cdef inline object field_at(object record, Py_ssize_t place):
    """Return a field of an instance of a generated class by its place in the order of the wire."""
    return <object>(<PyObject **>(<PyObject *>record + 1))[place]


# `expose` makes attributes of the fields, in the order of `__match_args__`.
# No cycle can run through these but one that a caller builds on purpose, so the collector need not know them.
@cython.no_gc
cdef class Frame:
    cdef object type
    cdef object channel
    cdef object payload


@cython.no_gc
cdef class ContentHeader:
    cdef object properties
    cdef object body_size
    cdef object weight


cdef class Heartbeat:
    pass


cdef class OpaquePayload:
    cdef object octets


cdef class ProtocolHeader:
    cdef object octets


@cython.no_gc
cdef class Message:
    cdef object channel
    cdef object method
    cdef object properties
    cdef object body
    cdef object complete
