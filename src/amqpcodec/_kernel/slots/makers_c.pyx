# cython: cdivision=True
"""Instances of generated classes for decoders to fill; of the compiled build only.

Cython makes an instance by one call for each of its four classes, and frees it by as many. Here one function does
either, and the memory of instances that are gone serves the next ones. Decoders make and free the same few
classes all the time: that is a sixth of what a delivery costs.
"""

cimport cython

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uintptr_t

from . import ON
from ..routines_c cimport Routines

cdef extern from *:
    """
    static inline int amqpcodec_is_static(PyTypeObject *cls) { return !PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE); }

    /* An instance that the collector does not know yet, and whose slots are not set. */
    static inline PyObject *amqpcodec_instance(PyTypeObject *cls, int collected) {
        return collected ? PyObject_GC_New(PyObject, cls) : PyObject_New(PyObject, cls);
    }
    """
    bint is_static "amqpcodec_is_static"(PyTypeObject *cls) noexcept
    PyObject *instance "amqpcodec_instance"(PyTypeObject *cls, bint collected) noexcept

cdef extern from "Python.h":
    ctypedef void (*destructor)(PyObject *) noexcept
    ctypedef void (*freefunc)(void *) noexcept
    ctypedef PyObject *(*allocfunc)(PyTypeObject *, Py_ssize_t) noexcept
    ctypedef struct ClassType "PyTypeObject":
        allocfunc tp_alloc
        destructor tp_dealloc
        freefunc tp_free
    bint PyType_IS_GC(PyTypeObject *cls) noexcept
    void PyObject_GC_UnTrack(void *instance) noexcept

cdef enum:
    BUCKETS = 256

cdef bint _ON = ON

# By address of the class. None is ever removed.
cdef Maker *_makers[BUCKETS]


cdef inline size_t _bucket(PyTypeObject *cls) noexcept:
    return (<uintptr_t>cls >> 6) % BUCKETS


cdef Maker *maker_at(PyTypeObject *cls) noexcept:
    """Return the maker of a class; NULL if it has none yet."""
    cdef Maker *maker = _makers[_bucket(cls)]
    while maker is not NULL and maker.cls is not cls:
        maker = maker.next
    return maker


cdef Maker *maker_of(type cls, Py_ssize_t head, Py_ssize_t count) except NULL:
    """Return the maker of a class: one for each, for good.

    Args:
        cls: a class whose instances have slots in a row.
        head: how many octets are before them.
        count: how many there are.
    """
    cdef Maker *maker = maker_at(<PyTypeObject *>cls)
    if maker is not NULL:
        return maker
    maker = <Maker *>PyMem_Calloc(1, sizeof(Maker))
    if maker is NULL:
        raise MemoryError
    Py_INCREF(cls)
    maker.cls = <PyTypeObject *>cls
    maker.head = head
    maker.collected = PyType_IS_GC(maker.cls)
    maker.content = -1
    maker.fields = <int>count
    maker.next = _makers[_bucket(maker.cls)]
    _makers[_bucket(maker.cls)] = maker
    if _ON and is_static(maker.cls):
        (<ClassType *>cls).tp_dealloc = _free
    return maker


@cython.final
cdef class MakerTable:
    """The makers of generated classes by number: a hash table with open addressing, at most half full, so that a
    look-up makes no Python object."""

    def __cinit__(self, classes, dict routines):
        cdef uint32_t size = 8
        cdef uint32_t at
        while size < 2 * <uint32_t>len(classes):
            size *= 2
        self._mask = size - 1
        self._entries = <Entry *>PyMem_Calloc(size, sizeof(Entry))
        if self._entries is NULL:
            raise MemoryError
        for index, cls in classes.items():
            at = place_of(index) & self._mask
            while self._entries[at].maker is not NULL:
                at = (at + 1) & self._mask
            self._entries[at].maker = _maker_of_record(cls, routines[cls])
            self._entries[at].index = index

    def __dealloc__(self):
        PyMem_Free(self._entries)


cdef Py_ssize_t octets_before_slots(type cls, Py_ssize_t fields) except -1:
    """The bases of such a class have no fields, and the class has nothing else."""
    cdef Py_ssize_t before = (<PyTypeObject *>cls).tp_base.tp_basicsize
    if (<PyTypeObject *>cls).tp_basicsize != before + fields * <Py_ssize_t>sizeof(PyObject *):
        raise TypeError(f"{cls.__name__} does not hold its fields alone")
    return before


cdef Maker *_maker_of_record(type cls, Routines routines) except NULL:
    """Return the maker of a generated class, with the routine that fills its instances."""
    cdef Py_ssize_t fields = len(cls.spec.fields)
    cdef Maker *maker = maker_of(cls, octets_before_slots(cls, fields), fields)
    if getattr(cls.spec, "content", False):
        maker.content = cls.spec.class_id
    if routines is not None:
        maker.read = <void *>routines.read
    return maker


cdef object make(Maker *maker):
    """Return an instance whose fields are all None."""
    cdef PyObject *made = take(maker)
    if made is NULL:
        raise MemoryError
    empty(maker, made, 0)
    hand_out(maker, made)
    record = <object>made
    Py_DECREF(record)
    return record


cdef void empty(Maker *maker, PyObject *made, Py_ssize_t first) noexcept:
    """Make None of the slots from the first one on."""
    cdef PyObject **slots = slots_of(maker, made)
    cdef Py_ssize_t at
    for at in range(first, maker.fields):
        slots[at] = <PyObject *>None
    refer_to_none(maker.fields - first)


cdef PyObject *allocate(Maker *maker) noexcept:
    """Return new memory for an instance."""
    cdef PyObject *made
    if _ON:
        return instance(maker.cls, maker.collected)
    made = (<ClassType *>maker.cls).tp_alloc(maker.cls, 0)
    if made is not NULL and maker.collected:
        PyObject_GC_UnTrack(made)
    return made


cdef void _free(PyObject *made) noexcept:
    """Let go of what an instance refers to, and keep its memory for the next one."""
    cdef PyTypeObject *cls = made.ob_type
    cdef Maker *maker = maker_at(cls)
    cdef PyObject **slots
    cdef int at, nones = 0
    while maker is NULL:  # of a subclass
        cls = cls.tp_base
        maker = maker_at(cls)
    if maker.collected:
        PyObject_GC_UnTrack(made)
    slots = slots_of(maker, made)
    for at in range(maker.fields):
        if slots[at] is <PyObject *>None:
            nones += 1
        else:
            Py_XDECREF(slots[at])
    refer_to_none(-nones)
    if maker.count < RECYCLED and made.ob_type is maker.cls:
        maker.idle[maker.count] = made
        maker.count += 1
    else:
        (<ClassType *>made.ob_type).tp_free(made)
