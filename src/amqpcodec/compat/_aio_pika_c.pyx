# cython: boundscheck=False, wraparound=False
"""aio-pika's messages in C: made without a call of `Message.__setattr__` for each attribute, which asks for the lock.

A message is filled by the descriptors of its slots, once all values are known to be plain. Otherwise, and where a
class or somebody's patch has a say in it, aio-pika's own constructor makes it. The lock stays what it is: whatever is
set later goes by aio-pika's function.
"""

from datetime import datetime
from types import MemberDescriptorType

from cpython.object cimport Py_TYPE, PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport uint64_t

from ._fast_c cimport Counts, FastFunction, call_original, count_of, fast_function
from .._kernel.slots.layout_c cimport type_version
from ._guards_c cimport NO_VERSION, Guards
from ._lookup cimport look_up

cdef enum:
    AS_IS
    OCTETS
    HEADERS
    MODE
    NUMBER
    TEXT
    TIME
    FIELDS = 14
    BODY = 0  # places of fields
    EXPIRES = 8

cdef tuple _FIELDS = (
    ("body", OCTETS), ("headers", HEADERS), ("content_type", AS_IS), ("content_encoding", AS_IS),
    ("delivery_mode", MODE), ("priority", NUMBER), ("correlation_id", TEXT), ("reply_to", TEXT),
    ("expiration", AS_IS), ("message_id", TEXT), ("timestamp", TIME), ("type", TEXT), ("user_id", TEXT),
    ("app_id", TEXT),
)  # fmt: skip
cdef tuple _NAMES = tuple([name for name, _ in _FIELDS])
cdef int _kinds[FIELDS]
for _at, (_, _kind) in enumerate(_FIELDS):
    _kinds[_at] = _kind
# What one that came in takes from its properties, the body aside; and what from the delivery.
cdef tuple _PROPERTIES = tuple(["message_type" if name == "type" else name for name in _NAMES])
cdef tuple _DELIVERY = (
    "consumer_tag", "delivery_tag", "exchange", "message_count", "redelivered", "routing_key",
)  # fmt: skip
cdef str _CHANNEL = "_IncomingMessage__channel"
cdef str _NO_ACK = "_IncomingMessage__no_ack"
cdef str _PROCESSED = "_IncomingMessage__processed"
cdef str _LOCK = "_Message__lock"
cdef object _DECLINED = object()


cdef inline int fill(object descriptor, object instance, object value) except -1:
    """Set the slot of a descriptor."""
    return (<PyTypeObject *>Py_TYPE(descriptor)).tp_descr_set(descriptor, instance, value)


cdef class Kind:
    """Knowledge of a class of messages, in that version of it."""

    cdef uint64_t version
    cdef bint served


