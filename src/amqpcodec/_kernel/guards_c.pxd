from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    static inline unsigned int amqpcodec_type_version(PyObject *cls) {
        return ((PyTypeObject *)cls)->tp_version_tag;
    }

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
    unsigned int type_version "amqpcodec_type_version"(PyObject *cls) noexcept
    uint64_t dict_version "amqpcodec_dict_version"(PyObject *space) noexcept


cdef class TypeGuard:
    cdef object _cls  # of any metaclass
    cdef tuple _names
    cdef list _seen
    cdef readonly list replaced  # what was replaced before the guard was made, by dotted name
    cdef unsigned int _tag
    cdef bint _same

    cdef inline bint unchanged(self) except -1:
        if self._tag != 0 and type_version(<PyObject *>self._cls) == self._tag:
            return self._same
        return self.compare()

    cdef bint compare(self) except -1


cdef class ModuleGuard:
    cdef dict _space
    cdef tuple _names
    cdef list _seen
    cdef readonly list replaced  # what was replaced before the guard was made, by dotted name
    cdef uint64_t _tag
    cdef bint _same

    cdef inline bint unchanged(self) except -1:
        if self._tag != 0 and dict_version(<PyObject *>self._space) == self._tag:
            return self._same
        return self.compare()

    cdef bint compare(self) except -1
