from .._kernel.fields_c cimport RecordLayout
from .._kernel.guards_c cimport Guards, TypeGuard
from ._counts_c cimport Counts
from ._fast_c cimport FastFunction

# The slots of a message that are set and read, in the order of `_SLOTS`.
cdef enum:
    FRAME_METHOD, FRAME_ARGS, PROPERTIES, CHUNKS, RECEIVED, SIZE, READY, CONTENT, DELIVERY, CHANNEL


cdef class Messages:
    cdef readonly type cls
    cdef RecordLayout _record
    cdef Guards _called
    cdef TypeGuard _base
    cdef TypeGuard _outbound
    cdef TypeGuard _encoding
    cdef FastFunction _serialize
    cdef Counts _counts

    cdef bint makes_its_own(self) except -1
    cdef object make(self, dict properties)
    cdef object get(self, object message, int field)
    cdef int set(self, object message, int field, object value) except -1
    cdef bint may_come_in(self, object message) except -1
    cdef bint tells_its_encoding(self) except -1
    cdef int decode_body(self, object message) except -1
    cdef bint may_go_out(self, object message) except -1
