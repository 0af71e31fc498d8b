# cython: boundscheck=False, wraparound=False, cdivision=True
"""pika's frames from octets and to octets, in pika's own classes; of the compiled build only.

Each function does what pika's does for what nearly every frame is, and leaves the rest to pika's: it is called
with the same arguments, so that exceptions, their texts and whatever else pika does there stay pika's.

Connections read frames where they lie, and cut off the rest once a read. pika itself cuts off each frame by copying
all that is behind it. The frames of a message are sent as one piece, where pika makes a call of the system for each.
"""

from types import MethodType

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from .._kernel.framing cimport MORE, UNKNOWN_TYPE, WHOLE, FrameStatus, frame_at
from .._kernel.octets cimport u16, u32
from .._kernel.reader_c cimport Reader, ReaderRules
from .._kernel.readers_c cimport ReaderPool
from .._kernel.values import Declined
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, HEARTBEAT, MAX_PAYLOAD, METHOD, OVERHEAD
from .._kernel.writer_c cimport Writer, WriterRules
from ._fields_c cimport RecordLayout
from ._guards_c cimport Guards, TypeGuard

from ._fast_c cimport Counts, FastFunction, call_original, count_of, fast_function
from ._guards_c import is_own
from ._lookup cimport look_up

cdef enum:
    BASIC = 60
    HEAD_SIZE = 12  # of a content header, before the property flags
    MOST_FLAG_WORDS = 64
    MOST_JOINED = 65536  # octets

cdef tuple _INCOMPLETE = (0, None)
_OVERRIDDEN = ("_read_frame", "_trim_frame_buffer")


cdef class ClassLayout(RecordLayout):
    """The class of a method, or of properties.

    Args:
        cls, fields: as for `RecordLayout`.
        index: class and method id as one number.
        readable: whether pika can decode it.
    """

    def __init__(self, type cls, fields, index, readable):
        flags = [name for name in vars(cls) if name.startswith("FLAG_")]
        RecordLayout.__init__(self, cls, fields, ("INDEX", "decode", "encode", *flags))
        self.class_id = index >> 16
        self.method_id = index & 0xFFFF
        self.readable = readable


