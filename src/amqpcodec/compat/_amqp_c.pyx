# cython: boundscheck=False, wraparound=False
"""py-amqp's `loads` and `dumps`, its class `Message`, and the properties of messages, in C.

py-amqp describes arguments by a string of letters, one for each. Such a format is compiled once. Whatever is
not the common case, be it octets, values or the call itself, goes to py-amqp's own function unchanged.

Messages are made without their constructors, their slots filled and read where they lie. `Message.__init__` and that of
its base stay what counts: a call that is not the common case goes there, and every call does once somebody has replaced
one of them.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_SetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from .._kernel.fields cimport (
    BIT_FIELD, LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TABLE_FIELD, TEXT_FIELD,
)
from .._kernel.ints cimport small
from .._kernel.slots.layout_c cimport call_init, serve_by, set_slot, slot
from .._kernel.octets cimport put16
from .._kernel.values import Declined
from ._fast_c cimport FastFunction, call_original, count_of, fast_function
from ._guards_c cimport Guards
from ._lookup cimport look_up
from ._peer_writer_c cimport put_field

cdef extern from "Python.h":
    list PyList_New(Py_ssize_t size)
    void PyList_SET_ITEM(object items, Py_ssize_t at, object value)
    Py_ssize_t PyList_GET_SIZE(object items)
    PyObject *PyTuple_GET_ITEM(object items, Py_ssize_t at)

cdef object _NOTHING = object()

# No method has a letter but these, and for some of the others the releases differ.
cdef dict _KINDS = {
    "b": BIT_FIELD, "o": OCTET_FIELD, "B": SHORT_FIELD, "l": LONG_FIELD, "L": LONGLONG_FIELD,
    "s": SHORTSTR_FIELD, "S": TEXT_FIELD, "F": TABLE_FIELD,
}  # fmt: skip


# By what the constructors fill the slots; the dict and the list are new ones each time.
_SLOTS = (
    ("frame_method", None), ("frame_args", None), ("properties", None), ("_pending_chunks", None),
    ("body_received", 0), ("body_size", 0), ("ready", False), ("body", ""), ("delivery_info", None),
    ("channel", None),
)  # fmt: skip
_INBOUND = ("inbound_header", "inbound_body", "_load_properties")
_OUTBOUND = ("__getattribute__", "PROPERTIES", "properties", "body")
_ENCODING = ("__getattribute__", "__getattr__", "__bool__", "__len__", "content_encoding", "properties", "body")
cdef frozenset _ARGUMENTS = frozenset(("self", "body", "children", "channel", "frame_method", "frame_args"))

# Whose class it is that `_construct` is called for; a class has one constructor, and py-amqp one `Message`.
cdef Messages _served = None


cdef Py_ssize_t index_of(object number) noexcept:
    """Return an int that is small, as most are; a negative number for anything else."""
    return small(number) if type(number) is int else -1


cdef object unwrapped(object function):
    """py-amqp's own function in the place of which one of ours may be."""
    return (<FastFunction>function).original if type(function) is FastFunction else function


cdef bint stands_for(object function, FastFunction ours) except -1:
    """Return whether a function is py-amqp's own, or one of ours in its place."""
    return unwrapped(function) is ours.original


cdef class Format:
    """The letters of `loads` and `dumps` for one list of arguments, as kinds of fields."""

    def __cinit__(self, str letters):
        if len(letters) > MOST_LETTERS:
            raise ValueError("too many letters")
        self.size = len(letters)
        for at, letter in enumerate(letters):
            self.kinds[<Py_ssize_t>at] = _KINDS[letter]

    cdef list read(self, Reader reader):
        """The values, from where the reader stands."""
        cdef list values = PyList_New(self.size)
        cdef int octet = 0
        cdef int left = 0
        cdef Py_ssize_t at
        for at in range(self.size):
            if self.kinds[at] != BIT_FIELD:
                left = 0
                value = reader.field(self.kinds[at], None)
            else:
                if left == 0:
                    octet = reader.bits(None)
                    left = 8
                value = octet & 1 != 0
                octet >>= 1
                left -= 1
            Py_INCREF(value)
            PyList_SET_ITEM(values, at, value)
        return values

    cdef int write(self, Writer writer, tuple values) except -1:
        """As many values as there are letters."""
        cdef int octet = 0
        cdef int bit = 0
        cdef Py_ssize_t at
        for at in range(self.size):
            value = <object>PyTuple_GET_ITEM(values, at)
            if self.kinds[at] == BIT_FIELD:
                octet |= <int>_truth(value) << bit
                bit += 1
                if bit == 8:
                    writer.bits(octet)
                    octet = bit = 0
                continue
            if bit:
                writer.bits(octet)
                octet = bit = 0
            _put(writer, self.kinds[at], value)
        if bit:
            writer.bits(octet)
        return 0


