# cython: boundscheck=False, wraparound=False
"""How connections of pika receive and send.

Frames are read where they lie, and the rest is cut off once a read. pika itself cuts off each frame by copying all that
is behind it. The frames of a message are sent as one piece, where pika makes a call of the system for each.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from .._kernel.framing cimport UNKNOWN_TYPE, frame_at
from .._kernel.guards_c cimport Guards, TypeGuard
from .._kernel.octets cimport u32
from .._kernel.wire cimport ENVELOPE_SIZE, MAX_PAYLOAD, OVERHEAD

from ._fast_c cimport FastFunction, call_original, count_of, fast_function
from ._lookup cimport look_up
from ._pika_c cimport FRAME_TYPES, Codec

cdef enum:
    MOST_JOINED = 65536  # octets

_OVERRIDDEN = ("_read_frame", "_trim_frame_buffer")


cdef class Rest:
    """The octets behind a frame, in a connection's `_frame_buffer` while it processes that frame."""

    cdef bytes octets
    cdef Py_ssize_t at

    def __bytes__(self):
        return self.octets[self.at :]

    def __len__(self):
        return PyBytes_GET_SIZE(self.octets) - self.at

    def __getitem__(self, key):
        return bytes(self)[key]

    def __add__(self, other):
        return bytes(self) + other


