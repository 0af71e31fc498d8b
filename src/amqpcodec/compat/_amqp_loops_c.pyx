# cython: boundscheck=False, wraparound=False
"""Reading ahead for py-amqp: many frames by one call of the system, where py-amqp makes three calls for each.

py-amqp's own `read_frame` still does all the reading, errors and timeouts included: it is merely given more than it
asked for, and keeps the rest in the transport's buffer. The frames that are whole there are cut at once and given
out one by one. It begins with the first delivery, since who only publishes would pay for it: py-amqp looks for a
frame before each message that it sends. A connection keeps it for as long as it lives.

What waits here is not seen by those who watch the socket. So nothing is read ahead while a channel waits for an
answer: whoever begins to watch the socket after that misses nothing.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject

from .._kernel.octets cimport u16, u32
from .._kernel.wire cimport ENVELOPE_SIZE, FRAME_END, OVERHEAD
from ._fast_c cimport FastFunction, call_original, count_of, fast_function

cdef enum:
    LEAST_AHEAD = 4096  # octets
    MOST_AHEAD = 65536

try:
    from amqp.connection import Connection
    from amqp.transport import _AbstractTransport

    _read_frame = _AbstractTransport.read_frame
    _blocking_read = Connection.blocking_read
except (ImportError, AttributeError):  # a release that is not known: nothing is read ahead
    Connection = _AbstractTransport = _read_frame = _blocking_read = None


cdef class ReadAhead:
    """The octets read ahead of one transport."""

    cdef object connection
    cdef object transport
    cdef list frames  # the next one last
    cdef Py_ssize_t octets  # to ask for: room for what does not come costs time as well

    cdef bint reads_exactly(self) except -1:
        """Return whether a channel waits for an answer, or somebody has replaced `read_frame`."""
        channels = self.connection.channels
        if channels is None or type(self.transport).read_frame is not _read_frame:
            return True
        for channel in list(channels.values()):
            if channel._pending:
                return True
        return False

    cdef tuple next_frame(self):
        """A frame that is here already, or None. A transport that was closed, or replaced, gives no more."""
        if self.frames and (self.transport.sock is None or self.connection._transport is not self.transport):
            self.frames.clear()
        return self.frames.pop() if self.frames else None

    cdef int cut(self) except -1:
        """Make frames of the transport's buffer; what is no whole one stays there."""
        cdef bytes octets
        cdef const unsigned char *p
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t left, size
        if type(self.transport._read_buffer) is not bytes:
            return 0
        octets = self.transport._read_buffer
        p = <const unsigned char *>PyBytes_AS_STRING(octets)
        left = PyBytes_GET_SIZE(octets)
        while left >= OVERHEAD:  # not by `frame_at`: py-amqp takes frames of any type and size
            size = <Py_ssize_t>u32(p + 3)
            if size > left - OVERHEAD or p[ENVELOPE_SIZE + size] != FRAME_END:
                break
            payload = PyBytes_FromStringAndSize(<const char *>p + ENVELOPE_SIZE, size)
            self.frames.append((<int>p[0], <int>u16(p + 1), payload))
            at += size + OVERHEAD
            p += size + OVERHEAD
            left -= size + OVERHEAD
        if at:
            self.transport._read_buffer = octets[at:]
            self.frames.reverse()
        return 0


cdef int read_ahead(object connection) except -1:
    """Let a connection read ahead from now on, if it reads by py-amqp's own functions."""
    cdef ReadAhead ahead
    transport = getattr(connection, "_transport", None)
    if not isinstance(connection, Connection) or not isinstance(transport, _AbstractTransport):
        return 0
    if type(transport).read_frame is not _read_frame or "read_frame" in vars(transport):
        return 0
    ahead = ReadAhead.__new__(ReadAhead)
    ahead.connection = connection
    ahead.transport = transport
    ahead.frames = []
    ahead.octets = LEAST_AHEAD
    transport.read_frame = fast_function(transport.read_frame, _next, ahead)
    transport._quick_recv = fast_function(transport._quick_recv, _receive, ahead)
    if type(connection).blocking_read is _blocking_read:
        stock = connection.blocking_read
        if isinstance(stock, FastFunction):  # of the transport before this one
            stock = (<FastFunction>stock).original
        connection.blocking_read = fast_function(stock, _read, ahead)
    return 0


# -- entries: calls as the interpreter has them

cdef object _receive(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """Return the octets at hand, at least as many as are asked for where they can be had."""
    cdef ReadAhead self = <ReadAhead>(<FastFunction>function).state
    cdef Py_ssize_t asked
    if names is not NULL or count_of(nargsf) != 1 or self.reads_exactly():
        return call_original(function, arguments, nargsf, names)
    asked = max(<object>arguments[0], self.octets)
    self.octets = LEAST_AHEAD  # where nothing comes, that is an exception
    octets = (<FastFunction>function).original(asked)
    self.octets = min(asked * (4 if len(octets) == asked else 1), MOST_AHEAD)
    return octets


cdef object _next(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """The next frame of a transport."""
    cdef ReadAhead self = <ReadAhead>(<FastFunction>function).state
    frame = self.next_frame()
    if frame is None:
        if type(self.transport).read_frame is _read_frame:
            frame = call_original(function, arguments, nargsf, names)
        else:
            frame = _of_class(self.transport, "read_frame", arguments, nargsf, names)
        self.cut()
    return frame


cdef object _read(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """One frame of a connection: where it is here already, there is no timeout to be set."""
    cdef ReadAhead self = <ReadAhead>(<FastFunction>function).state
    frame = self.next_frame()
    if frame is not None:
        return self.connection.on_inbound_frame(frame)
    if type(self.connection).blocking_read is _blocking_read:
        return call_original(function, arguments, nargsf, names)
    return _of_class(self.connection, "blocking_read", arguments, nargsf, names)


cdef object _of_class(
    object instance, str method, PyObject *const *arguments, size_t nargsf, PyObject *names
):
    """Call the method that the class has, which somebody may have replaced meanwhile."""
    cdef Py_ssize_t count = count_of(nargsf)
    cdef list given = [<object>arguments[at] for at in range(count)]
    cdef dict named = {}
    if names is not NULL:
        named = {name: <object>arguments[count + at] for at, name in enumerate(<tuple>names)}
    return getattr(type(instance), method)(instance, *given, **named)
