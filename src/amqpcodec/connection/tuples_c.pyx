"""Events made of their values, in C: what `tuple.__new__` does, without tuples for its own arguments."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

cdef extern from *:
    ctypedef struct AllocatingType "PyTypeObject":
        object (*tp_alloc)(PyTypeObject *cls, Py_ssize_t items)


cpdef tuple make_event(object cls, tuple values):
    """An event of a class, with all of its values in order."""
    cdef Py_ssize_t count = PyTuple_GET_SIZE(values)
    cdef object event = (<AllocatingType *>cls).tp_alloc(<PyTypeObject *>cls, count)
    cdef Py_ssize_t at
    for at in range(count):
        value = <object>PyTuple_GET_ITEM(values, at)
        Py_INCREF(value)
        PyTuple_SET_ITEM(event, at, value)
    return <tuple>event


__all__ = ["make_event"]
