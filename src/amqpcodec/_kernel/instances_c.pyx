"""Making instances of generated classes without the detours of `type.__call__`; of the compiled build only.

A generated class is a C struct: the head of an object, Cython's method table, one slot for each field in
wire order. Knowing that, an instance is made by copying the memory of another and filling its slots. What
`type.__call__` does instead, packing keywords into a dict that `__init__` takes apart again, costs more than
encoding what was made.

`__init__` stays what counts: a call that is not plainly right, and every subclass, goes through it.
"""

from sys import intern

from cpython.mem cimport PyMem_Calloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy

from .sharing_c import share

cdef extern from *:
    """
    /* Many references to None at once; since 3.12 None is immortal and they are not counted. */
    static inline void amqpcodec_refer_to_none(Py_ssize_t times) {
    #if defined(Py_REF_DEBUG)
        while (times-- > 0) Py_INCREF(Py_None);
    #elif PY_VERSION_HEX < 0x030C0000
        Py_None->ob_refcnt += times;
    #else
        (void)times;
    #endif
    }

    /* Another thread that finds a pointer here finds whole what it points to. */
    static inline void amqpcodec_publish(void **place, void *value) {
    #if defined(Py_GIL_DISABLED) && !defined(_MSC_VER)
        __atomic_store_n(place, value, __ATOMIC_RELEASE);
    #else
        *place = value;
    #endif
    }
    """
    void refer_to_none "amqpcodec_refer_to_none"(Py_ssize_t times) noexcept
    void publish "amqpcodec_publish"(void **place, void *value) noexcept

cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)
    ctypedef struct CallableType "PyTypeObject":
        vectorcallfunc tp_vectorcall
    object PyType_GenericAlloc(type cls, Py_ssize_t items)
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t at) noexcept

cdef enum:
    BUCKETS = 256
    MOST_FIELDS = 32  # a class with more is left to `__init__`
    NAME_BUCKETS = 128


cdef struct Layout:
    PyObject *cls  # lives as long as the process, as every extension type does; so does all below
    Layout *next
    PyObject *model  # what the class makes of a call without arguments
    Py_ssize_t before  # octets before the slots
    Py_ssize_t size
    Py_ssize_t fields
    Py_ssize_t positional
    unsigned char place[MOST_FIELDS]  # slot of a positional argument
    PyObject *names[MOST_FIELDS]
    unsigned char slot_of[NAME_BUCKETS]  # by address of the name: its slot and 1, or 0 for none; in a row
    bint all_none  # in the model
    bint has_table
    bint table[MOST_FIELDS]  # None stands for a new dict


# By address of the class. An entry is put in front once it is whole, and never removed: should two threads
# do that at once, one entry may be lost, and its class is then constructed the ordinary way.
cdef Layout *_layouts[BUCKETS]

cdef Py_ssize_t _HEAD = sizeof(PyObject)


cdef inline size_t _bucket(PyObject *cls) noexcept:
    return (<uintptr_t>cls >> 6) % BUCKETS


cdef inline size_t _name_bucket(PyObject *name) noexcept:
    return (<uintptr_t>name >> 4) % NAME_BUCKETS


cdef inline PyObject **_slots(Layout *layout, PyObject *instance) noexcept:
    return <PyObject **>(<char *>instance + layout.before)


cdef Py_ssize_t _octets_before_slots(type cls) except -1:
    """The bases of a generated class have no fields, and the class has nothing else."""
    cdef Py_ssize_t before = (<PyTypeObject *>cls).tp_base.tp_basicsize
    if (<PyTypeObject *>cls).tp_basicsize != before + len(cls.spec.fields) * <Py_ssize_t>sizeof(PyObject *):
        raise TypeError(f"{cls.__name__} does not hold its fields alone")
    return before


cdef class Maker:
    """Makes instances of one generated class whose fields are all None, for a decoder to fill."""

    def __cinit__(self, type cls):
        _octets_before_slots(cls)
        self._model = cls.__new__(cls)
        self._fields = len(cls.spec.fields)
        self._size = (<PyTypeObject *>cls).tp_basicsize

    cdef object make(self):
        made = _copy_memory(<PyObject *>self._model, self._size)
        refer_to_none(self._fields)
        return made


cdef inline object _copy_memory(PyObject *model, Py_ssize_t size):
    """An instance with the slots of another, without counting the references in them."""
    made = PyType_GenericAlloc(<type>model.ob_type, 0)
    memcpy(<char *><PyObject *>made + _HEAD, <char *>model + _HEAD, <size_t>(size - _HEAD))
    return made