cdef class Codec:
    """The functions that replace pika's, for one release of it.

    Args:
        reader_rules: of the release.
        tolerant_rules: those for frames that pika refuses; None to let it.
        writer_rules: of the release.
        methods: layouts of the classes of methods, by index.
        properties: the layout of `BasicProperties`, or None.
        frames: those of `Method`, `Header`, `Body` and `Heartbeat`.
        guards: of the modules and tables in which pika looks things up.
        decode_frame: pika's own function.
        refusal: the exception for octets on which pika would hang or fill the stack, where it is tolerant.
    """

    def __init__(
        self, ReaderRules reader_rules, ReaderRules tolerant_rules, WriterRules writer_rules, dict methods,
        ClassLayout properties, frames, Guards guards, decode_frame, refusal,
    ):
        self.readers = ReaderPool(reader_rules)
        self.tolerant = None if tolerant_rules is None else ReaderPool(tolerant_rules)
        self._writer_rules = writer_rules
        self._by_index = methods
        self._by_class = {layout.cls: layout for layout in methods.values()}
        self._properties = properties
        self._method, self._header, self._body, self._heartbeat = frames
        self._guards = guards
        self._decode_frame = decode_frame
        self.refusal = refusal
        self.counts = Counts()

    cdef bint finds_its_own(self) except -1:
        """Return whether pika would find in its modules and tables what it did."""
        return self._guards.unchanged()

    cdef int need(self, RecordLayout frame, RecordLayout inner) except -1:
        """Decline if pika would find anything else than it did on the classes of a frame."""
        if not frame.unchanged() or inner is not None and not inner.unchanged():
            raise Declined
        return 0

    # -- octets to frames

    cdef object decode(self, object data, Py_ssize_t at, ReaderPool readers):
        """Decode data[at:], which is not empty, as pika's `decode_frame` does; None or any exception leave the
        answer to it."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(data) + at
        cdef Py_ssize_t left = PyBytes_GET_SIZE(data) - at
        cdef long long size
        cdef FrameStatus status
        if not self.finds_its_own():
            return None
        status = frame_at(p, left, FRAME_TYPES, MAX_PAYLOAD, False, &size)
        if status == MORE:
            return _INCOMPLETE
        if status != WHOLE:
            return None
        return size, self._frame(data, at, <Py_ssize_t>size - OVERHEAD, readers)

    cdef object _frame(self, object data, Py_ssize_t at, Py_ssize_t size, ReaderPool readers):
        """The frame whose payload of `size` octets lies behind the envelope at data[at]."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(data) + at
        cdef int channel = u16(p + 1)
        cdef Reader reader
        if p[0] == BODY:
            self.need(self._body, None)
            frame = self._begin(self._body, BODY, channel)
            self._body.set_value(frame, 2, PyBytes_FromStringAndSize(<const char *>p + ENVELOPE_SIZE, size))
            return frame
        if p[0] == HEARTBEAT:
            self.need(self._heartbeat, None)
            return self._begin(self._heartbeat, HEARTBEAT, 0)
        reader = readers.take()
        reader.attach(data)
        reader.aim(at + ENVELOPE_SIZE, at + ENVELOPE_SIZE + size, 0)
        try:
            if p[0] == METHOD:
                return self._method_frame(reader, channel)
            return self._header_frame(reader, channel)
        finally:
            readers.give_back(reader)

    cdef inline object _begin(self, RecordLayout layout, int kind, int channel):
        """A frame with what all of them have."""
        frame = layout._empty()
        layout.set_value(frame, 0, kind)
        layout.set_value(frame, 1, channel)
        return frame

    cdef object _method_frame(self, Reader reader, int channel):
        cdef PyObject *found
        cdef ClassLayout layout
        if reader.left() < 4:
            raise Declined
        found = PyDict_GetItem(self._by_index, reader.method_index())
        if found is NULL or not (<ClassLayout>found).readable:
            raise Declined
        layout = <ClassLayout>found
        self.need(self._method, layout)
        method = layout.read(reader)
        frame = self._begin(self._method, METHOD, channel)
        self._method.set_value(frame, 2, method)
        return frame

    cdef object _header_frame(self, Reader reader, int channel):
        cdef int flags
        if self._properties is None or reader.left() < HEAD_SIZE + 2 or reader.short(None) != BASIC:
            raise Declined
        reader.short(None)
        size = reader.longlong(None)
        flags = reader.flag_word()
        if flags & 1:
            raise Declined
        self.need(self._header, self._properties)
        properties = self._properties.read_flagged(reader, flags)
        frame = self._begin(self._header, HEADER, channel)
        self._header.set_value(frame, 2, size)
        self._header.set_value(frame, 3, properties)
        return frame

    cdef object decode_by_pika(self, object data):
        """Decode a frame as pika's own `decode_frame` does, and what that refuses as a tolerant decoder does."""
        if self.tolerant is None:
            return self._decode_frame(data)
        if type(data) is bytes and _flag_words(data) > MOST_FLAG_WORDS:
            raise self.refusal("Too many words of property flags")
        try:
            return self._decode_frame(data)
        except RecursionError:
            found = self._tolerated(data)
            if found is None:
                raise self.refusal("Tables are nested too deeply") from None
        except Exception:
            found = self._tolerated(data)
            if found is None:
                raise
        self.counts.tolerated += 1
        return found

    cdef object _tolerated(self, object data):
        """Decode a frame whose tables need not be readable; return None if there is more that is wrong."""
        if type(data) is not bytes:
            return None
        try:
            return self.decode(data, 0, self.tolerant)
        except Exception:
            return None

    # -- frames to octets

    cdef object marshal(self, RecordLayout layout, int kind, object frame):
        """The octets of a frame; None or any exception leave the answer to pika."""
        cdef Writer writer
        cdef Py_ssize_t at
        if type(frame) is not layout.cls or not self.finds_its_own():
            return None
        channel = layout.value(frame, 1)
        number = layout.value(frame, 0)
        if type(number) is not int or number != kind or type(channel) is not int:
            return None
        writer = self._writer_rules.writer()
        if kind == BODY:
            self.need(layout, None)
            fragment = layout.value(frame, 2)
            if type(fragment) is not bytes or PyBytes_GET_SIZE(fragment) > MAX_PAYLOAD:
                return None
            if PyBytes_GET_SIZE(fragment):
                return writer.finish_with(BODY, channel, fragment, MAX_PAYLOAD)
        at = writer.begin_frame(kind, channel)
        if kind == METHOD:
            self._put_method(writer, layout.value(frame, 2))
        elif kind == HEADER:
            self._put_header(writer, layout.value(frame, 2), layout.value(frame, 3))
        elif kind == HEARTBEAT:
            self.need(layout, None)
        writer.end_frame(at, MAX_PAYLOAD)
        return writer.finish()

    cdef int _put_method(self, Writer writer, object method) except -1:
        cdef PyObject *found = PyDict_GetItem(self._by_class, type(method))
        cdef ClassLayout layout
        if found is NULL:
            raise Declined
        layout = <ClassLayout>found
        self.need(self._method, layout)
        writer.ids(layout.class_id, layout.method_id)
        return layout.write(writer, method)

    cdef int _put_header(self, Writer writer, object size, object properties) except -1:
        if self._properties is None or type(properties) is not self._properties.cls or type(size) is not int:
            raise Declined
        self.need(self._header, self._properties)
        writer.header_start(BASIC, 0, size)
        return self._properties.write_flagged(writer, properties, False)


