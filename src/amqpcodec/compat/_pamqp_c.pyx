# cython: boundscheck=False, wraparound=False, cdivision=True
"""`pamqp.frame.unmarshal` and `marshal`, and calls of pamqp's classes, compiled.

Each of these functions takes what nearly every call brings and gives it to pamqp's own function otherwise, with the
same arguments. Which classes there are, their fields and what they insist on, `_pamqp.py` tells.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from .._kernel.framing cimport WHOLE, frame_at
from .._kernel.slots.layout_c cimport Layout, serve, serve_by, set_slot, slot
from .._kernel.octets cimport put16, put32, u16, u32
from .._kernel.reader_c cimport Reader, ReaderRules
from .._kernel.readers_c cimport ReaderPool
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, FRAME_END, HEADER, MAX_PAYLOAD, METHOD
from .._kernel.writer_c cimport Writer
from ._fast_c cimport Counts, FastFunction, call_original, count_of, fast_function
from ._fields_c cimport RecordLayout
from ._guards_c cimport Guards
from ._peer_writer_c cimport PeerRules, is_number

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    unsigned char *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef enum:
    PLACES = 256
    MOST_DERIVED = 64


cdef enum:
    KEPT, IF_FALSY, IF_NONE  # which values a constructor replaces
    AT_MOST, OF_CHARACTERS, EQUAL, SAME, ONE_OF  # what `validate` insists on

cdef unsigned int _TYPES = 1 << METHOD | 1 << HEADER | 1 << BODY
_COERCIONS = {"": KEPT, "falsy": IF_FALSY, "none": IF_NONE}
_CHECKS = {"length": AT_MOST, "pattern": OF_CHARACTERS, "equals": EQUAL, "is": SAME, "in": ONE_OF}


cdef class Check:
    """One condition that `validate` puts on a field."""
    cdef Py_ssize_t field
    cdef int kind
    cdef object operand
    cdef Py_ssize_t longest
    cdef bint skips_none
    cdef unsigned char allowed[128]

    def __cinit__(self, Py_ssize_t field, str kind, operand, bint skips_none):
        self.field = field
        self.kind = _CHECKS[kind]
        self.operand = operand
        self.skips_none = skips_none
        if self.kind == AT_MOST:
            self.longest = operand
        if self.kind == OF_CHARACTERS:
            for character in operand:  # those that may occur
                self.allowed[<int>ord(character)] = 1

    cdef bint passes(self, object value) except -1:
        """Return whether a value is beyond doubt one that passes."""
        cdef int64_t number = 0
        if value is None:
            return self.skips_none
        if self.kind == SAME:
            return value is self.operand
        if type(value) is str:
            return self._text_passes(value)
        if self.kind == ONE_OF or self.kind == EQUAL and type(self.operand) is int:
            if not is_number(value, &number):
                return False
            return number in self.operand if self.kind == ONE_OF else number == self.operand
        return False

    cdef bint _text_passes(self, str text) except -1:
        cdef const unsigned char *p
        if self.kind == EQUAL:
            return text == self.operand
        if not PyUnicode_IS_COMPACT_ASCII(text):
            return False
        if self.kind == AT_MOST:
            return PyUnicode_GET_LENGTH(text) <= self.longest
        if self.kind != OF_CHARACTERS:
            return False
        p = PyUnicode_DATA(text)
        for at in range(PyUnicode_GET_LENGTH(text)):
            if not self.allowed[p[at]]:
                return False
        return True


cdef class PeerClass:
    """One class of pamqp with slots: how it is read and written, checked and called.

    Args:
        layout: its fields.
        index: of a method.
        coercions: for each field, which values the constructor replaces, and by what.
        checks: field, kind, operand, and whether None passes; in the order of `validate`.
    """
    cdef readonly RecordLayout layout
    cdef str name
    cdef uint32_t index
    cdef list checks
    cdef bint coerces
    cdef list instead
    cdef unsigned char coercions[32]
    cdef Counts counts
    cdef Guards called  # what `validate` looks up

    def __init__(self, RecordLayout layout, str name, uint32_t index, coercions, checks):
        self.layout = layout
        self.name = f"{name}: arguments"
        self.index = index
        self.checks = [Check(*check) for check in checks]
        self.instead = [instead for _, instead in coercions]
        for field, (when, _) in enumerate(coercions):
            self.coercions[field] = _COERCIONS[when]
            self.coerces |= when != ""

    cdef bint passes(self, object instance) except -1:
        """Return whether `validate` has nothing to say about an instance."""
        for check in self.checks:
            if not (<Check>check).passes(self.layout.value(instance, (<Check>check).field)):
                return False
        return True

    cdef bint coerce(self, PyObject *made) except -1:
        """Replace what the constructor would; False where only it can tell."""
        cdef PyObject **place
        for field in range(self.layout.count):
            if self.coercions[field] == KEPT:
                continue
            place = slot(self.layout.layout, made, field)
            if place[0] is NULL:
                return False
            value = <object>place[0]
            if value is not None:
                if self.coercions[field] == IF_NONE or value is True:
                    continue
                if type(value) is not dict and type(value) is not str and value is not False:
                    return False
                if value:
                    continue
            instead = self.instead[field]
            if type(instead) is dict:
                instead = {}
            set_slot(place, <PyObject *>instead)
        return True

    @cython.nonecheck(True)
    def serve(self, Counts counts not None, Guards called not None):
        """Let calls of the class be served, and count them; `called` guards what its constructor looks up."""
        cdef Layout *layout = self.layout.layout
        self.counts, self.called = counts, called
        if layout.owner is not <void *>self:
            Py_INCREF(self)  # for good: a thread may be in a call when it ends
            layout.owner = <void *>self
        layout.finish = _finish
        layout.positional = self.layout.count
        for field in range(self.layout.count):
            layout.place[field] = <unsigned char>field
        serve(layout)

    @cython.nonecheck(True)
    def stop(self):
        """Leave calls of the class to the interpreter."""
        serve_by(self.layout.cls, NULL)


cdef int _finish(Layout *layout, PyObject *made) except -1:
    """Fill an instance as `__init__` does with its arguments; return 0 to leave the call to it."""
    cdef PeerClass owner = <PeerClass>layout.owner
    try:
        if (
            owner.layout.unchanged()
            and (not owner.coerces or owner.coerce(made))
            and (not owner.checks or owner.called.unchanged() and owner.passes(<object>made))
        ):
            owner.counts.fast += 1
            return 1
    except Exception:
        pass
    owner.counts.decline(owner.name)
    return 0


cdef class Codec:
    """Reads and writes frames of pamqp's classes.

    Args:
        reading: rules of the reader.
        tolerant: those for frames that pamqp refuses; None to let it.
        writing: rules of the writer.
        counts: of calls.
        methods: the classes of methods that may be read and written.
        properties: that of content properties.
        header: of `ContentHeader`: class_id, weight, body_size, properties.
        body: of `ContentBody`: value.
        heartbeat: the class itself.
        protocol_header: the class itself.
        reading_guards: of what pamqp's function for reading looks up on the way.
        writing_guards: the same for writing.
        derive: gives the layout of a class derived from that of the properties, or None.
    """
    cdef ReaderPool readers
    cdef ReaderPool tolerant
    cdef PeerRules writing
    cdef Counts counts
    cdef PyObject *by_index[PLACES]  # by a hash of the index, in a row
    cdef dict by_class
    cdef dict derived
    cdef PeerClass properties
    cdef RecordLayout header
    cdef RecordLayout body
    cdef type heartbeat
    cdef type protocol_header
    cdef Guards reading_guards
    cdef Guards writing_guards
    cdef object derive

    def __init__(
        self, ReaderRules reading, ReaderRules tolerant, PeerRules writing, Counts counts, methods,
        PeerClass properties, RecordLayout header, RecordLayout body, type heartbeat, type protocol_header,
        Guards reading_guards, Guards writing_guards, derive,
    ):
        cdef size_t place
        self.readers = ReaderPool(reading)
        self.tolerant = None if tolerant is None else ReaderPool(tolerant)
        self.writing = writing
        self.counts = counts
        self.by_class = {(<PeerClass>method).layout.cls: method for method in methods}
        self.derived = {properties.layout.cls: properties.layout}
        for method in self.by_class.values():
            place = _place((<PeerClass>method).index)
            while self.by_index[place] is not NULL:
                place = (place + 1) % PLACES
            self.by_index[place] = <PyObject *>method
        self.properties = properties
        self.header = header
        self.body = body
        self.heartbeat = heartbeat
        self.protocol_header = protocol_header
        self.reading_guards = reading_guards
        self.writing_guards = writing_guards
        self.derive = derive

    def unmarshal(self, original):
        """A function in the place of `pamqp.frame.unmarshal`."""
        return fast_function(original, _unmarshal, self)

    def marshal(self, original):
        """A function in the place of `pamqp.frame.marshal`."""
        return fast_function(original, _marshal, self)

    # -- octets to objects

    cdef object read(self, bytes data, ReaderPool readers):
        """Octets consumed, channel, and what the frame holds; or, in words, why pamqp has to tell."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(data)
        cdef Reader reader
        cdef long long size
        if not self.reading_guards.unchanged():
            return "patched"
        if frame_at(p, PyBytes_GET_SIZE(data), _TYPES, MAX_PAYLOAD, False, &size) != WHOLE:
            return self.read_other(data)
        reader = readers.take()
        try:
            reader.attach(data)
            reader.aim(ENVELOPE_SIZE, <Py_ssize_t>size - 1, ENVELOPE_SIZE)
            if p[0] == METHOD:
                payload = self.read_method(reader)
            elif p[0] == HEADER:
                payload = self.read_header(reader)
            elif p[0] == BODY and reader.left() > 0:
                payload = self.read_body(reader)
            else:
                return "empty frame"
            if type(payload) is str:
                return payload
            return size, u16(p + 1), payload
        except Exception:
            return "values"
        finally:
            readers.give_back(reader)

    cdef object read_other(self, bytes data):
        """Handle what is no whole frame of the usual kinds. A heartbeat, which pamqp takes without its last octet; or
        octets that end within a frame: some clients ask until they do not, which is no fall-back."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        if size >= 7 and p[0] == 8 and u32(p + 3) == 0:
            return 8, p[1] << 8 | p[2], self.heartbeat()
        if size < 7 or METHOD <= p[0] <= BODY and <uint64_t>u32(p + 3) + 8 > <uint64_t>size:
            return ""
        return "no whole frame"

    cdef object read_method(self, Reader reader):
        cdef PeerClass method
        cdef uint32_t index
        cdef size_t place
        if reader.left() < 4:
            return "no whole frame"
        index = <uint32_t>reader.method_index()
        place = _place(index)
        while self.by_index[place] is not NULL and (<PeerClass>self.by_index[place]).index != index:
            place = (place + 1) % PLACES
        if self.by_index[place] is NULL:
            return "unknown method"
        method = <PeerClass>self.by_index[place]
        if not method.layout.unchanged():
            return "patched"
        return method.layout.read(reader)  # what is left over, pamqp passes over too

    cdef object read_header(self, Reader reader):
        cdef int class_id, flags
        if not self.header.unchanged() or not self.properties.layout.unchanged():
            return "patched"
        class_id = reader.content_head()
        flags = reader.flag_word()
        if flags & 1:
            return "further flags"
        made = self.header._empty()
        self.header.set_value(made, 0, class_id)
        self.header.set_value(made, 1, reader.weight)
        self.header.set_value(made, 2, reader.body_size)
        self.header.set_value(made, 3, self.properties.layout.read_flagged(reader, flags))
        return made

    cdef object read_body(self, Reader reader):
        if not self.body.unchanged():
            return "patched"
        made = self.body._empty()
        self.body.set_value(made, 0, reader.rest())
        return made

    # -- objects to octets

    cdef object write(self, object value, object channel):
        """The octets of a frame; or, in words, why pamqp has to make them."""
        cdef PyObject *found
        cdef int64_t number = 0
        if not self.writing_guards.unchanged():
            return "patched"
        if type(value) is self.heartbeat or type(value) is self.protocol_header:
            return value.marshal()
        if not is_number(channel, &number) or number < 0 or number > 0xFFFF:
            return "channel"
        try:
            if type(value) is self.body.cls:
                return self.write_body(value, <int>number)
            if type(value) is self.header.cls:
                return self.write_header(value, <int>number)
            found = PyDict_GetItemWithError(self.by_class, type(value))
            if found is NULL:
                return "class"
            return self.write_method(<PeerClass>found, value, <int>number)
        except Exception:
            return "values"

    cdef object write_method(self, PeerClass method, object value, int channel):
        cdef Writer writer
        if not method.layout.unchanged():
            return "patched"
        if method.checks and not method.passes(value):
            return "values"
        writer = self.writing.writer()
        _begin(writer, METHOD, channel)
        writer.ids(<int>(method.index >> 16), <int>(method.index & 0xFFFF))
        method.layout.write(writer, value)
        writer.end_frame(0, MAX_PAYLOAD)
        return writer.finish()

    cdef object write_header(self, object value, int channel):
        cdef Writer writer
        cdef RecordLayout layout
        cdef int64_t size = 0
        body_size = self.header.value(value, 2)
        properties = self.header.value(value, 3)
        layout = self.layout_of(type(properties))
        if layout is None:
            return "class"
        if not self.header.unchanged() or not layout.unchanged():
            return "patched"
        if not is_number(body_size, &size) or size < 0:
            return "values"
        writer = self.writing.writer()
        _begin(writer, HEADER, channel)
        writer.header_start(60, 0, <uint64_t>size)
        layout.write_flagged(writer, properties, True)
        writer.end_frame(0, MAX_PAYLOAD)
        return writer.finish()

    cdef RecordLayout layout_of(self, type cls):
        """How content properties of a class are written: some clients derive one of their own."""
        cdef PyObject *found = PyDict_GetItemWithError(self.derived, cls)
        if found is not NULL:
            return <RecordLayout>found
        if len(self.derived) == MOST_DERIVED:
            return None
        return self.derived.setdefault(cls, self.derive(cls))  # whoever was first: what is here is never replaced

    cdef object write_body(self, object value, int channel):
        cdef Py_ssize_t size
        cdef unsigned char *p
        if not self.body.unchanged():
            return "patched"
        octets = self.body.value(value, 0)
        if type(octets) is not bytes or PyBytes_GET_SIZE(octets) > MAX_PAYLOAD:
            return "values"
        size = PyBytes_GET_SIZE(octets)
        frame = PyBytes_FromStringAndSize(NULL, size + 8)
        p = <unsigned char *>PyBytes_AS_STRING(frame)
        p[0] = BODY
        put16(p + 1, <uint32_t>channel)
        put32(p + 3, <uint32_t>size)
        memcpy(p + 7, PyBytes_AS_STRING(octets), <size_t>size)
        p[7 + size] = FRAME_END
        return frame


cdef inline size_t _place(uint32_t index) noexcept:
    return (index * 0x9E3779B1U) >> 24


cdef inline int _begin(Writer writer, int frame_type, int channel) except -1:
    """An envelope at the beginning of a writer, in which there is room for it; `end_frame` fills in the size."""
    writer._out[0] = <unsigned char>frame_type
    put16(writer._out + 1, <uint32_t>channel)
    writer._size = 7
    return 0


cdef object _unmarshal(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec codec = <Codec>(<FastFunction>function).state
    if count_of(nargsf) == 1 and names is NULL and type(<object>arguments[0]) is bytes:
        answer = codec.read(<bytes>arguments[0], codec.readers)
        if type(answer) is tuple:
            codec.counts.fast += 1
            return answer
    else:
        answer = "arguments"
    if answer:
        codec.counts.decline("pamqp.frame.unmarshal: " + answer)
    if codec.tolerant is None or answer != "values":
        return call_original(function, arguments, nargsf, names)
    try:
        return call_original(function, arguments, nargsf, names)
    except Exception:
        found = codec.read(<bytes>arguments[0], codec.tolerant)
        if type(found) is not tuple:
            raise
    codec.counts.tolerated += 1
    return found


cdef object _marshal(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec codec = <Codec>(<FastFunction>function).state
    if count_of(nargsf) == 2 and names is NULL:
        answer = codec.write(<object>arguments[0], <object>arguments[1])
        if type(answer) is bytes:
            codec.counts.fast += 1
            return answer
    else:
        answer = "arguments"
    if type(answer) is not str:
        return answer
    codec.counts.decline("pamqp.frame.marshal: " + answer)
    return call_original(function, arguments, nargsf, names)