cdef class Messages:
    """The constructors in the place of aio-pika's.

    Args:
        module: `aio_pika.message`.
        by_type: its functions that go by the type of their argument, by name.
        called: guards what its constructors look up in their module.
        counts: to count the calls.

    Raises:
        TypeError: its classes have other slots than these.
    """

    cdef readonly FastFunction message
    cdef readonly FastFunction incoming
    cdef object _message
    cdef object _incoming
    cdef object _delivered
    cdef object _setattr
    cdef object _modes
    cdef object _default_mode
    cdef dict _mode_of
    cdef object _decode_expiration
    cdef dict _there
    cdef dict _by_type
    cdef dict _slots
    cdef list _own  # slots of the fields, in their order
    cdef list _of_delivery
    cdef dict _known
    cdef Guards _called
    cdef Counts _counts

    def __cinit__(self, module, dict by_type, Guards called, Counts counts):
        self._message, self._incoming = module.Message, module.IncomingMessage
        self._delivered, self._modes = module.DeliveredMessage, module.DeliveryMode
        self._default_mode = self._modes.NOT_PERSISTENT
        self._mode_of = {int(mode): mode for mode in self._modes}
        self._there, self._by_type = vars(module), by_type
        self._decode_expiration = by_type["decode_expiration"]
        self._setattr = self._message.__setattr__
        names = (*_NAMES, *_DELIVERY, "body_size", "cluster_id", _LOCK, _CHANNEL, _NO_ACK, _PROCESSED)
        self._slots = {name: getattr(self._incoming, name, None) for name in names}
        if any([type(slot) is not MemberDescriptorType for slot in self._slots.values()]):
            raise TypeError("messages have other slots than these")
        self._own = [self._slots[name] for name in _NAMES]
        self._of_delivery = [self._slots[name] for name in _DELIVERY]
        self._known, self._called, self._counts = {}, called, counts
        self.message = fast_function(self._message.__init__, _make, self)
        self.incoming = fast_function(self._incoming.__init__, _take_in, self)

    cdef bint serves(self, object cls) except -1:
        """Return whether an instance of a class is made by nothing but aio-pika's own constructors."""
        cdef Kind kind
        if not self._called.unchanged():
            return False
        for name, function in self._by_type.items():
            if look_up(self._there, name, None) is not function:
                return False
        found = look_up(self._known, cls, None)
        if found is not None and (<Kind>found).version == type_version(<PyObject *>cls):
            return (<Kind>found).served
        kind = Kind.__new__(Kind)
        getattr(cls, "__init__")  # a look-up gives a class that was changed its next number
        kind.version = type_version(<PyObject *>cls) or NO_VERSION
        kind.served = self._is_stock(cls)
        self._known[cls] = kind
        return kind.served

    cdef bint _is_stock(self, object cls) except -1:
        """Return whether a class has aio-pika's slots, and none but its functions make it and set attributes."""
        cdef list heritage = list(cls.__mro__)
        if self._message not in heritage:
            return False
        incoming = self._incoming in heritage
        for name, slot in self._slots.items():
            if (incoming or slot.__objclass__ is self._message) and getattr(cls, name) is not slot:
                return False
        # What `super()` finds from the class for messages that come in, and from that of all messages.
        above = heritage[heritage.index(self._incoming) + 1 :] if incoming else [self._message]
        construct = [base.__dict__["__init__"] for base in above if "__init__" in base.__dict__][0]
        behind = heritage[heritage.index(self._message) + 1 :]
        return (
            (construct is self.message or construct is self.message.original)
            and cls.__setattr__ is self._setattr
            and not any(["__setattr__" in base.__dict__ for base in behind if base is not object])
        )

    cdef object _plain(self, int kind, object value):
        """Return what aio-pika makes of a value; `_DECLINED` for one that is not plain."""
        if kind == AS_IS:
            return value
        if kind == TEXT:
            return (value or None) if value is None or type(value) is str else _DECLINED
        if kind == NUMBER:
            return value if type(value) is int else 0 if value is None else _DECLINED
        if kind == MODE:
            if type(value) is self._modes:
                return value
            if value is None:
                return self._default_mode
            return self._mode_of.get(value, _DECLINED) if type(value) is int else _DECLINED
        if kind == HEADERS:
            return (value or {}) if value is None or type(value) is dict else _DECLINED
        if kind == TIME:
            return value if value is None or type(value) is datetime else _DECLINED
        return value if type(value) is bytes else _DECLINED

    cdef bint fill_fields(self, object instance, PyObject **given) except -1:
        """Fill what every message has; False, and nothing is filled, if some value is not plain."""
        cdef list values = []
        cdef int at
        for at in range(FIELDS):
            value = self._plain(_kinds[at], <object>given[at])
            if value is _DECLINED:
                return False
            values.append(value)
        for at in range(FIELDS):
            fill(self._own[at], instance, values[at])
        fill(self._slots["body_size"], instance, len(values[BODY]))
        fill(self._slots[_LOCK], instance, False)
        return True

    cdef bint take_in(self, object instance, object delivered, object no_ack) except -1:
        """Fill a message that came in; False, and nothing is filled, if some value is not plain."""
        cdef list values
        cdef PyObject *given[FIELDS]
        cdef int at
        try:
            properties = delivered.header.properties
            values = [delivered.body]
            for at in range(1, FIELDS):
                values.append(getattr(properties, _PROPERTIES[at]))
            if values[EXPIRES] is not None:
                values[EXPIRES] = self._decode_expiration(values[EXPIRES])
        except Exception:
            return False  # aio-pika asks in another order, so it may raise another
        for at in range(FIELDS):
            given[at] = <PyObject *>values[at]
        if not self.fill_fields(instance, given):
            return False
        fill(self._slots["cluster_id"], instance, properties.cluster_id)
        for at in range(len(_DELIVERY)):
            fill(self._of_delivery[at], instance, getattr(delivered, _DELIVERY[at]))
        fill(self._slots[_CHANNEL], instance, delivered.channel)
        fill(self._slots[_NO_ACK], instance, no_ack)
        fill(self._slots[_PROCESSED], instance, False)
        if no_ack or not instance.delivery_tag:
            instance.lock()
            fill(self._slots[_PROCESSED], instance, True)
        return True


cdef bint _sorted_out(PyObject *const *arguments, Py_ssize_t count, PyObject *names, PyObject **given) except -1:
    """Put arguments behind the instance in the places of their fields; False if they are not so that they can be."""
    cdef Py_ssize_t number
    cdef int at
    for at in range(FIELDS):
        given[at] = <PyObject *>None
    if count == 2:
        given[BODY] = arguments[1]
    elif count != 1 or names is NULL:
        return False
    if names is NULL:
        return True
    for number in range(PyTuple_GET_SIZE(<tuple>names)):
        for at in range(<int>count - 1, FIELDS):
            if (<tuple>names)[number] is _NAMES[at]:
                given[at] = arguments[count + number]
                break
        else:
            return False
    return True


cdef object _make(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Messages messages = <Messages>(<FastFunction>function).state
    cdef PyObject *given[FIELDS]
    cdef Py_ssize_t count = count_of(nargsf)
    if count and messages.serves(type(<object>arguments[0])) and _sorted_out(arguments, count, names, given):
        if messages.fill_fields(<object>arguments[0], given):
            messages._counts.fast += 1
            return None
    messages._counts.decline("Message")
    return call_original(function, arguments, nargsf, names)


cdef object _take_in(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Messages messages = <Messages>(<FastFunction>function).state
    cdef Py_ssize_t count = count_of(nargsf)
    no_ack = None
    if count == 3 and names is NULL or count == 2 and names is not NULL and <tuple>names == ("no_ack",):
        no_ack = <object>arguments[2]
    elif count == 2 and names is NULL:
        no_ack = False
    if type(no_ack) is bool and type(<object>arguments[1]) is messages._delivered:
        if messages.serves(type(<object>arguments[0])):
            if messages.take_in(<object>arguments[0], <object>arguments[1], no_ack):
                messages._counts.fast += 1
                return None
    messages._counts.decline("IncomingMessage")
    return call_original(function, arguments, nargsf, names)
