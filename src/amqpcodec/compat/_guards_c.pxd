from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._kernel.slots.layout_c cimport type_version

cdef extern from *:
    """
    #define AMQPCODEC_NO_VERSION UINT64_MAX

    /* 0 where dicts are not numbered. */
    #if PY_VERSION_HEX < 0x030E0000
    #if defined(__GNUC__)
    #pragma GCC diagnostic push
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    #endif
    static inline uint64_t amqpcodec_dict_version(PyObject *space) {
        return ((PyDictObject *)space)->ma_version_tag;
    }
    #if defined(__GNUC__)
    #pragma GCC diagnostic pop
    #endif
    #else
    #define amqpcodec_dict_version(space) ((uint64_t)0)
    #endif
    """
    const uint64_t NO_VERSION "AMQPCODEC_NO_VERSION"  # that nothing ever has
    uint64_t dict_version "amqpcodec_dict_version"(PyObject *space) noexcept

cdef enum:
    MOST_GUARDED = 24


cdef class TypeGuard:
    cdef object _cls  # of any metaclass
    cdef tuple _names
    cdef list _seen
    cdef readonly list replaced  # what was replaced before the guard was made, by dotted name
    cdef uint64_t _version  # that in which nothing had changed

    cdef inline bint unchanged(self) except -1:
        return type_version(<PyObject *>self._cls) == self._version or self.compare()

    cdef bint compare(self) except -1


cdef class ModuleGuard:
    cdef dict _space
    cdef tuple _names
    cdef list _seen
    cdef readonly list replaced  # what was replaced before the guard was made, by dotted name
    cdef uint64_t _version  # that in which nothing had changed

    cdef inline bint unchanged(self) except -1:
        return dict_version(<PyObject *>self._space) == self._version or self.compare()

    cdef bint compare(self) except -1


cdef class Guards:
    cdef list _of_modules
    cdef list _of_types
    cdef Py_ssize_t _modules
    cdef Py_ssize_t _types
    cdef PyObject *_spaces[MOST_GUARDED]
    cdef PyObject *_classes[MOST_GUARDED]
    cdef uint64_t _space_versions[MOST_GUARDED]
    cdef uint64_t _class_versions[MOST_GUARDED]

    cdef inline bint unchanged(self) except -1:
        cdef Py_ssize_t at
        for at in range(self._modules):
            if dict_version(self._spaces[at]) != self._space_versions[at]:
                return self.compare()
        for at in range(self._types):
            if type_version(self._classes[at]) != self._class_versions[at]:
                return self.compare()
        return True

    cdef bint compare(self) except -1
