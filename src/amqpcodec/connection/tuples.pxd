# Events made of their values, as in tuples.py: what `tuple.__new__` does, without tuples for its own arguments.
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

cdef extern from *:
    ctypedef struct AllocatingType "PyTypeObject":
        object (*tp_alloc)(PyTypeObject *cls, Py_ssize_t items)


cdef inline object _new(object cls, Py_ssize_t count):
    return (<AllocatingType *>cls).tp_alloc(<PyTypeObject *>cls, count)


cdef inline void _put(object event, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)
    PyTuple_SET_ITEM(event, at, value)


cdef inline tuple make_event(object cls, tuple values):
    cdef object event = _new(cls, PyTuple_GET_SIZE(values))
    cdef Py_ssize_t at
    for at in range(PyTuple_GET_SIZE(values)):
        _put(event, at, <object>PyTuple_GET_ITEM(values, at))
    return <tuple>event


cdef inline tuple make_event_of_six(
    object cls, object first, object second, object third, object fourth, object fifth, object sixth
):
    cdef object event = _new(cls, 6)
    _put(event, 0, first)
    _put(event, 1, second)
    _put(event, 2, third)
    _put(event, 3, fourth)
    _put(event, 4, fifth)
    _put(event, 5, sixth)
    return <tuple>event
