from cpython.object cimport PyObject, PyTypeObject

from .layout_c cimport MOST_FIELDS, refer_to_none

cdef extern from *:
    """
    /* Without a global lock, threads would get in each other's way at memory that is kept for the next instance. */
    #ifdef Py_GIL_DISABLED
    #define AMQPCODEC_RECYCLED 0
    #else
    #define AMQPCODEC_RECYCLED 16
    #endif
    """
    enum:
        RECYCLED "AMQPCODEC_RECYCLED"

cdef extern from "Python.h":
    PyObject *PyObject_Init(PyObject *memory, PyTypeObject *cls) noexcept
    void PyObject_GC_Track(void *instance) noexcept


cdef struct Maker:
    PyTypeObject *cls  # lives as long as the process, as does all below
    Maker *next
    PyObject *model  # what instances begin as
    Py_ssize_t size
    Py_ssize_t head  # octets before the slots, which lie in a row
    int fields
    bint collected  # the garbage collector knows the instances
    bint plain  # the fast path knows all kinds
    bint optional  # they are properties: flags say which are there
    unsigned int flags  # of the properties that there are
    unsigned char kinds[MOST_FIELDS]
    unsigned char bits[MOST_FIELDS]  # of a bit: its place in its octet
    PyObject *idle[RECYCLED + 1]  # memory of instances that are gone
    int count


cdef Maker *maker_of(type cls) except NULL
cdef object make(Maker *maker)
cdef PyObject *allocate(Maker *maker) noexcept


cdef inline PyObject **slots_of(Maker *maker, PyObject *instance) noexcept:
    return <PyObject **>(<char *>instance + maker.head)


cdef inline PyObject *take(Maker *maker) noexcept:
    """Return memory for an instance, which the collector does not know yet, or NULL with an exception. All fields are
    None, and the references to it are not counted."""
    cdef PyObject *made
    cdef void **target
    cdef void **source
    cdef Py_ssize_t at
    if maker.count > 0:
        maker.count -= 1
        made = PyObject_Init(maker.idle[maker.count], maker.cls)
    else:
        made = allocate(maker)
        if made is NULL:
            return NULL
    target = <void **>(made + 1)
    source = <void **>(maker.model + 1)
    for at in range((maker.size - <Py_ssize_t>sizeof(PyObject)) // <Py_ssize_t>sizeof(void *)):
        target[at] = source[at]
    return made


cdef inline void hand_out(Maker *maker, PyObject *made, Py_ssize_t filled) noexcept:
    """Finish an instance of which so many fields are filled."""
    refer_to_none(maker.fields - filled)
    if maker.collected:
        PyObject_GC_Track(made)
