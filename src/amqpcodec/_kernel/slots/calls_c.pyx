"""Calls of encoders with nothing but positional arguments, as most are. The twin of calls_py.py.

Cython takes keywords apart, and counts a reference to each argument, before a function sees them. For a short frame
that costs as much as half of writing it.
"""

from cpython.object cimport PyObject

from ..encoder_c cimport Encoder
from . import ON

cdef extern from *:
    """
    #define AMQPCODEC_FASTCALL (METH_FASTCALL | METH_KEYWORDS)
    """
    enum:
        AMQPCODEC_FASTCALL

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        void *ml_meth
        int ml_flags
    ctypedef struct Descriptor "PyMethodDescrObject":
        PyMethodDef *d_method
    bint is_descriptor "Py_IS_TYPE"(object thing, void *cls)
    int PyMethodDescr_Type

ctypedef object (*Call)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *)

# What serves all other calls.
cdef Call _other_message
cdef Call _other_method


def quicken(cls):
    """Have `encode_message` and `encode_method` of a class, an `Encoder`, take positional arguments at once."""
    global _other_message, _other_method
    if not ON:
        return
    _other_message = <Call>_replace(cls, "encode_message", <void *>_encode_message)
    _other_method = <Call>_replace(cls, "encode_method", <void *>_encode_method)


cdef void *_replace(object cls, str name, void *call) except NULL:
    """Let a function of C serve the calls of another; return that one."""
    cdef PyMethodDef *definition
    function = vars(cls)[name]
    if not is_descriptor(function, &PyMethodDescr_Type):
        raise TypeError(f"{name} is no function in C")
    definition = (<Descriptor *><PyObject *>function).d_method
    if definition.ml_flags != AMQPCODEC_FASTCALL:
        raise TypeError(f"{name} takes its arguments in another way")
    before = definition.ml_meth
    definition.ml_meth = call
    return before


cdef object _encode_message(PyObject *encoder, PyObject *const *arguments, Py_ssize_t count, PyObject *names):
    if count != 4 or names is not NULL:
        return _other_message(encoder, arguments, count, names)
    return (<Encoder>encoder)._one_message(
        <object>arguments[0], <object>arguments[1], <object>arguments[2], <object>arguments[3], None, False
    )


cdef object _encode_method(PyObject *encoder, PyObject *const *arguments, Py_ssize_t count, PyObject *names):
    if count != 2 or names is not NULL:
        return _other_method(encoder, arguments, count, names)
    return (<Encoder>encoder)._one_method(<object>arguments[0], <object>arguments[1], None, False)
