cimport cython

from .constants cimport *
from .._kernel.records_c cimport field_at

cdef extern from *:
    """
    /* Whether a caller has derived the class of a method, whose attributes may then be others than its slots. */
    static inline int amqpcodec_is_derived(PyObject *method) {
        return PyType_HasFeature(Py_TYPE(method), Py_TPFLAGS_HEAPTYPE);
    }
    """
    bint is_derived "amqpcodec_is_derived"(object method) noexcept


@cython.final
cdef class Rule:
    cdef readonly object name
    cdef readonly int class_id
    cdef readonly int method_id
    cdef readonly object index
    cdef readonly int kind
    cdef readonly int senders
    cdef readonly bint content
    cdef readonly frozenset replies
    cdef readonly bint is_reply
    cdef readonly bint synchronous
    cdef readonly bint strict
    cdef readonly bint ordered
    cdef readonly bint has_multiple
    cdef readonly object no_wait
    cdef Py_ssize_t _tag_place
    cdef Py_ssize_t _consumer_place
    cdef Py_ssize_t _multiple_place

    cdef inline object delivery_tag(self, object method):
        return method.delivery_tag if is_derived(method) else field_at(method, self._tag_place)

    cdef inline object consumer_tag(self, object method):
        return method.consumer_tag if is_derived(method) else field_at(method, self._consumer_place)

    cdef inline bint multiple(self, object method) except -1:
        if self._multiple_place < 0:
            return False
        return bool(method.multiple if is_derived(method) else field_at(method, self._multiple_place))

    cpdef bint waits(self, object method) except -1
