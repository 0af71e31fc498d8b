# cython: boundscheck=False, wraparound=False
"""py-amqp's class `Message` in C: made without its constructors, its slots filled and read where they lie.

`Message.__init__` and that of its base stay what counts: a call that is not the common case goes there, and
every call does once somebody has replaced one of them.
"""

from cpython.object cimport PyObject

from .._kernel.layout_c cimport call_init, set_slot, slot
from .._kernel.values import Declined
from ._amqp_c cimport index_of, stands_for
from ._lookup cimport look_up

cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)
    ctypedef struct CallableType "PyTypeObject":
        vectorcallfunc tp_vectorcall
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) noexcept

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
        (<CallableType *>self.cls).tp_vectorcall = _construct

    def stop(self):
        """Leave calls of the class to the interpreter again."""
        global _served
        (<CallableType *>self.cls).tp_vectorcall = NULL
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


cdef object _construct(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """`Message(body, **properties)`, with the arguments as the interpreter has them."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(nargsf)
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