cdef Py_ssize_t _flag_words(bytes data):
    """How many words of property flags a content header begins with, if the octets are a whole one."""
    cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef Py_ssize_t at = ENVELOPE_SIZE + HEAD_SIZE
    if size < OVERHEAD or p[0] != HEADER or u32(p + 3) > size - OVERHEAD:
        return 0
    size = ENVELOPE_SIZE + <Py_ssize_t>u32(p + 3)
    while at + 2 <= size and p[at + 1] & 1:
        at += 2
    return (at - ENVELOPE_SIZE - HEAD_SIZE) // 2


cdef class Rest:
    """The octets behind a frame, in a connection's `_frame_buffer` while it processes that frame."""

    cdef bytes octets
    cdef Py_ssize_t at

    def __bytes__(self):
        return self.octets[self.at :]

    def __len__(self):
        return len(self.octets) - self.at

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


# -- the functions

cdef object _decode_frame(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec codec = <Codec>(<FastFunction>function).state
    if names is not NULL or count_of(nargsf) != 1:
        return call_original(function, arguments, nargsf, names)
    data = <object>arguments[0]
    if type(data) is not bytes:
        codec.counts.decline(f"decode_frame: {type(data).__name__}")
        return codec.decode_by_pika(data)
    try:
        found = codec.decode(data, 0, codec.readers)
    except Exception:
        found = None
    if found is None:
        codec.counts.decline("decode_frame: octets")
        return codec.decode_by_pika(data)
    codec.counts.fast += 1
    return found


cdef object _marshal(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Marshal how = <Marshal>(<FastFunction>function).state
    if names is not NULL or count_of(nargsf) != 1:
        return call_original(function, arguments, nargsf, names)
    try:
        octets = how.codec.marshal(how.layout, how.kind, <object>arguments[0])
    except Exception:
        octets = None
    if octets is None:
        how.codec.counts.decline(how.reason)
        return call_original(function, arguments, nargsf, names)
    how.codec.counts.fast += 1
    return octets


cdef class Marshal:
    """The facts that `marshal` of one class of frames needs."""

    cdef Codec codec
    cdef RecordLayout layout
    cdef int kind
    cdef str reason


def fast_decode_frame(Codec codec):
    """`pika.frame.decode_frame`."""
    return fast_function(codec._decode_frame, _decode_frame, codec)


def fast_marshal(Codec codec, RecordLayout layout, int kind):
    """`marshal` of one of the classes of `pika.frame`."""
    cdef Marshal how = Marshal.__new__(Marshal)
    how.codec = codec
    how.layout = layout
    how.kind = kind
    how.reason = f"{layout.cls.__name__}.marshal: values"
    return fast_function(layout.cls.marshal, _marshal, how)


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
    if octets is None or len(<list>arguments[1]) > 1 and not _streams(<object>arguments[0]):
        return call_original(function, arguments, nargsf, names)
    connection, frames = <object>arguments[0], <list>arguments[1]
    first = PyBytes_GET_SIZE(frames[0])
    connection.bytes_sent += first
    connection.frames_sent += 1
    connection._adapter_emit_data(octets)
    connection.bytes_sent += PyBytes_GET_SIZE(octets) - first
    connection.frames_sent += len(frames) - 1


cdef bint _streams(object connection) except -1:
    """Return whether an adapter of pika's own takes what is sent. Others may expect a frame at a time."""
    emit = connection._adapter_emit_data
    return type(emit) is MethodType and is_own(emit.__func__, "pika")


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


def join_last(waiting):
    """Join the small pieces at the end of a deque: those that have come since it was sent from, in their order.

    Nothing here is run by the interpreter. So no other thread writes meanwhile, and no signal interrupts.

    Args:
        waiting: octets that a transport is to send.
    """
    cdef list small = []
    cdef list together = []
    cdef list joined = []
    cdef Py_ssize_t octets = 0
    for piece in reversed(waiting):
        if type(piece) is not bytes or PyBytes_GET_SIZE(piece) >= MOST_JOINED // 2:
            break
        small.append(piece)
    for piece in reversed(small):
        if octets + PyBytes_GET_SIZE(piece) > MOST_JOINED:
            joined.append(b"".join(together))
            together, octets = [], 0
        together.append(piece)
        octets += PyBytes_GET_SIZE(piece)
    if together:
        joined.append(b"".join(together))
    for _ in small:  # which stay there until what takes their place is made
        waiting.pop()
    waiting.extend(joined)


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
