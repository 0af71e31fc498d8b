"""Events made of their values, in C: what `tuple.__new__` does, without tuples for its own arguments."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

from .events import MessageReceived

cdef extern from *:
    ctypedef struct AllocatingType "PyTypeObject":
        object (*tp_alloc)(PyTypeObject *cls, Py_ssize_t items)

cdef object _MESSAGE_RECEIVED = MessageReceived


cdef inline object _new(object cls, Py_ssize_t count):
    return (<AllocatingType *>cls).tp_alloc(<PyTypeObject *>cls, count)


cdef inline void _put(object event, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(event, at, value)


cpdef tuple make_event(object cls, tuple values):
    """An event of a class, with all of its values in order."""
    cdef object event = _new(cls, PyTuple_GET_SIZE(values))
    cdef Py_ssize_t at
    for at in range(PyTuple_GET_SIZE(values)):
        _put(event, at, <object>PyTuple_GET_ITEM(values, at))
    return <tuple>event


cpdef tuple message_received(
    object number, object method, object properties, object body, object request, object sequence_number
):
    """Return the most frequent event, without a tuple of its values."""
    cdef object event = _new(_MESSAGE_RECEIVED, 6)
    _put(event, 0, number)
    _put(event, 1, method)
    _put(event, 2, properties)
    _put(event, 3, body)
    _put(event, 4, request)
    _put(event, 5, sequence_number)
    return <tuple>event


__all__ = ["make_event", "message_received"]
