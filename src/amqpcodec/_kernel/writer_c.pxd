cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from .octets cimport put16, put32, put64

cdef extern from *:
    """
    /* Without a global lock no writer is kept for the next call: each call clears a new one. */
    #ifdef Py_GIL_DISABLED
    #define AMQPCODEC_SMALL 256
    #else
    #define AMQPCODEC_SMALL 1024
    #endif
    """
    enum:
        SMALL "AMQPCODEC_SMALL"


cdef class Writer


cdef class WriterRules:
    cdef object profile
    cdef bint strict
    cdef bint finite
    cdef Py_ssize_t depth_limit
    cdef unsigned char kinds[256]  # tag to wire kind, 0 where the profile has no such tag
    cdef list integer_tags
    cdef unsigned char octets_tag

    cdef Writer writer(self)
    cdef long long payload_limit(self, object frame_max) except -1


@cython.final
cdef class Writer:
    cdef WriterRules _rules
    cdef unsigned char *_out  # in `_heap` once the octets do not fit the object itself
    cdef bytearray _heap
    cdef Py_ssize_t _size
    cdef Py_ssize_t _room
    cdef unsigned char _small[SMALL]

    cdef int put_envelope(self, int frame_type, object channel, Py_ssize_t size) except -1
    cdef int ids(self, int class_id, int method_id) except -1
    cdef uint32_t weight(self, object value) except? 0
    cdef uint64_t body_size(self, object value) except? 0
    cdef int _refuse_frame(self, Py_ssize_t size, long long size_limit) except -1
    cdef object finish(self)
    cdef object finish_with(self, int frame_type, object channel, object octets, long long size_limit)

    cdef int octet(self, object value, object field) except -1
    cdef int short(self, object value, object field) except -1
    cdef int long(self, object value, object field) except -1
    cdef int longlong(self, object value, object field) except -1
    cdef int bit(self, object value, object field) except -1
    cdef int bits(self, int octet) except -1
    cdef int octets(self, bytes octets) except -1
    cdef int word(self, int word) except -1
    cdef int timestamp(self, object value, object field) except -1
    cdef int shortstr(self, PyObject *value, object field) except -1
    cdef int longstr(self, object value, object field) except -1
    cdef int content(self, object value, object field) except -1
    cdef int table(self, object value, object field) except -1
    cdef int field(self, int kind, object value, object name) except -1

    cdef int _enlarge(self, Py_ssize_t size) except -1
    cdef object _joined(
        self, int frame_type, object channel, const char *octets, Py_ssize_t size, long long size_limit
    )
    cdef uint64_t _integer(self, object value, uint64_t most, object what, object field) except? 0
    cdef int _other_shortstr(self, object value, object field) except -1
    cdef int _put_short(self, const unsigned char *octets, Py_ssize_t size, object field) except -1
    cdef int _sized(self, bytes octets, object field) except -1
    cdef int _put_sized(self, const char *octets, Py_ssize_t size, object field) except -1
    cdef int _table(self, object table, Py_ssize_t depth, object field) except -1
    cdef int _kept(self, object table, object field) except -1
    cdef int _pairs(self, dict table, Py_ssize_t depth, object field) except -1
    cdef int _pairs_of_mapping(self, object table, Py_ssize_t depth, object field) except -1
    cdef int _array(self, object items, Py_ssize_t depth, object field) except -1
    cdef Py_ssize_t _begin(self, Py_ssize_t depth, object field) except -1
    cdef int _end(self, Py_ssize_t at, object field) except -1
    cdef int _value(self, object value, Py_ssize_t depth, object field) except -1
    cdef int _text(self, object value, object field) except -1
    cdef bint _seldom_value(self, object value, object field) except -1
    cdef int _tag(self, unsigned char tag, int kind, object value, object field) except -1
    cdef int _refuse_tag(self, unsigned char tag, int kind, object value, object field) except -1
    cdef int _int(self, object value, object field) except -1
    cdef int _int64(self, unsigned char tag, uint64_t number) except -1
    cdef int _tagged(self, object wrapper, Py_ssize_t depth, object field) except -1
    cdef int _chosen_tag(self, object wrapper, object field) except -1
    cdef int _by_kind(self, object value, int kind, object field) except -1
    cdef int _by_seldom_kind(self, object value, int kind, object field) except -1
    cdef int _write_integer(self, object value, int kind, object field) except -1
    cdef int _write_real(self, object value, int kind, object field) except -1
    cdef object _not_in_profile(self, object what, int kind, object field)

    # What encoders call for each frame, to be inlined.

    cdef inline unsigned char *_grow(self, Py_ssize_t size) except NULL:
        """Room for `size` more octets, counted as written; where they begin."""
        if size > self._room - self._size:
            self._enlarge(size)
        self._size += size
        return self._out + self._size - size

    cdef inline Py_ssize_t begin_frame(self, int frame_type, object channel) except -1:
        """Write an envelope whose size is not known yet; where it begins."""
        cdef uint64_t number = self._integer(channel, 0xFFFF, "short", "channel")
        cdef Py_ssize_t at = self._size
        cdef unsigned char *p = self._grow(7)
        p[0] = <unsigned char>frame_type
        put16(p + 1, <uint32_t>number)
        return at

    cdef inline int end_frame(self, Py_ssize_t at, long long size_limit) except -1:
        """Fill in the size of the frame begun at `at` and end it; `size_limit` octets of payload at most."""
        cdef Py_ssize_t size = self._size - at - 7
        if size > size_limit:
            self._refuse_frame(size, size_limit)
        put32(self._out + at + 3, <uint32_t>size)
        self._grow(1)[0] = 0xCE
        return 0

    cdef inline int header_start(self, int class_id, uint32_t weight, uint64_t body_size) except -1:
        """Write what comes before the property flags of a content header."""
        cdef unsigned char *p = self._grow(12)
        put16(p, <uint32_t>class_id)
        put16(p + 2, weight)
        put64(p + 4, body_size)
        return 0