cdef int quicken(type cls) except -1:
    """Let calls of a generated class be served by `_construct`."""
    cdef Layout *layout
    cdef Py_ssize_t before = _octets_before_slots(cls)
    attributes = [intern(field.attribute) for field in cls.spec.fields]
    if len(attributes) > MOST_FIELDS or (<CallableType *>cls).tp_vectorcall is _construct:
        return 0
    layout = <Layout *>PyMem_Calloc(1, sizeof(Layout))
    if layout is NULL:
        raise MemoryError
    model = cls()
    layout.cls = <PyObject *>cls
    layout.model = <PyObject *>model
    layout.before = before
    layout.size = (<PyTypeObject *>cls).tp_basicsize
    layout.fields = len(attributes)
    layout.all_none = all([getattr(model, attribute) is None for attribute in attributes])
    for slot, attribute in enumerate(attributes):
        _enter_name(layout, <PyObject *>attribute, slot)
        layout.table[slot] = type(getattr(model, attribute)) is dict
        layout.has_table |= layout.table[slot]
        if attribute in cls.__match_args__:
            layout.place[layout.positional] = <unsigned char>slot
            layout.positional += 1
    for kept in (cls, model, attributes):
        Py_INCREF(kept)
    share([getattr(model, attribute) for attribute in attributes])  # every call refers to the defaults
    layout.next = _layouts[_bucket(layout.cls)]
    publish(<void **>&_layouts[_bucket(layout.cls)], layout)
    (<CallableType *>cls).tp_vectorcall = _construct
    return 0


cdef void _enter_name(Layout *layout, PyObject *name, Py_ssize_t slot) noexcept:
    cdef size_t at = _name_bucket(name)
    while layout.slot_of[at]:
        at = (at + 1) % NAME_BUCKETS
    layout.slot_of[at] = <unsigned char>(slot + 1)
    layout.names[slot] = name


cdef inline Py_ssize_t _find_name(Layout *layout, PyObject *name) noexcept:
    """The slot of a keyword, or -1. Names in source code are interned: one address each."""
    cdef size_t at = _name_bucket(name)
    cdef Py_ssize_t slot
    while layout.slot_of[at]:
        slot = layout.slot_of[at] - 1
        if layout.names[slot] is name:
            return slot
        at = (at + 1) % NAME_BUCKETS
    return -1


cdef object _construct(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """An instance from arguments as the interpreter has them."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(nargsf)
    cdef Layout *layout = _layouts[_bucket(cls)]
    while layout is not NULL and layout.cls is not cls:
        layout = layout.next
    if layout is not NULL and count <= layout.positional:
        made = _copy(layout)
        if _put(layout, _slots(layout, <PyObject *>made), arguments, count, keywords):
            if layout.has_table:
                _make_tables(layout, _slots(layout, <PyObject *>made))
            return made
    return _call_init(cls, arguments, count, keywords)


cdef inline object _copy(Layout *layout):
    """An instance that holds what the model holds."""
    cdef PyObject **slots
    cdef Py_ssize_t at
    made = _copy_memory(layout.model, layout.size)
    if layout.all_none:
        refer_to_none(layout.fields)
        return made
    slots = _slots(layout, <PyObject *>made)
    for at in range(layout.fields):
        Py_INCREF(<object>slots[at])
    return made


cdef inline void _set(PyObject **slot, PyObject *value) noexcept:
    cdef PyObject *old = slot[0]
    Py_INCREF(<object>value)
    slot[0] = value
    Py_DECREF(<object>old)


cdef bint _put(
    Layout *layout, PyObject **slots, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords
) noexcept:
    """Put each argument into its slot; False for a call that `__init__` should judge."""
    cdef Py_ssize_t at, slot
    cdef uint32_t given = 0
    for at in range(count):
        slot = layout.place[at]
        given |= <uint32_t>1 << slot
        _set(slots + slot, arguments[at])
    if keywords is NULL:
        return True
    for at in range(PyTuple_GET_SIZE(keywords)):
        slot = _find_name(layout, PyTuple_GET_ITEM(keywords, at))
        if slot < 0 or given >> slot & 1:
            return False
        given |= <uint32_t>1 << slot
        _set(slots + slot, arguments[count + at])
    return True


cdef int _make_tables(Layout *layout, PyObject **slots) except -1:
    """A new dict where none was given: that of the model would be shared."""
    cdef PyObject **defaults = _slots(layout, layout.model)
    cdef Py_ssize_t at
    for at in range(layout.fields):
        if layout.table[at] and (slots[at] is defaults[at] or slots[at] is <PyObject *>None):
            table = {}
            _set(slots + at, <PyObject *>table)
    return 0


cdef object _call_init(PyObject *cls, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords):
    """What `type.__call__` does, with all it has to say about wrong arguments."""
    cdef Py_ssize_t at
    positional = tuple([<object>arguments[at] for at in range(count)])
    named = {}
    if keywords is not NULL:
        for at in range(PyTuple_GET_SIZE(keywords)):
            named[<object>PyTuple_GET_ITEM(keywords, at)] = <object>arguments[count + at]
    return type.__call__(<object>cls, *positional, **named)
