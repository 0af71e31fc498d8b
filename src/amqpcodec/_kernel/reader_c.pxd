cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from .framing cimport MORE, TOO_LARGE, WHOLE, FrameStatus, frame_at
from .octets cimport u16, u32
from .table_cache_c cimport TableCache
from .wire cimport ENVELOPE_SIZE, HEADER, PROTOCOL_HEADER


cdef enum:  # places whose text is expected to come again; those beyond share the last one
    ARGUMENTS = 8
    PROPERTIES = 16
    KEYS = 8


cdef struct CachedText:
    uint32_t mark  # of the text that is kept: a hash, and its size in the last six bits; 0 for none
    uint32_t missed  # that of the text last looked for here in vain
    PyObject *text  # ASCII


cdef struct Texts:  # that a reader keeps
    CachedText *places
    size_t mask  # of their numbers
    size_t bytes  # of memory that the texts take
    size_t oldest  # the place at which room is looked for


cdef struct Guess:
    PyObject *text  # the last one here that was kept; NULL for none
    unsigned int misses  # how many in a row were not kept


cdef struct Guesses:
    Guess arguments[ARGUMENTS]
    Guess properties[PROPERTIES]
    Guess keys[KEYS]


cdef class Reader


cdef class ReaderRules:
    cdef bint strict
    cdef bint raw_tables
    cdef bint tolerant
    cdef bint tolerant_inside
    cdef str profile_name
    cdef object table_limits  # of raw tables; None for the default ones
    cdef Py_ssize_t depth_limit
    cdef unsigned long long octets_limit
    cdef unsigned long long entries_limit
    cdef unsigned long long items_limit
    cdef size_t cache_slots  # a power of two
    cdef unsigned char kinds[256]  # tag to wire kind, 0 for a tag nobody knows
    cdef bint declines  # the rules are those of another library, which judges what they do not cover
    cdef bint octets_as_text
    cdef object own_int

    cdef Reader reader(self, bint keeps)