cdef inline bint _truth(object value) except -1:
    """Return a value as a bit, if asking it cannot change the values yet to be written."""
    if value is True or value is False:
        return value is True
    if value is None or type(value) is int:
        return bool(value)
    raise TypeError("no bit")


cdef int _put(Writer writer, int kind, object value) except -1:
    """A value for a letter; None stands for nothing in it."""
    if value is None:
        value = {} if kind == TABLE_FIELD else ""
    elif type(value) is bytes and kind == SHORTSTR_FIELD:
        return writer._put_short(<const unsigned char *>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), None)
    elif type(value) is bytes and kind == TEXT_FIELD:
        return writer._put_sized(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), None)
    return put_field(writer, kind, value)


cdef class Codec:
    """Reads and writes for py-amqp.

    Args:
        serialization: the module `amqp.serialization`.
        properties: name and letter of each property of a message, in wire order.
        pool: readers by the rules of py-amqp's release.
        tolerant: those for what py-amqp refuses; None to let it.
        rules: of writers.
        counts: to count the calls that are served here, and those that are not.
        reading, writing: guards of what the functions look up in their modules, of `serialization` first.
        syntax_error: exception to raise where py-amqp's own function would raise `RecursionError` for octets
            that nest too deep, where it is tolerant.

    Attributes:
        loads, dumps, decode_properties, serialize_properties: what takes the place of py-amqp's functions.
    """

    def __cinit__(
        self, serialization, properties, ReaderPool pool, ReaderPool tolerant, WriterRules rules, Counts counts,
        list reading, list writing, syntax_error,
    ):
        content = serialization.GenericContent
        self.counts = counts
        self.pool = pool
        self.tolerant = tolerant
        self.rules = rules
        self.syntax_error = syntax_error
        self.loads = fast_function(unwrapped(serialization.loads), _loads, self)
        self.dumps = fast_function(unwrapped(serialization.dumps), _dumps, self)
        self.decode_properties = fast_function(unwrapped(serialization.decode_properties_basic), _decode, self)
        self.serialize_properties = fast_function(unwrapped(content._serialize_properties), _serialize, self)
        self._formats = {}
        reading[0].check("amqp.serialization.loads", self.loads.original)
        reading[0].check("amqp.serialization.decode_properties_basic", self.decode_properties.original)
        writing[0].check("amqp.serialization.dumps", self.dumps.original)
        label = "amqp.serialization.GenericContent._serialize_properties"
        writing[0].check(label, self.serialize_properties.original)
        self._reading, self._writing = Guards(reading), Guards(writing)
        self.replaced = self._reading.replaced + self._writing.replaced
        self._there = vars(serialization)
        self._listed = tuple(properties)
        self._names = tuple([name for name, _ in properties])
        for at, (_, letter) in enumerate(properties):
            self._kinds[<Py_ssize_t>at] = _KINDS[letter]

    # -- the four functions

    cdef object _loaded(self, PyObject *const *arguments, size_t nargsf, PyObject *names, ReaderPool pool):
        """Values and where they end, or None."""
        cdef Format form
        if names is not NULL or count_of(nargsf) != 3 or type(<object>arguments[1]) is not bytes:
            return None
        form = self._format(<object>arguments[0])
        if form is None or not self._reading.unchanged():
            return None
        return self._taken(<bytes>arguments[1], <object>arguments[2], form, pool)

    cdef object _decoded(self, PyObject *const *arguments, size_t nargsf, PyObject *names, ReaderPool pool):
        """Properties and where they end, or None."""
        if names is not NULL or count_of(nargsf) != 2 or type(<object>arguments[0]) is not bytes:
            return None
        if not self.reads_properties():
            return None
        return self._taken(<bytes>arguments[0], <object>arguments[1], None, pool)

    cdef object _taken(self, bytes octets, object offset, Format form, ReaderPool pool):
        """Read by a format, or the properties if there is none; return the values and their end, or None."""
        cdef Py_ssize_t start = index_of(offset)
        cdef Reader reader
        if start < 0 or start > PyBytes_GET_SIZE(octets):
            return None
        reader = pool.take()
        try:
            reader.attach(octets)
            reader.aim(start, PyBytes_GET_SIZE(octets), 0)
            values = self.read_properties(reader) if form is None else form.read(reader)
            return values, PyBytes_GET_SIZE(octets) - reader.left()
        except Exception:
            return None
        finally:
            pool.give_back(reader)

    cdef object _write(self, object letters, tuple values):
        """Octets, or None."""
        cdef Format form = self._format(letters)
        if form is None or len(values) != form.size or not self._writing.unchanged():
            return None
        return self._put(form, values)

    cdef object _serialized(self, object message):
        """Octets, or None."""
        if not self.writes_properties(message.PROPERTIES) or type(message.properties) is not dict:
            return None
        return self._put(None, message.properties)

    cdef object _put(self, Format form, object values):
        """Octets of values by a format, or of properties if there is none; or None."""
        cdef Writer writer = self.rules.writer()
        try:
            if form is None:
                self.write_properties(writer, <dict?>values)
            else:
                form.write(writer, <tuple>values)
            return writer.finish()
        except Exception:
            return None

    cdef object left_to_stock(
        self, bint loads, PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names
    ):
        """Let py-amqp's own function read octets, and what that refuses a tolerant reader."""
        self.counts.decline("loads" if loads else "decode_properties_basic")
        if self.tolerant is None:
            return call_original(function, arguments, nargsf, names)
        try:
            return call_original(function, arguments, nargsf, names)
        except Exception as error:
            if loads:
                found = self._loaded(arguments, nargsf, names, self.tolerant)
            else:
                found = self._decoded(arguments, nargsf, names, self.tolerant)
            if found is None and isinstance(error, RecursionError):
                raise self.syntax_error("tables nested too deep") from None
            if found is None:
                raise
        self.counts.tolerated += 1
        return found

    # -- what frames need of it, too

    cdef Format _format(self, object letters):
        """A format compiled, None if it has letters that are not served."""
        if type(letters) is not str and type(letters) is not bytes:
            return None
        found = look_up(self._formats, letters, _NOTHING)
        if found is not _NOTHING:
            return found
        try:
            form = Format(letters if type(letters) is str else letters.decode("ascii"))
        except (KeyError, ValueError):
            form = None
        if len(self._formats) < MOST_FORMATS:
            self._formats[letters] = form
        return form

    cdef bint reads_properties(self) except -1:
        """Return whether nobody has replaced what reads properties but us."""
        return self._reading.unchanged() and stands_for(look_up(self._there, "loads", None), self.loads)

    cdef bint writes_properties(self, object listed) except -1:
        """Return whether these are the properties that are known, and nobody has replaced what writes them but us."""
        cdef Py_ssize_t at
        if type(listed) is not list or PyList_GET_SIZE(listed) != PROPERTY_COUNT:
            return False
        for at in range(PROPERTY_COUNT):
            if (<list>listed)[at] is not self._listed[at]:
                return False
        return self._writing.unchanged() and stands_for(look_up(self._there, "dumps", None), self.dumps)

    cdef dict read_properties(self, Reader reader):
        """Flags and the values that they tell of; py-amqp heeds one word of flags, and nothing behind."""
        cdef int flags = reader.flag_word()
        cdef dict properties = {}
        cdef Py_ssize_t at
        for at in range(PROPERTY_COUNT):
            if flags & 0x8000 >> at:
                value = reader.field(self._kinds[at], None)
                PyDict_SetItem(properties, <object>PyTuple_GET_ITEM(self._names, at), value)
        return properties

    cdef int write_properties(self, Writer writer, dict properties) except -1:
        """Flags and values of those that are not None; names that are none of a property are passed over."""
        cdef Py_ssize_t left = len(properties)
        cdef Py_ssize_t start = writer._size
        cdef unsigned int flags = 0
        cdef Py_ssize_t at
        writer.word(0)
        for at in range(PROPERTY_COUNT):
            if left == 0:
                break
            value = look_up(properties, <object>PyTuple_GET_ITEM(self._names, at), _NOTHING)
            if value is not _NOTHING:
                left -= 1
                if value is not None:
                    flags |= <unsigned int>0x8000 >> at
                    _put(writer, self._kinds[at], value)
        put16(writer._out + start, flags)
        return 0


