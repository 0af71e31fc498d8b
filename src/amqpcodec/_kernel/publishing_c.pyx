# cython: boundscheck=False, wraparound=False
"""Many messages at once, and messages of which little changes, in C. The twin of publishing_py.py.

Messages are written one after the other into the bytes object that leaves as a piece. Of a prepared message the
octets are kept, and those of other values are put in between. What `fast_writer_c` declines goes by way of
`Encoder.encode_message`, which raises all errors.
"""

from copy import copy
from sys import intern

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE, _PyBytes_Resize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy

from ..errors import EncodeError
from .slots.constructors_c import describe
from .slots.layout_c cimport put_attribute
from .dispatch_c cimport Dispatch
from .fast_writer_c cimport (
    BEFORE_ARGUMENTS, BEFORE_PROPERTIES, Changes, Form, Kept, Prepared, Span, changed_message,
)
from .fields cimport (
    BIT_FIELD, LONG_FIELD, LONGLONG_FIELD, OCTET_FIELD, SHORT_FIELD, SHORTSTR_FIELD, TIME_FIELD,
)
from .ints cimport small
from .lock_c cimport Lock
from .octets cimport u16, u32
from .rawproperties_c cimport kept_in
from .rawtable_c cimport RawTable
from .routines_c cimport MOST_HEAD
from .values import named
from .wire cimport OVERHEAD
from .writer_c cimport WriterRules

cdef extern from *:
    """
    #define AMQPCODEC_FASTCALL (METH_FASTCALL | METH_KEYWORDS)
    """
    enum:
        AMQPCODEC_FASTCALL

cdef extern from "Python.h":
    ctypedef PyObject *(*PyCFunction)(PyObject *, PyObject *)
    ctypedef struct PyMethodDef:
        const char *ml_name
        PyCFunction ml_meth
        int ml_flags
        const char *ml_doc
    object PyDescr_NewMethod(type cls, PyMethodDef *definition)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t at) noexcept

cdef enum:
    OF_METHOD = 64  # is added to the numbers of a method's fields


cdef object _NO_MORE = object()


cdef class MessagePieces:
    """Iterates over the octets of messages, many of them at a time. Made by `Encoder.encode_messages`.

    Args:
        messages: channel, method, properties and body of each.
        encode: `Encoder.encode_message`.
        dialect: of the encoder.
        rules: likewise.
        frame_max: octets of the largest frame.
        validate: as for `encode`.
    """

    def __init__(self, messages, encode, dialect, WriterRules rules not None, frame_max, bint validate):
        if self._lock is None:
            self._lock = Lock()
        self._messages = iter(messages)
        self._encode = encode
        self._methods = dialect.method_dispatch
        self._properties = dialect.properties_dispatch
        self._rules = rules
        self._frame_max = frame_max
        self._limit = rules.payload_limit(frame_max)
        self._validate = validate

    def __iter__(self):
        return self

    def __next__(self):
        if self._lock is None or not self._lock.acquire():
            raise ValueError("the next piece is being made")
        try:
            piece = self._piece()
        finally:
            self._lock.release()
        if piece is not None:
            return piece
        error, self._error = self._error, None
        if error is None:
            raise StopIteration
        raise error

    cdef bytes _piece(self):
        """Return octets of messages up to the size of a piece; None if there are none left."""
        cdef bytes octets = self._left
        cdef bytes piece = None
        cdef unsigned char *start = NULL
        cdef unsigned char *after
        cdef PyObject *whole
        cdef Py_ssize_t used = 0
        self._left = None
        try:
            while octets is not None or self._messages is not None:
                if octets is None:
                    message = next(self._messages, _NO_MORE)
                    if message is _NO_MORE:
                        self._messages = None
                        break
                    self._count += 1
                    if piece is None:
                        piece = PyBytes_FromStringAndSize(NULL, PIECE)
                        start = <unsigned char *>PyBytes_AS_STRING(piece)
                    after = self._put(message, start + used, start + PIECE)
                    if after is not NULL:
                        used = after - start
                        if used == PIECE:
                            break
                        continue
                    octets = self._slowly(message)
                if used and PyBytes_GET_SIZE(octets) > PIECE - used:
                    self._left = octets
                    break
                if PyBytes_GET_SIZE(octets) >= PIECE:
                    return octets
                if piece is None:
                    piece = PyBytes_FromStringAndSize(NULL, PIECE)
                    start = <unsigned char *>PyBytes_AS_STRING(piece)
                memcpy(start + used, PyBytes_AS_STRING(octets), <size_t>PyBytes_GET_SIZE(octets))
                used += PyBytes_GET_SIZE(octets)
                octets = None
                if used == PIECE:
                    break
        except BaseException as error:
            self._messages = None
            self._error = error
        if used == 0:
            return None
        Py_INCREF(piece)
        whole = <PyObject *>piece
        piece = None
        return _shortened(whole, used)

    cdef inline unsigned char *_put(self, object message, unsigned char *p, const unsigned char *end) noexcept:
        """Write all frames of a message; return where they end, or NULL where `_slowly` must write them."""
        cdef PyObject *item = <PyObject *>message
        cdef PyObject *contents = <PyObject *>self._properties
        cdef Kept kept
        if self._validate or type(message) is not tuple or PyTuple_GET_SIZE(item) != 4:
            return NULL
        return self._methods.forms.put_message(
            p, end, item, self._limit, self._rules, self._properties.forms,
            kept_in(PyTuple_GET_ITEM(item, 2), contents, &kept),
        )

    cdef bytes _slowly(self, object message):
        try:
            if type(message) is not tuple or len(message) != 4:
                what = "a tuple of channel, method, properties and body"
                raise EncodeError(f"expected {what}, not {named(message)}")
            return self._encode(*message, frame_max=self._frame_max, validate=self._validate)
        except EncodeError as error:
            error.index = self._count - 1
            raise


