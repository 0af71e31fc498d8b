# cython: boundscheck=False, wraparound=False
"""Reading for py-amqp with fewer calls of the system.

py-amqp looks for a frame before each message that it sends. It makes the socket one that does not wait, asks it, and
makes it wait again. Here one call tells that nothing has come.

Reading ahead takes many frames by one call, where py-amqp makes three calls for each. py-amqp's own `read_frame` still
does all the reading, errors and timeouts included: it is merely given more than it asked for, and keeps the rest in
the transport's buffer. The frames that are whole there are cut at once and given out one by one. It begins with the
first delivery, since who only publishes would pay for it. A connection keeps it for as long as it lives.

What waits here is not seen by those who watch the socket. So nothing is read ahead while a channel waits for an
answer: whoever begins to watch the socket after that misses nothing.
"""

from socket import socket
from types import BuiltinMethodType

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject

from .._kernel.octets cimport u16, u32
from .._kernel.wire cimport ENVELOPE_SIZE, FRAME_END, OVERHEAD
from ._fast_c cimport FastFunction, call_original, count_of, fast_call, fast_function
from ._guards_c cimport TypeGuard

cdef extern from *:
    """
    #ifndef _WIN32
    #include <poll.h>
    #endif

    /* Whether a call to read would have to wait; where that cannot be told, it would not. Not by a call to read: that
       would take away the error of a connection that was reset, which the next one is to find. */
    static inline int amqpcodec_would_wait(int descriptor) {
    #ifndef _WIN32
        struct pollfd asked = {descriptor, POLLIN, 0};
        return poll(&asked, 1, 0) == 0;
    #else
        return 0;
    #endif
    }
    """
    bint would_wait "amqpcodec_would_wait"(int descriptor) noexcept

cdef enum:
    LEAST_AHEAD = 4096  # octets
    MOST_AHEAD = 65536

cdef TypeGuard _reading = None

try:
    from amqp.connection import Connection
    from amqp.transport import TCPTransport, _AbstractTransport

    _read_frame = _AbstractTransport.read_frame
    _blocking_read = Connection.blocking_read
    _on_inbound_frame = Connection.on_inbound_frame
    _transport = Connection.transport
    _having_timeout = _AbstractTransport.having_timeout
    _reading = TypeGuard(TCPTransport, ("read_frame", "_read"))
except (ImportError, AttributeError):  # a release that is not known: nothing is replaced
    Connection = TCPTransport = _AbstractTransport = _read_frame = _blocking_read = _having_timeout = None
    _on_inbound_frame = _transport = None


cdef class Reading:
    """One connection that reads."""

    cdef object connection

    cdef bint finds_nothing(self) except -1:
        """Return whether py-amqp's own functions would find nothing on a plain socket that was asked not to wait."""
        if type(self.connection).transport is not _transport:
            return False
        transport = self.connection._transport
        if type(transport) is not TCPTransport or not _reading.unchanged() or self._has_its_own(vars(transport)):
            return False
        if TCPTransport.having_timeout is not _having_timeout:
            return False
        if transport._read_buffer or not transport.raise_on_initial_eintr:
            return False
        waiting, receive = transport.sock, transport._quick_recv
        if isinstance(receive, FastFunction):  # that of `ReadAhead`
            receive = (<FastFunction>receive).original
        if type(waiting) is not socket or type(receive) is not BuiltinMethodType or receive.__self__ is not waiting:
            return False
        return would_wait(waiting.fileno())

    cdef bint _has_its_own(self, dict attributes) except -1:
        """Return whether somebody has given a transport a function to read by."""
        for name in ("read_frame", "_read", "having_timeout"):
            if name in attributes and type(attributes[name]) is not FastFunction:
                return True
        return False


cdef class ReadAhead(Reading):
    """The octets read ahead of one transport."""

    cdef object transport
    cdef list frames  # the next one last
    cdef Py_ssize_t octets  # to ask for: room for what does not come costs time as well

    cdef bint finds_nothing(self) except -1:
        if not Reading.finds_nothing(self):
            return False
        self.octets = LEAST_AHEAD
        return True

    cdef object handler(self):
        """The connection's function for frames; without a call of its property if it is py-amqp's."""
        if type(self.connection).on_inbound_frame is _on_inbound_frame:
            handler = self.connection._on_inbound_frame
            if handler is not None:
                return handler
        return self.connection.on_inbound_frame

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


cdef int look_at_once(object connection) except -1:
    """Let a connection of py-amqp's own functions find by one call of the system that nothing has come."""
    cdef Reading reading
    if isinstance(connection, Connection):
        reading = Reading.__new__(Reading)
        reading.connection = connection
        _let_read(connection, _look, reading)
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
    _let_read(connection, _read, ahead)
    return 0


cdef int _let_read(object connection, fast_call read, Reading reading) except -1:
    """Put a function in the place of `blocking_read` of a connection, or of the one that was put there before."""
    if type(connection).blocking_read is _blocking_read:
        stock = connection.blocking_read
        if isinstance(stock, FastFunction):
            stock = (<FastFunction>stock).original
        connection.blocking_read = fast_function(stock, read, reading)
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
    """Frames of a connection that are here already, to the end of a method or content; no timeout is to be set."""
    cdef ReadAhead self = <ReadAhead>(<FastFunction>function).state
    frame = self.next_frame()
    if frame is None:
        return _look(function, arguments, nargsf, names)
    while True:  # as `drain_events` would
        ended = self.handler()(frame)
        if ended:
            return ended
        frame = self.next_frame()
        if frame is None:
            return ended


cdef object _look(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """One frame of a connection; where that is asked not to wait, what tells that there is none."""
    cdef Reading self = <Reading>(<FastFunction>function).state
    if type(self.connection).blocking_read is not _blocking_read:
        return _of_class(self.connection, "blocking_read", arguments, nargsf, names)
    if names is NULL and count_of(nargsf) == 1 and type(<object>arguments[0]) is int:
        if <object>arguments[0] == 0 and self.finds_nothing():
            raise TimeoutError  # `socket.timeout`
    return call_original(function, arguments, nargsf, names)


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