cdef class Messages:
    """Knows the class `Message` of py-amqp.

    Args:
        cls: the class.
        serialize: what takes the place of its `_serialize_properties`.
        called: guards what its constructors look up in their modules.
        counts: to count the calls of the class.

    Raises:
        TypeError: the class has other slots than py-amqp's.
    """

    def __cinit__(self, type cls, FastFunction serialize, Guards called, Counts counts):
        self.cls = cls
        self._record = RecordLayout(cls, [(name, 0, held) for name, held in _SLOTS], _INBOUND)
        if self._record.layout is NULL:
            raise TypeError("Message has other slots than these")
        self._base = TypeGuard(cls.__base__, ("__init__",))
        self._outbound = TypeGuard(cls, _OUTBOUND)
        self._encoding = TypeGuard(cls, _ENCODING)
        self._serialize = serialize
        self._called = called
        self._counts = counts

    def serve(self):
        """Let calls of the class be served here."""
        global _served
        _served = self
        serve_by(self.cls, _construct)

    def stop(self):
        """Leave calls of the class to the interpreter again."""
        global _served
        serve_by(self.cls, NULL)
        _served = None

    cdef bint makes_its_own(self) except -1:
        """Return whether nobody has replaced what makes a message, or takes in what comes for it."""
        return self._record.unchanged() and self._base.unchanged() and self._called.unchanged()

    cdef object make(self, dict properties):
        """A message as the constructors leave it."""
        message = self._record.make()
        self.set(message, PROPERTIES, properties)
        self.set(message, CHUNKS, [])
        return message

    cdef int set(self, object message, int field, object value) except -1:
        """Fill a slot that has been filled before."""
        set_slot(slot(self._record.layout, <PyObject *>message, field), <PyObject *>value)
        return 0

    cdef object get(self, object message, int field):
        """Return the value of a slot; None if it is empty."""
        try:
            return self._record.value(message, field)
        except (AttributeError, Declined):  # somebody has deleted it
            return None

    cdef bint may_come_in(self, object message) except -1:
        """Return whether a message coming in is py-amqp's own in all that it does, and has what it was made with."""
        return (
            type(message) is self.cls
            and self.makes_its_own()
            and type(self.get(message, PROPERTIES)) is dict
            and type(self.get(message, CHUNKS)) is list
            and self.get(message, READY) is not None
            and self.get(message, CONTENT) is not None
            and index_of(self.get(message, SIZE)) >= 0
            and index_of(self.get(message, RECEIVED)) >= 0
        )

    cdef bint tells_its_encoding(self) except -1:
        """Return whether a message says by its properties alone how its body is encoded."""
        return self._encoding.unchanged()

    cdef int decode_body(self, object message) except -1:
        """Make a text of the body of a message that has come in, where its properties say how and that can be done."""
        encoding = look_up(self.get(message, PROPERTIES), "content_encoding", None)
        if encoding is None:  # nothing that `decode` takes
            return 0
        try:
            self.set(message, CONTENT, self.get(message, CONTENT).decode(encoding))
        except Exception:  # it stays as it is
            pass
        return 0

    cdef bint may_go_out(self, object message) except -1:
        """Return whether a message going out is py-amqp's own in all that it does."""
        if type(message) is not self.cls or not self._outbound.unchanged():
            return False
        serialize = self.cls._serialize_properties
        return stands_for(serialize, self._serialize)


