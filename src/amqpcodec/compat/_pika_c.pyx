# cython: boundscheck=False, wraparound=False, cdivision=True
"""pika's frames from octets and to octets, in pika's own classes; of the compiled build only.

Each function does what pika's does for what nearly every frame is, and leaves the rest to pika's: it is called
with the same arguments, so that exceptions, their texts and whatever else pika does there stay pika's.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from .._kernel.fields_c cimport RecordLayout
from .._kernel.framing cimport MORE, WHOLE, FrameStatus, frame_at
from .._kernel.guards_c cimport Guards
from .._kernel.octets cimport u16, u32
from .._kernel.reader_c cimport Reader, ReaderRules
from .._kernel.readers_c cimport ReaderPool
from .._kernel.values import Declined
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, HEARTBEAT, MAX_PAYLOAD, METHOD, OVERHEAD
from .._kernel.writer_c cimport Writer, WriterRules

from ._counts_c cimport Counts
from ._fast_c cimport FastFunction, call_original, count_of, fast_function

cdef enum:
    BASIC = 60
    HEAD_SIZE = 12  # of a content header, before the property flags
    MOST_FLAG_WORDS = 64

cdef tuple _INCOMPLETE = (0, None)


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
