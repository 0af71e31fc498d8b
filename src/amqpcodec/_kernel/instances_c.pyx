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
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from .records_c cimport Record

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
    """
    void refer_to_none "amqpcodec_refer_to_none"(Py_ssize_t times) noexcept

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


cdef struct Layout:
    PyObject *cls  # lives as long as the process, as every extension type does; so does all below
    Layout *next
    PyObject *model  # what the class makes of a call without arguments
    Py_ssize_t size
    Py_ssize_t fields
    Py_ssize_t positional
    unsigned char place[MOST_FIELDS]  # slot of a positional argument
    bint table[MOST_FIELDS]  # None stands for a new dict
    PyObject *names[MOST_FIELDS]


# By address of the class. An entry is put in front once it is whole, and never removed: should two threads
# do that at once, one entry may be lost, and its class is then constructed the ordinary way.
cdef Layout *_layouts[BUCKETS]

cdef Py_ssize_t _HEAD = sizeof(PyObject)
cdef Py_ssize_t _BEFORE_SLOTS = (<PyTypeObject *>Record).tp_basicsize


cdef inline size_t _bucket(PyObject *cls) noexcept:
    return (<uintptr_t>cls >> 6) % BUCKETS


cdef inline PyObject **_slots(PyObject *instance) noexcept:
    return <PyObject **>(<char *>instance + _BEFORE_SLOTS)


cdef class Maker:
    """Makes instances of one generated class whose fields are all None, for a decoder to fill."""

    def __cinit__(self, type cls):
        cdef Py_ssize_t fields = len(cls.spec.fields)
        self._cls = cls
        self._model = cls.__new__(cls)
        self._fields = fields
        self._size = (<PyTypeObject *>cls).tp_basicsize
        if self._size != _BEFORE_SLOTS + fields * <Py_ssize_t>sizeof(PyObject *):
            raise TypeError(f"{cls.__name__} holds more than its fields")

    cdef object make(self):
        made = PyType_GenericAlloc(self._cls, 0)
        memcpy(<char *><PyObject *>made + _HEAD, <char *><PyObject *>self._model + _HEAD, <size_t>(self._size - _HEAD))
        refer_to_none(self._fields)
        return made


cdef int quicken(type cls) except -1:
    """Let calls of a generated class be served by `_construct`."""
    cdef Layout *layout
    cdef Py_ssize_t place = 0
    attributes = [intern(field.attribute) for field in cls.spec.fields]
    if len(attributes) > MOST_FIELDS:
        return 0
    layout = <Layout *>PyMem_Calloc(1, sizeof(Layout))
    if layout is NULL:
        raise MemoryError
    model = cls()
    layout.cls = <PyObject *>cls
    layout.size = (<PyTypeObject *>cls).tp_basicsize
    layout.fields = len(attributes)
    layout.model = <PyObject *>model
    for slot, attribute in enumerate(attributes):
        layout.names[slot] = <PyObject *>attribute
        layout.table[slot] = type(getattr(model, attribute)) is dict
        if attribute in cls.__match_args__:
            layout.place[layout.positional] = <unsigned char>slot
            layout.positional += 1
    Py_INCREF(cls)
    Py_INCREF(model)
    Py_INCREF(attributes)
    layout.next = _layouts[_bucket(layout.cls)]
    _layouts[_bucket(layout.cls)] = layout
    (<CallableType *>cls).tp_vectorcall = _construct
    return 0


cdef object _construct(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """An instance from arguments as the interpreter has them."""
    cdef PyObject *values[MOST_FIELDS]
    cdef Py_ssize_t count = PyVectorcall_NARGS(nargsf)
    cdef Layout *layout = _layouts[_bucket(cls)]
    while layout is not NULL and layout.cls is not cls:
        layout = layout.next
    if layout is NULL or not _arrange(layout, values, arguments, count, keywords):
        return _call_init(cls, arguments, count, keywords)
    made = PyType_GenericAlloc(<type>cls, 0)
    memcpy(<char *><PyObject *>made + _HEAD, <char *>layout.model + _HEAD, <size_t>(_BEFORE_SLOTS - _HEAD))
    _fill(layout, _slots(<PyObject *>made), values)
    return made


cdef bint _arrange(
    Layout *layout, PyObject **values, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords
) noexcept:
    """Sort arguments by slot, NULL for those not given; False for a call that `__init__` should judge."""
    cdef Py_ssize_t at, slot = 0, tried
    cdef PyObject *name
    if count > layout.positional:
        return False
    for at in range(layout.fields):
        values[at] = NULL
    for at in range(count):
        values[layout.place[at]] = arguments[at]
    if keywords is NULL:
        return True
    for at in range(PyTuple_GET_SIZE(keywords)):
        name = PyTuple_GET_ITEM(keywords, at)
        tried = 0
        while layout.names[slot] is not name:  # keywords mostly come in the order of the fields
            slot = slot + 1 if slot + 1 < layout.fields else 0
            tried += 1
            if tried > layout.fields:
                return False
        if values[slot] is not NULL:
            return False
        values[slot] = arguments[count + at]
    return True


cdef int _fill(Layout *layout, PyObject **slots, PyObject **values) except -1:
    cdef PyObject **defaults = _slots(layout.model)
    cdef PyObject *value
    cdef Py_ssize_t at
    for at in range(layout.fields):
        value = values[at] if values[at] is not NULL else defaults[at]
        if layout.table[at] and (values[at] is NULL or value is <PyObject *>None):
            table = {}
            value = <PyObject *>table
        Py_INCREF(<object>value)
        slots[at] = value
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