cdef class PreparedMessage:
    """A message of which most stays as it is from one time to the next. Made by `Encoder.prepare_message`.

    It may be shared by threads.
    """

    def __init__(
        self, encode, dialect, WriterRules rules not None, channel, method, properties, frame_max
    ):
        if self._octets is not None:
            raise TypeError("a prepared message is made once: prepare another")
        octets = encode(channel, method, properties, b"", frame_max=frame_max)
        if properties is None:
            properties = dialect.properties[method.spec.class_id]()
        self._encode = encode
        self._rules = rules
        self._channel = channel
        self._method = _kept(method, rules)
        self._properties = _kept(properties, rules)
        self._frame_max = frame_max
        self._octets = octets
        self._arguments = {field.attribute for field in method.spec.fields}
        self._fast = self._prepare(dialect.method_dispatch, dialect.properties_dispatch)
        if self._fast:
            self._enter_names()

    def __reduce__(self):
        raise TypeError("a prepared message cannot be copied or pickled: prepare another")

    cdef int _enter_names(self) except -1:
        """Enter the names of fields by their addresses: names in source code are interned, one address each."""
        cdef size_t at
        self._names = []
        for number, record in ((OF_METHOD, self._method), (0, self._properties)):
            for field in record.spec.fields:
                number += 1
                name = intern(field.attribute)
                self._names.append(name)
                at = _place(<PyObject *>name)
                while self._places[at] is not NULL:
                    at = (at + 1) % NAMES
                self._places[at] = <PyObject *>name
                self._fields[at] = number
        return 0

    cdef bint _prepare(self, Dispatch methods, Dispatch properties) except -1:
        """Find out where each field is in the octets; False if all is left to `Encoder.encode_message`."""
        cdef Prepared *prepared = &self._prepared
        cdef const unsigned char *octets = <const unsigned char *>PyBytes_AS_STRING(self._octets)
        prepared.method = methods.forms.find((<PyObject *>self._method).ob_type)
        prepared.header = properties.forms.find((<PyObject *>self._properties).ob_type)
        if prepared.method is NULL or prepared.header is NULL or self._rules.strict:
            return False
        if type(self._channel) is not int or PyBytes_GET_SIZE(self._octets) > MOST_HEAD:
            return False
        prepared.number = <unsigned int>small(self._channel)
        prepared.limit = self._rules.payload_limit(self._frame_max)
        prepared.octets = octets
        prepared.header_at = <Py_ssize_t>u32(octets + 3) + OVERHEAD
        _find_fields(prepared.method, octets + BEFORE_ARGUMENTS, 0, prepared.arguments)
        octets += prepared.header_at + BEFORE_PROPERTIES
        prepared.flags = u16(octets - 2)
        _find_fields(prepared.header, octets, prepared.flags, prepared.properties)
        return True

    cdef int _find(self, PyObject *name) noexcept:
        """Return the number of a field; 0 if that is not the name of one, or not interned."""
        cdef size_t at = _place(name)
        while self._places[at] is not NULL and self._places[at] is not name:
            at = (at + 1) % NAMES
        return self._fields[at] if self._places[at] is name else 0

    cdef bint _take(self, Changes *changes, PyObject *const *values, PyObject *names) noexcept:
        """Take the values of keywords; False if one is not known."""
        cdef Py_ssize_t at
        cdef int field
        changes.given_arguments = 0
        changes.given_properties = 0
        for at in range(0 if names is NULL else PyTuple_GET_SIZE(names)):
            field = self._find(PyTuple_GET_ITEM(names, at))
            if field > OF_METHOD:
                field -= OF_METHOD + 1
                changes.given_arguments |= <uint32_t>1 << field
                changes.arguments[field] = values[at]
            elif field > 0:
                field -= 1
                changes.given_properties |= <uint32_t>1 << field
                changes.properties[field] = values[at]
            else:
                return False
        return True

    cdef object _changed(self, object body, dict changes):
        """Encode the message by way of a method and properties."""
        method, properties = copy(self._method), copy(self._properties)
        for name, value in changes.items():
            if name in self._arguments:
                setattr(method, name, value)
            elif any([field.attribute == name for field in properties.spec.fields]):
                setattr(properties, name, value)
            else:
                raise TypeError(f"PreparedMessage.encode() got an unexpected keyword argument {name!r}")
        return self._encode(self._channel, method, properties, body, frame_max=self._frame_max)


