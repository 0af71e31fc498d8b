from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t

from .makers_c cimport MOST_FIELDS, Maker

cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)

cdef extern from *:
    """
    /* Every change of a class gives it another number, and no number is given twice; 0 says nothing. */
    static inline uint64_t amqpcodec_type_version(PyObject *cls) {
        return ((PyTypeObject *)cls)->tp_version_tag;
    }
    """
    uint64_t type_version "amqpcodec_type_version"(PyObject *cls) noexcept

cdef enum:
    NAME_BUCKETS = 128


cdef struct Heir:  # the subclass that was seen last to leave the fields of a class alone
    PyTypeObject *cls
    uint64_t version  # in which it does so


cdef struct Layout:
    PyObject *cls  # lives as long as the process, as does all below
    Layout *next
    PyObject *model  # what instances begin as
    Py_ssize_t size
    Py_ssize_t fields
    Py_ssize_t positional
    Py_ssize_t in_full  # number of arguments that, given by position, leave nothing of the model; -1 for none
    unsigned short offset[MOST_FIELDS]  # where a field's slot lies in an instance
    unsigned char place[MOST_FIELDS]  # field of a positional argument
    PyObject *names[MOST_FIELDS]
    unsigned char field_of[NAME_BUCKETS]  # by address of the name: its field and 1, or 0 for none; in a row
    bint all_none  # in the model
    int (*finish)(Layout *, PyObject *) except -1  # NULL, or what is left to do; 0 leaves the call to `__init__`
    void *owner  # of `finish`
    Heir heir
    Maker *maker  # of a generated class; NULL of those of other libraries
    bint table[MOST_FIELDS]  # None stands for a new dict


cdef inline PyObject **slot(Layout *layout, PyObject *instance, Py_ssize_t field) noexcept:
    return <PyObject **>(<char *>instance + layout.offset[field])


cdef int add_attributes(type cls, list names, Py_ssize_t offset) except -1
cdef int prepare(type cls) except -1
cdef Layout *lay_out(type cls, list names, list offsets, object model) except NULL
cdef void serve(Layout *layout) noexcept
cdef void serve_by(type cls, vectorcallfunc construct) noexcept
cdef void call_by_vector(type cls, Py_ssize_t offset) noexcept
cdef int put_attribute(type cls, str name, object attribute) except -1
cdef int describe_constructor(type cls, str name) except -1
cdef int hand_down_step(type cls) except -1
cdef object copy_model(Layout *layout)
cdef object call_init(PyObject *cls, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords)
cdef void set_slot(PyObject **slot, PyObject *value) noexcept
cdef bint put_fields(object record, tuple positional, dict named) except -1
cdef bint leaves_fields(
    Heir *heir, PyTypeObject *cls, PyTypeObject *base, PyObject **names, Py_ssize_t count
) noexcept
