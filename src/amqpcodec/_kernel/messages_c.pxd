cimport cython

from .content_order cimport (
    BEFORE_HEADER, CUT_OFF, IN_BODY, IN_ORDER, NO_CONTENT, TOO_LARGE, TOO_MANY, judge_body, judge_header, judge_method,
)
from .fast_frames_c cimport read_message
from .reader_c cimport Reader
from .records_c cimport Frame, Message, Record
from .stream_c cimport StreamDecoder
from .wire cimport BODY, HEADER, METHOD, as_unsigned


@cython.no_gc
@cython.freelist(16)
cdef class Content:
    cdef public int channel
    cdef public Record method
    cdef public Record properties
    cdef public long long body_size
    cdef public long long left
    cdef public list chunks
    cdef public bint discarded
    cdef public long long held


cdef class MessageDecoder(StreamDecoder):
    cdef bint _keep
    cdef bint _join
    cdef unsigned long long _body_limit
    cdef Py_ssize_t _open_limit
    cdef long long _whole_limit
    cdef Content _current
    cdef Content _spare
    cdef dict _open

    @cython.locals(frame_type=cython.int, message=Message)
    cdef object _read(self)
    @cython.locals(reader=Reader, method=Record)
    cdef Message _passed(self, Message message)
    cdef int _forget(self) except -1
    @cython.locals(current=Content)
    cdef Content _find(self, int channel)
    cdef int _drop(self, Content content) except -1
    cdef bint _judge(self, int channel, Record method) except -1
    @cython.locals(content=Content)
    cdef int _begin(self, int channel, Record method, bint discarded) except -1
    @cython.locals(method=Record, channel=cython.int, cut_off=Content, message=Message, discarded=cython.bint)
    cdef object _method(self)
    @cython.locals(
        content=Content, properties=Record, body_size=cython.ulonglong, same_class=cython.bint, verdict=cython.int,
    )
    cdef object _header(self)
    cdef int _check_class(self, Content content) except -1
    @cython.locals(
        content=Content, octets=bytes, size=cython.Py_ssize_t, verdict=cython.int, come=cython.longlong,
    )
    cdef object _body(self)
    cdef object _body_of(self, Content content)
    @cython.locals(message=Message)
    cdef Message _message(self, Content content, object body, object complete)
    cdef object _refusal(self, int verdict, Content content, object frame, object size, object limit)
    cdef object _of(self, Content content, object error)

    cdef inline Message _read_fast(self):
        """Return the whole message that begins with the method that the reader is aimed at, or None where the slow
        path must read it. No content is open."""
        return read_message(
            self._reader, self._methods, self._properties, self._raw_reading, self._chunk, self._end,
            self._size_limit, self._whole_limit, self._body_limit,
        )


cdef inline Message fast_message(MessageDecoder decoder):
    """Return the next message, or None where it is for the slow path, and has changed nothing then."""
    cdef Message message = None
    if not decoder._begin_fast():
        return None
    try:
        if (
            decoder._join and decoder._current is None and not decoder._open and decoder._aim_fast(1U << METHOD)
        ):
            message = decoder._read_fast()
            if message is not None:
                decoder._end_fast(decoder._reader.frame_size + decoder._reader.passed)
    finally:
        decoder._lock.release()
    return message


cdef int stage_of(Content content) noexcept


@cython.locals(message=Message)
cdef Message new_message(object channel, Record method, Record properties, object body)
