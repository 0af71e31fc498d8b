# cython: boundscheck=False, wraparound=False
"""Filling and reading the classes of other libraries; of the compiled build only.

A `RecordLayout` knows where the fields of one class are and how each of them is read and written. What it does
not take raises `Declined`, or any other exception: the library's own code then starts over.
"""

from sys import intern
from types import MemberDescriptorType

cimport cython
from cpython.object cimport PyObject, PyObject_GetAttr, PyObject_SetAttr
from cpython.ref cimport Py_INCREF

from .._kernel.fields cimport BIT_FIELD
from .._kernel.slots.layout_c cimport copy_model, lay_out, slot
from .._kernel.octets cimport put16
from .._kernel.values import Declined
from ._peer_writer_c cimport put_field

cdef extern from *:
    """
    #include <stddef.h>
    #include <structmember.h>

    #if defined(Py_GIL_DISABLED)
    #define AMQPCODEC_SHARED 1
    #else
    #define AMQPCODEC_SHARED 0
    #endif

    static inline Py_ssize_t amqpcodec_offset(PyObject *member) {
        PyMemberDef *known = ((PyMemberDescrObject *)member)->d_member;
        return known->type == T_OBJECT_EX ? known->offset : -1;
    }

    static inline PyObject *amqpcodec_new(PyObject *cls, PyObject *nothing) {
        return PyBaseObject_Type.tp_new((PyTypeObject *)cls, nothing, NULL);
    }
    """
    const bint SHARED "AMQPCODEC_SHARED"  # other threads may change an instance while it is read
    Py_ssize_t member_offset "amqpcodec_offset"(PyObject *member) noexcept
    object new_instance "amqpcodec_new"(PyObject *cls, PyObject *nothing)

cdef extern from "Python.h":
    object PyType_GenericAlloc(type cls, Py_ssize_t items)

cdef tuple _NO_ARGUMENTS = ()


cdef Py_ssize_t _offset_of(type cls, str name) except -2:
    """Where an attribute lies in an instance; -1 if that is not so."""
    for base in cls.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            if type(found) is MemberDescriptorType:
                return member_offset(<PyObject *>found)
            return -1
    return -1


