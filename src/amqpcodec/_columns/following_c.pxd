cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from .._kernel.octets cimport u64

cdef int PUBLISH, DELIVER, GET_OK, RETURN, _ARGUMENTS, _REJECT, _ACK, _NACK
cdef long long _UNKNOWN


@cython.final
@cython.freelist(64)
@cython.no_gc  # no cycle can run through it
cdef class Message:
    cdef public object connection, dialect, error, queue, tag, found
    cdef public bytes frames, culprit, content
    cdef public int direction, channel, step
    cdef public bint complete, sure
    cdef public long long packet, time_ns, offset, header_offset, size, wait_ns, publish_flow, publish_offset

    cpdef Py_ssize_t header_at(self) except -1


cdef class Settler:
    cdef public object call

    cpdef object settle(self, Message message, object outcome, long long packet, long long time_ns)


@cython.final
cdef class Channel:
    cdef public object next_tag, first_published, first_delivered, doubted_published, doubted_delivered, queue
    cdef public dict published, delivered, consumers
    cdef public bint transacted
    cdef public tuple consumes, gets

    cpdef object begin(self)


@cython.final
cdef class Followed:
    cdef public Follower follower
    cdef public object connection
    cdef public dict channels
    cdef public int closes, heard, forgotten

    cpdef Channel channel(self, int number)
    @cython.locals(channel=Channel, source=tuple)
    cpdef object queue_of(self, int step, int number, bytes method)
    @cython.locals(channel=Channel)
    cpdef object take(self, Message message)
    @cython.locals(frames=bytes, source=tuple, silent=cython.bint, at=cython.Py_ssize_t)
    cdef object _deliver(self, Channel channel, Message message)
    @cython.locals(silent=cython.bint)
    cdef object _get_ok(self, Channel channel, Message message)
    @cython.locals(waiting=dict)
    cdef object _follow(self, Channel channel, Message message, Py_ssize_t tag_at, bint silent)
    @cython.locals(waiting=dict)
    cdef object _publish(self, Channel channel, Message message)
    @cython.locals(follower=Follower)
    cdef object _wait(self, dict waiting, Message message)
    @cython.locals(message=Message)
    cdef object _settle(self, dict waiting, object tag, str outcome, long long packet, long long time_ns)
    @cython.locals(follower=Follower)
    cdef object _leave(self, Message message, object outcome, long long packet, long long time_ns)
    @cython.locals(channel=Channel, waiting=dict, kind=cython.int, bits=cython.int)
    cpdef object answer(self, int direction, bytes method, long long packet, long long time_ns)
    @cython.locals(channel=Channel)
    cpdef object end(self, long long packet, long long time_ns)
    cpdef object forget(self)
    cpdef object lose(self, int direction)
    cdef object _forget_channels(self)
    cpdef object end_channel(self, Channel channel, long long packet, long long time_ns)
    @cython.locals(message=Message, left=list, follower=Follower)
    cpdef object drop(
        self, dict waiting, object doubted, str outcome, long long packet, long long time_ns
    )


@cython.final
cdef class Follower:
    cdef public Settler settler
    cdef public object depth, watch, waits
    cdef public Py_ssize_t most_waiting, most_octets, waiting, octets, channels
    cdef readonly dict connections

    cpdef Followed connection(self, object connection)


cdef inline object _number(bytes octets, Py_ssize_t at):
    """Return the longlong at an offset; 0 if it is not there whole."""
    return u64(<const unsigned char *>PyBytes_AS_STRING(octets) + at) if PyBytes_GET_SIZE(octets) >= at + 8 else 0


cdef bytes _consumer_tag(bytes method)
cdef bytes _shortstr(bytes octets, Py_ssize_t at)
cdef object _outcome(int kind, int bits, int direction)
