cimport cython

from cpython.object cimport PyObject

from .dispatch_c cimport Dispatch
from .fast_writer_c cimport Changes, Prepared
from .lock_c cimport Lock
from .writer_c cimport WriterRules

cdef enum:
    PIECE = 65536  # octets of a piece, if more than one message is in it
    NAMES = 128  # places for the names of fields, a power of two


@cython.final
cdef class MessagePieces:
    cdef object _messages  # an iterator; None at the end
    cdef object _encode
    cdef object _frame_max
    cdef bint _validate
    cdef long long _limit
    cdef WriterRules _rules
    cdef Dispatch _methods
    cdef Dispatch _properties
    cdef Lock _lock
    cdef Py_ssize_t _count  # messages that were taken
    cdef bytes _left  # octets that did not fit
    cdef object _error

    cdef bytes _piece(self)
    cdef inline unsigned char *_put(self, object message, unsigned char *p, const unsigned char *end) noexcept
    cdef bytes _slowly(self, object message)


cdef class PreparedMessage:
    cdef object _encode
    cdef object _channel
    cdef object _method
    cdef object _properties
    cdef object _frame_max
    cdef WriterRules _rules
    cdef bytes _octets
    cdef set _arguments  # names of the method's fields
    cdef list _names  # of all fields, to keep them
    cdef PyObject *_places[NAMES]  # names by address
    cdef unsigned char _fields[NAMES]  # and which fields they are
    cdef Prepared _prepared
    cdef bint _fast

    cdef int _enter_names(self) except -1
    cdef bint _prepare(self, Dispatch methods, Dispatch properties) except -1
    cdef int _find(self, PyObject *name) noexcept
    cdef bint _take(self, Changes *changes, PyObject *const *values, PyObject *names) noexcept
    cdef object _changed(self, object body, dict changes)
