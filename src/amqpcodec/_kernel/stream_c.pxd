cimport cython

from .dispatch_c cimport Dispatch
from .framing cimport WHOLE, frame_at
from .lock_c cimport Lock
from .rawproperties_c cimport PropertiesReading, RawProperties
from .reader_c cimport Reader, ReaderRules
from .records_c cimport Frame, Heartbeat, OpaquePayload, ProtocolHeader, Record
from .wire cimport HEADER, HEARTBEAT, METHOD, OVERHEAD, PROTOCOL_HEADER


cdef class StreamDecoder:
    cdef object _dialect
    cdef Reader _reader
    cdef Dispatch _methods
    cdef Dispatch _properties
    cdef unsigned int _types
    cdef object _frame_max
    cdef object _slack
    cdef object _frame_size
    cdef long long _size_limit
    cdef PropertiesReading _raw_reading
    cdef bint _strict
    cdef long long _header_at
    cdef Lock _lock
    cdef object _receive
    cdef object _pin
    cdef object _chunk
    cdef Py_ssize_t _pos
    cdef Py_ssize_t _end
    cdef object _queue
    cdef object _partial
    cdef long long _offset
    cdef object _error
    cdef object _record
    cdef object _deferred

    @cython.locals(lock=Lock)
    cdef int _set_up(
        self, ReaderRules rules, object frame_max, object frame_max_slack, object frame_size, bint expect_header,
        PropertiesReading raw_reading
    ) except -1
    @cython.locals(reader=Reader)
    cdef int _set_limits(self, object frame_max, long long size_limit) except -1
    cdef ReaderRules _reader_rules(self, object tables, object profile, bint strict, object limits, bint tolerant)
    cdef PropertiesReading _properties_reading(
        self, object properties, object tables, object profile, bint strict, object limits, bint tolerant
    )
    cdef object _next(self)
    cdef object _read(self)
    cdef int _acquire(self, Lock lock) except -1
    cdef object _entry_refused(self)
    cdef int _forget(self) except -1
    cdef int _drop_chunk(self) except -1
    cdef int _put(self, bytes octets) except -1
    cdef bint _extend(self, bytes octets) except -1
    cdef int _put_received(self, Py_ssize_t size) except -1
    cdef int _blame(self, object error) except -1
    @cython.locals(reader=Reader, head=bytes)
    cdef int _identify(self, object error) except -1
    cdef inline bint _advance(self) except -1
    cdef bint _next_chunk(self) except -1
    @cython.locals(offset=cython.longlong, opens=cython.bint)
    cdef inline bint _enter(self, object data, Py_ssize_t at, Py_ssize_t end) except -1
    cdef int _set_aside(self) except -1
    @cython.locals(reader=Reader, need=cython.longlong, stop=cython.Py_ssize_t)
    cdef bint _fill(self) except -1
    @cython.locals(frame=Frame)
    cdef Frame _frame(self, object frame_type, object channel, object payload)
    @cython.locals(reader=Reader, method=Record, index=cython.longlong)
    cdef Record _read_method(self)
    @cython.locals(reader=Reader, method=Record)
    cdef Record _read_slowly(self, long long index)
    @cython.locals(reader=Reader)
    cdef int _check_method(self, object method, long long class_id) except -1
    @cython.locals(reader=Reader, class_id=cython.int)
    cdef Record _read_properties(self)
    @cython.locals(reader=Reader, properties=Record)
    cdef Record _read_fields(self, int class_id)
    @cython.locals(reader=Reader, properties=RawProperties)
    cdef RawProperties _keep_properties(self, PropertiesReading reading, int class_id)
    @cython.locals(reader=Reader)
    cdef object _read_body(self)
    @cython.locals(reader=Reader)
    cdef object _read_other(self)
    cdef object _read_protocol_header(self)

    cdef inline bint _begin_fast(self) noexcept:
        """Enter the decoder for a fast path, if whole frames may lie in the chunk and nothing comes before them."""
        if self._lock is None or not self._lock.acquire():
            return False
        if (
            self._strict or self._error is not None or self._deferred is not None or self._partial is not None
            or type(self._chunk) is not bytes
        ):
            self._lock.release()
            return False
        self._reader.attach_bytes(self._chunk)
        return True

    cdef inline bint _aim_fast(self, unsigned int types) noexcept:
        """Aim the reader at the payload of the next frame; False where it is not whole, or not of these types."""
        cdef const unsigned char *p = self._reader._data + self._pos
        if frame_at(p, self._end - self._pos, types, self._size_limit, False, &self._reader.frame_size) != WHOLE:
            return False
        self._reader.stand_at(p, self._offset)
        return True

    cdef inline int _end_fast(self, long long size) except -1:
        """Go on behind octets that a fast path has read."""
        self._pos += size
        self._offset += size
        if self._pos == self._end:
            self._drop_chunk()
        return 0


cdef str _limit_name(object frame_max, object frame_max_slack, object frame_size)
cdef long long _payload_limit(object frame_max, object frame_max_slack, object frame_size) except? -1