cdef class RecordLayout:
    """One class and its fields.

    Args:
        cls: a class made by a `class` statement, with `__slots__` for its fields or without any.
        fields: attribute and kind (see fields.pxd) for each field, in the order of the wire, which is that in
            which `__init__` sets them; and by what `__init__` sets them if nothing is given.
        guarded: names that the class must not get others for, such as ``"__init__"`` and ``"marshal"``.

    Raises:
        TypeError: the class is not made like that.
    """

    def __init__(self, type cls, fields, guarded=()):
        if type(cls) is not type or cls.__new__ is not object.__new__:
            raise TypeError(f"{cls.__name__} makes its instances in a way of its own")
        self.cls = cls
        self.names = [intern(name) for name, _, _ in fields]
        self._defaults = [default for _, _, default in fields]
        self.count = len(self.names)
        if self.count > MOST_FIELDS:
            raise TypeError(f"{cls.__name__} has more than {MOST_FIELDS} fields")
        for at, (_, kind, _) in enumerate(fields):
            self.kinds[at] = kind
        # What is said on looking up, setting and asking for attributes counts in any case.
        always = ("__new__", "__init__", "__setattr__", "__getattribute__", "__getattr__", "__slots__")
        self._guard = TypeGuard(cls, (*always, *self.names, *guarded))
        self._find_slots()

    @property
    @cython.nonecheck(True)
    def replaced(self):
        """Return the names in the class that somebody had replaced before the layout was made."""
        return self._guard.replaced

    def expect(self, name, value):
        """One of the guarded names is about to get another value, which counts as the one it has now."""
        self._guard.expect(name, value)

    cdef int _find_slots(self) except -1:
        offsets = [_offset_of(self.cls, name) for name in self.names]
        if offsets and -1 not in offsets:
            model = PyType_GenericAlloc(self.cls, 0)
            for name, default in zip(self.names, self._defaults):
                setattr(model, name, default)
            self.layout = lay_out(self.cls, self.names, offsets, model)
        elif any([hasattr(self.cls, name) for name in self.names]):
            raise TypeError(f"{self.cls.__name__} holds its fields in a way of its own")
        return 0

    cdef bint unchanged(self) except -1:
        """Return whether nobody has put anything in the place of what is guarded."""
        return self._guard.unchanged()

    cdef object make(self):
        """An instance as `__init__` leaves it if nothing is given."""
        if self.layout is not NULL:
            return copy_model(self.layout)
        made = new_instance(<PyObject *>self.cls, <PyObject *>_NO_ARGUMENTS)
        for at in range(self.count):
            PyObject_SetAttr(made, self.names[at], self._defaults[at])
        return made

    cdef inline object value(self, object instance, Py_ssize_t field):
        """Return the value of a field."""
        cdef PyObject *held
        if self.layout is NULL or SHARED:
            return PyObject_GetAttr(instance, self.names[field])
        held = slot(self.layout, <PyObject *>instance, field)[0]
        if held is NULL:
            raise Declined
        return <object>held

    cdef inline int set_value(self, object instance, Py_ssize_t field, object value) except -1:
        """Fill a field of an instance that has none yet, and that nobody else knows."""
        if self.layout is NULL:
            return PyObject_SetAttr(instance, self.names[field], value)
        Py_INCREF(value)
        slot(self.layout, <PyObject *>instance, field)[0] = <PyObject *>value
        return 0

    cdef inline object _empty(self):
        if self.layout is not NULL:
            return PyType_GenericAlloc(self.cls, 0)
        return new_instance(<PyObject *>self.cls, <PyObject *>_NO_ARGUMENTS)

    cdef object read(self, Reader reader):
        """An instance with every field read, bits packed as they are on the wire."""
        cdef Py_ssize_t at
        cdef int mask = 0, octet = 0
        made = self._empty()
        for at in range(self.count):
            if self.kinds[at] != BIT_FIELD:
                mask = 0
                self.set_value(made, at, reader.field(self.kinds[at], None))
                continue
            mask = mask << 1 & 0xFF
            if mask == 0:
                octet = reader.bits(None)
                mask = 1
            self.set_value(made, at, octet & mask != 0)
        return made

    cdef object read_flagged(self, Reader reader, int flags):
        """An instance with those fields read whose flag is set, the first in the highest place (0-9-1 section
        4.2.6.1)."""
        cdef Py_ssize_t at
        made = self._empty()
        for at in range(self.count):
            if flags & 0x8000 >> at:
                self.set_value(made, at, reader.field(self.kinds[at], None))
            else:
                self.set_value(made, at, self._defaults[at])
        return made

    cdef int write(self, Writer writer, object instance) except -1:
        """Every field of an instance of exactly the class."""
        cdef Py_ssize_t at
        cdef int mask = 0, octet = 0
        for at in range(self.count):
            value = self.value(instance, at)
            if self.kinds[at] != BIT_FIELD:
                if mask != 0:
                    writer.bits(octet)
                    mask = octet = 0
                put_field(writer, self.kinds[at], value)
                continue
            if mask == 0x80:
                writer.bits(octet)
                mask = octet = 0
            mask = <int>(mask << 1 if mask else 1)
            if value is True:
                octet |= mask
            elif value is not False:
                raise Declined
        if mask != 0:
            writer.bits(octet)
        return 0

    cdef int write_flagged(self, Writer writer, object instance, bint empty_is_absent) except -1:
        """The flags of those fields that are not None, then the fields."""
        cdef Py_ssize_t at, start = writer._size
        cdef int flags = 0
        writer.word(0)
        for at in range(self.count):
            value = self.value(instance, at)
            if value is None or empty_is_absent and type(value) is str and len(<str>value) == 0:
                continue
            flags |= 0x8000 >> at
            put_field(writer, self.kinds[at], value)
        put16(writer._out + start, <unsigned int>flags)
        return 0