cdef class Loop:
    """The replacement of `_on_data_available` of connections.

    Args:
        codec: reads the frames.
        frame: the dict of the module `pika.frame`, whose `decode_frame` is already that of the codec.
        connection: `pika.connection.Connection`.
        called: guards what its functions look up in their module.
    """

    cdef Codec _codec
    cdef dict _frame
    cdef object _decode_frame
    cdef object _on_data_available
    cdef list _stock
    cdef dict _guards
    cdef Guards _called
    cdef readonly list replaced  # of what the loop does itself, by dotted name

    def __init__(self, Codec codec, dict frame, decode_frame, connection, Guards called):
        self._codec = codec
        self._frame = frame
        self._decode_frame = decode_frame
        self._on_data_available = connection._on_data_available
        self._stock = [getattr(connection, name) for name in _OVERRIDDEN]
        self._guards = {}
        self._called = called
        self.replaced = TypeGuard(connection, _OVERRIDDEN).replaced + called.replaced

    cdef bint serves(self, object connection, object data) except -1:
        """Return whether nothing but pika's own functions would be called, but for the processing of frames."""
        cdef PyObject *found
        cdef TypeGuard guard
        if self.replaced or type(data) is not bytes:
            return False
        if not self._called.unchanged() or not self._codec.finds_its_own():
            return False
        if look_up(self._frame, "decode_frame", None) is not self._decode_frame:
            return False
        found = PyDict_GetItem(self._guards, type(connection))
        if found is NULL:
            guard = self._guard(type(connection))
        else:
            guard = <TypeGuard>found
        if not guard.unchanged():
            return False
        own = connection.__dict__
        return not any([name in own for name in _OVERRIDDEN])

    cdef TypeGuard _guard(self, object cls):
        """Tells whether a class has pika's functions."""
        guard = TypeGuard(cls, _OVERRIDDEN)
        for name, stock in zip(_OVERRIDDEN, self._stock):
            guard.expect(name, stock)
        return self._guards.setdefault(cls, guard)  # whoever was first: what is here is never replaced

    cdef int receive(self, object connection, object data) except -1:
        """Have the connection process all frames that are whole now."""
        cdef Rest rest = Rest.__new__(Rest)
        held = connection._frame_buffer
        if type(held) is Rest:  # this is a call from within the processing of a frame
            held = bytes(held)
        rest.octets = held + data if held else data
        connection._frame_buffer = rest
        try:
            while rest.at < PyBytes_GET_SIZE(rest.octets):
                consumed, frame = self._next(connection, rest)
                if frame is None:
                    return 0
                rest.at += consumed
                connection.bytes_received += consumed
                connection._process_frame(frame)
                if connection._frame_buffer is not rest:
                    self._on_data_available(connection, b"")  # goes on with what somebody has put there
                    return 0
        finally:
            if connection._frame_buffer is rest:
                connection._frame_buffer = bytes(rest)
        return 0

    cdef object _next(self, object connection, Rest rest):
        """Return the result of `decode_frame` for the rest."""
        try:
            found = self._codec.decode(rest.octets, rest.at, self._codec.readers)
        except Exception:
            found = None
        if found is None:
            self._codec.counts.decline("_on_data_available: octets")
            return self._codec.decode_by_pika(rest.octets[rest.at : _end(rest.octets, rest.at)])
        self._codec.counts.fast += 1
        if self._codec.tolerant is not None and found[1] is None:
            self._refuse_oversized(connection, rest)
        return found

    cdef int _refuse_oversized(self, object connection, Rest rest) except -1:
        """pika waits for the end of a frame of any size, and keeps up to 4 GiB meanwhile."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(rest.octets) + rest.at
        if len(rest) < ENVELOPE_SIZE:
            return 0
        most = connection.params.frame_max
        if 0 < most < <long long>u32(p + 3) + OVERHEAD:
            raise self._codec.refusal(f"Frame of {u32(p + 3) + OVERHEAD} octets, {most} were agreed on")
        return 0


cdef Py_ssize_t _end(bytes octets, Py_ssize_t at) noexcept:
    """How far pika has to look for the frame that begins at `at`: to its end, where that can be told."""
    cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(octets) + at
    cdef Py_ssize_t left = PyBytes_GET_SIZE(octets) - at
    cdef long long size
    if frame_at(p, left, FRAME_TYPES, MAX_PAYLOAD, False, &size) != UNKNOWN_TYPE:
        return at + min(left, <Py_ssize_t>size)
    if left >= OVERHEAD and p[0] == c"A" and p[1] == c"M" and p[2] == c"Q" and p[3] == c"P":
        return at + OVERHEAD
    return at + left


cdef object _receive(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Loop loop = <Loop>(<FastFunction>function).state
    if names is not NULL or count_of(nargsf) != 2:
        return call_original(function, arguments, nargsf, names)
    connection, data = <object>arguments[0], <object>arguments[1]
    if not loop.serves(connection, data):
        loop._codec.counts.decline("_on_data_available: overridden")
        return call_original(function, arguments, nargsf, names)
    loop.receive(connection, data)


cdef object _output(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Guards called = <Guards>(<FastFunction>function).state
    octets = None
    if names is NULL and count_of(nargsf) == 2 and type(<object>arguments[1]) is list and called.unchanged():
        octets = _joined(<list>arguments[1])
    if octets is None:
        return call_original(function, arguments, nargsf, names)
    connection, frames = <object>arguments[0], <list>arguments[1]
    first = PyBytes_GET_SIZE(frames[0])
    connection.bytes_sent += first
    connection.frames_sent += 1
    connection._adapter_emit_data(octets)
    connection.bytes_sent += PyBytes_GET_SIZE(octets) - first
    connection.frames_sent += len(frames) - 1


cdef bytes _joined(list frames):
    """Return frames as one piece; None if there are none, if they are too large, or one is empty or no octets."""
    cdef Py_ssize_t size = 0
    for frame in frames:
        if type(frame) is not bytes or not frame:
            return None
        size += PyBytes_GET_SIZE(frame)
    if not 0 < size <= MOST_JOINED:
        return None
    return frames[0] if len(frames) == 1 else b"".join(frames)


cdef object _pending(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Pending how = <Pending>(<FastFunction>function).state
    if (
        names is not NULL
        or count_of(nargsf) != 3
        or type(<object>arguments[1]) is not int
        or PyDict_GetItem(how.codec._by_class, type(<object>arguments[2])) is NULL
        or not how.called.unchanged()
    ):
        return call_original(function, arguments, nargsf, names)
    stack = (<object>arguments[0])._stack
    prefix = str(<object>arguments[1])
    name = (<object>arguments[2]).NAME
    if prefix not in stack or name not in stack[prefix]:
        return None
    return len(stack[prefix][name])


cdef class Pending:
    """The state that `pending` needs."""

    cdef Codec codec
    cdef Guards called


def fast_pending(Codec codec, callback, Guards called):
    """`pika.callback.CallbackManager.pending`, of a channel and a method: without the exceptions that pika raises
    and catches on its way to their names.

    Args:
        codec: knows the classes of methods.
        callback: the module.
        called: guards what `pending` looks up in modules.
    """
    cdef Pending how = Pending.__new__(Pending)
    how.codec = codec
    how.called = called
    return fast_function(callback.CallbackManager.pending, _pending, how)


def fast_output(connection, Guards called):
    """`pika.connection.Connection._output_marshaled_frames`.

    Args:
        connection: `pika.connection.Connection`.
        called: guards what it looks up in its module.
    """
    return fast_function(connection._output_marshaled_frames, _output, called)


def fast_on_data_available(Loop loop):
    """`pika.connection.Connection._on_data_available`."""
    return fast_function(loop._on_data_available, _receive, loop)