@cython.final
cdef class Reader:
    cdef readonly bint strict
    cdef public int frame_type
    cdef public long long frame_size
    cdef public int channel
    cdef public int class_id  # of the content header that was read last, as the two that follow
    cdef public int weight
    cdef public unsigned long long body_size
    cdef public long long passed  # octets of the frames that `read_message` took
    cdef object limit_name
    cdef long long header_limit  # octets of the largest payload of a content header
    cdef object header_limit_name
    cdef ReaderRules _rules
    cdef object _owner
    cdef const unsigned char *_data
    cdef const unsigned char *_start
    cdef const unsigned char *_pos
    cdef const unsigned char *_end
    cdef long long _base
    cdef unsigned long long _entries
    cdef bint _keeps
    cdef Texts _texts
    cdef Guesses *_guesses
    cdef unsigned long long _last_seconds
    cdef object _last_time
    cdef TableCache _tables

    cdef int attach(self, object data) except -1
    cdef void aim(self, Py_ssize_t start, Py_ssize_t end, long long offset) noexcept
    cdef int _refuse_envelope(
        self, FrameStatus status, Py_ssize_t at, long long size_limit, long long offset
    ) except -1
    cdef bytes head(self)
    cdef long long offset(self) noexcept
    cdef int content_head(self) except -1
    cdef int _refuse_rest(self) except -1
    cdef object refuse(self, int code, object message, Py_ssize_t back)
    cdef object refuse_frame(self, int code, object message)

    cdef object octet(self, object field)
    cdef int bits(self, object field) except -1
    cdef object short(self, object field)
    cdef object long(self, object field)
    cdef object longlong(self, object field)
    cdef object timestamp(self, object field)
    cdef object shortstr(self, object field)
    cdef object longstr(self, object field)
    cdef object content(self, object field)
    cdef object table(self, object field)
    cdef object _sized_table(self, const unsigned char *start, Py_ssize_t size, object field)
    cdef object _unreadable(self, const unsigned char *start, Py_ssize_t size, object error)
    cdef object pairs(self, object field)
    cdef dict _cached_table(self, const unsigned char *start, Py_ssize_t size, object field)
    cdef int _check_size(self, Py_ssize_t size, object field) except -1
    cdef object rest(self)
    cdef int flag_word(self) except -1
    cdef int further_flags(self, int last, int undefined) except -1

    cdef object _error(self, int code, object message, const unsigned char *at, object field)
    cdef object _short_of(self, object field, object what, Py_ssize_t need)
    cdef object _time(self, uint64_t seconds)
    cdef object _text(self, const unsigned char *start, Py_ssize_t size, object field)
    cdef int _make_cache(self) except -1
    cdef object _wide_text(self, const unsigned char *start, Py_ssize_t size, object field)
    cdef int _refuse_zero(self, const unsigned char *start, Py_ssize_t size, object field) except -1
    cdef object _new_text(self, const unsigned char *start, Py_ssize_t size, object field)
    cdef dict _pairs(self, const unsigned char *end, Py_ssize_t depth, object field)
    cdef list _items(self, const unsigned char *end, Py_ssize_t depth, object field)
    cdef int _enter(self, Py_ssize_t depth, object field) except -1
    cdef int _too_deep(self, object field) except -1
    cdef int _too_many(self, const unsigned char *at, object field) except -1
    cdef int _too_many_items(self, const unsigned char *at, object field) except -1
    cdef int _refuse_value(self, Py_ssize_t size, const unsigned char *end, object field) except -1
    cdef int _refuse_sized_value(self, const unsigned char *p, const unsigned char *end, object field) except -1
    cdef int _refuse_key(self, const unsigned char *at, const unsigned char *end, object field) except -1
    cdef int _refuse_twice(self, object key, const unsigned char *at, object field) except -1
    cdef int _refuse_shortstr(self, object field) except -1
    cdef const unsigned char *_take(self, Py_ssize_t size, const unsigned char *end, object field) except NULL
    cdef const unsigned char *_take_sized(self, const unsigned char *end, object field) except NULL
    cdef object _value(self, int kind, const unsigned char *end, Py_ssize_t depth, object field)
    cdef object _longstr_value(self, const unsigned char *end, object field)
    cdef object _nested(self, int kind, const unsigned char *end, Py_ssize_t depth, object field)
    cdef object _peer_value(self, int kind, const unsigned char *end)
    cdef object field(self, int kind, object name)
    cdef object _seldom_field(self, int kind, object name)

    # What decoders call for each frame, to be inlined.

    cdef inline bint enter(
        self, object data, Py_ssize_t at, Py_ssize_t end, unsigned int types, long long size_limit,
        long long offset, bint opens
    ) except -1:
        """Stand on the payload of the frame at data[at:end]; False where the frame is not whole.

        `offset` is where the frame lies in the stream; for the other arguments see `frame_at`. Either way
        `frame_size` is what `frame_at` tells of the frame's size.
        """
        cdef const unsigned char *p
        cdef FrameStatus status
        if data is not self._owner or type(data) is not bytes:
            self.attach(data)
        p = self._data + at
        status = frame_at(p, end - at, types, size_limit, opens, &self.frame_size)
        if status != WHOLE:
            if status == TOO_LARGE and p[0] == HEADER:
                size_limit = self.header_limit
                status = frame_at(p, end - at, types, size_limit, opens, &self.frame_size)
            if status == MORE:
                return False
            if status != WHOLE:
                self._refuse_envelope(status, at, size_limit, offset)
        if p[0] == PROTOCOL_HEADER:
            self.frame_type = p[0]
            self.aim(at, at + <Py_ssize_t>self.frame_size, offset)
            return True
        self.stand_at(p, offset)
        return True

    cdef inline void stand_at(self, const unsigned char *p, long long offset) noexcept:
        """Stand on the payload of the frame at `p`, of `frame_size` octets."""
        self.frame_type = p[0]
        self.channel = u16(p + 1)
        self._start = self._pos = p + ENVELOPE_SIZE
        self._end = p + self.frame_size - 1
        self._base = offset + ENVELOPE_SIZE

    cdef inline void attach_bytes(self, object data) noexcept:
        """Take the octets that the next calls speak of, which are bytes."""
        if data is not self._owner:
            self._data = <const unsigned char *>PyBytes_AS_STRING(data)
            self._owner = data

    cdef inline void detach(self) noexcept:
        """Let go of the octets. Nothing is read before others are attached."""
        self._owner = None

    cdef inline long long method_index(self) noexcept:
        """Class and method id as one number; the caller has seen that four octets are left."""
        cdef const unsigned char *p = self._pos
        self._pos = p + 4
        return <long long>u32(p)

    cdef inline Py_ssize_t left(self) noexcept:
        """Octets not read yet."""
        return self._end - self._pos

    cdef inline int finish(self) except -1:
        """Refuse octets that nothing has read."""
        if self._pos != self._end:
            self._refuse_rest()
        return 0