# -- entries: calls as the interpreter has them

cdef object _loads(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec self = <Codec>(<FastFunction>function).state
    found = self._loaded(arguments, nargsf, names, self.pool)
    if found is not None:
        self.counts.fast += 1
        return found
    return self.left_to_stock(True, function, arguments, nargsf, names)


cdef object _dumps(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec self = <Codec>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 2 and type(<object>arguments[1]) in (tuple, list):
        found = self._write(<object>arguments[0], tuple(<object>arguments[1]))
        if found is not None:
            self.counts.fast += 1
            return found
    self.counts.decline("dumps")
    return call_original(function, arguments, nargsf, names)


cdef object _decode(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec self = <Codec>(<FastFunction>function).state
    found = self._decoded(arguments, nargsf, names, self.pool)
    if found is not None:
        self.counts.fast += 1
        return found
    return self.left_to_stock(False, function, arguments, nargsf, names)


cdef object _serialize(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Codec self = <Codec>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 1:
        found = self._serialized(<object>arguments[0])
        if found is not None:
            self.counts.fast += 1
            return found
    self.counts.decline("_serialize_properties")
    return call_original(function, arguments, nargsf, names)


cdef object _construct(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """`Message(body, **properties)`, with the arguments as the interpreter has them."""
    cdef Py_ssize_t count = count_of(nargsf)
    cdef Messages messages = _served
    cdef dict properties
    if messages is not None and <PyObject *>messages.cls is cls and count <= 1 and messages.makes_its_own():
        properties = {} if keywords is NULL else _properties(arguments + count, <tuple>keywords)
        if properties is not None:
            message = messages.make(properties)
            if count:
                messages.set(message, CONTENT, <object>arguments[0])
            messages._counts.fast += 1
            return message
    return call_init(cls, arguments, count, keywords)


cdef dict _properties(PyObject *const *values, tuple names):
    """Keywords that are nothing but properties; None if one is more than that."""
    cdef dict properties = {}
    cdef Py_ssize_t at
    for at in range(len(names)):
        name = names[at]
        if name in _ARGUMENTS:
            return None
        properties[name] = <object>values[at]
    return properties