cdef object _kept(object record, WriterRules rules):
    """Return a copy of a record that nobody can change: with tables as their octets."""
    kept = copy(record)
    for field in record.spec.fields:
        value = getattr(record, field.attribute)
        if field.type == "table" and value is not None:
            writer = rules.writer()
            writer.table(value, field.name)
            value = RawTable(writer.finish()[4:], rules.profile.name)
        elif isinstance(value, bytearray) or isinstance(value, memoryview):
            value = bytes(value)
        setattr(kept, field.attribute, value)
    return kept


cdef object _encode(PreparedMessage message, PyObject *const *arguments, Py_ssize_t count, PyObject *names):
    """`PreparedMessage.encode`, with arguments as the interpreter has them."""
    cdef Changes changes
    cdef Py_ssize_t at
    if count != 1:
        raise _wrong_count(count)
    if message._fast and message._take(&changes, arguments + 1, names):
        octets = changed_message(&message._prepared, &changes, <object>arguments[0], message._rules)
        if octets is not None:
            return octets
    named_changes = {}
    if names is not NULL:
        for at in range(PyTuple_GET_SIZE(names)):
            named_changes[<object>PyTuple_GET_ITEM(names, at)] = <object>arguments[at + 1]
    return message._changed(<object>arguments[0], named_changes)


cdef object _wrong_count(Py_ssize_t count):
    if count == 0:
        return TypeError("PreparedMessage.encode() missing 1 required positional argument: 'body'")
    return TypeError(f"PreparedMessage.encode() takes 2 positional arguments but {count + 1} were given")


cdef inline size_t _place(PyObject *name) noexcept:
    return (<uintptr_t>name >> 4) % NAMES


cdef bytes _shortened(PyObject *octets, Py_ssize_t size):
    """Return the first of some octets; the one reference to them is the caller's, and goes."""
    _PyBytes_Resize(&octets, size)
    shorter = <bytes>octets
    Py_DECREF(shorter)
    return shorter


cdef Py_ssize_t _octets_of_field(int kind, const unsigned char *p) noexcept:
    """Return how many octets a field has that is there and no bit."""
    if kind == SHORTSTR_FIELD:
        return p[0] + 1
    if kind == OCTET_FIELD:
        return 1
    if kind == SHORT_FIELD:
        return 2
    if kind == LONG_FIELD:
        return 4
    if kind == LONGLONG_FIELD or kind == TIME_FIELD:
        return 8
    return <Py_ssize_t>u32(p) + 4


cdef void _find_fields(Form *form, const unsigned char *octets, uint32_t flags, Span *spans) noexcept:
    """Find where each field is, or would be, in the octets of all fields. A bit is behind its octet."""
    cdef Py_ssize_t at = 0
    cdef int field
    for field in range(form.count):
        if form.steps[field].kind == BIT_FIELD:
            at += form.steps[field].flag == 1
            spans[field].start = <unsigned short>at
        else:
            spans[field].start = <unsigned short>at
            if form.is_method or flags & form.steps[field].flag:
                at += _octets_of_field(form.steps[field].kind, octets + at)
        spans[field].end = <unsigned short>at
    spans[form.count].start = <unsigned short>at


cdef PyMethodDef _ENCODE
_ENCODE.ml_name = "encode"
_ENCODE.ml_meth = <PyCFunction><void *>_encode
_ENCODE.ml_flags = AMQPCODEC_FASTCALL
_ENCODE.ml_doc = """encode($self, body, /, **changes)
--

Encode the message with a body, and with other values of some fields.

The octets and the refusals are those of `Encoder.encode_message` of a method and properties with
these values.

Args:
    body: bytes-like.
    changes: values of fields of the method or of the properties, by their names. None for a property
        leaves it out.

Raises:
    EncodeError: a value its field cannot carry, or a method or header over frame_max.
    TypeError: there is no such field.
"""
put_attribute(PreparedMessage, "encode", PyDescr_NewMethod(PreparedMessage, &_ENCODE))
describe([MessagePieces, PreparedMessage])
