# cython: cdivision=True
"""Instances of classes whose fields lie at known places in memory; of the compiled build only.

A generated class is a C struct: the head of an object, and one slot for each field in wire order. A class with
`__slots__`, which another library may have, is not much else. Knowing the offsets, an instance is made by
copying the memory of another and filling its slots. `type.__call__` packs keywords into a dict, which
`__init__` takes apart again: `Basic.Publish(exchange=..., routing_key=...)` takes 182 ns that way, and 45 ns
this way (CPython 3.11). The tests of the codec hold this on every CPython, and on a debug build (`make test-
debug`).

`__init__` of the pure build stays what counts. It is left out here: `put_fields` serves subclasses, and any call that
is served by neither is judged by that function.
"""

cimport cython

from sys import intern

from cpython.mem cimport PyMem_Calloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from ..._records import TwinSignature, arguments_error, default_of
from . import ON
from .makers_c cimport hand_out, maker_of, octets_before_slots, refer_to_none, take
from .sharing_c import share

cdef extern from *:
    """
    /* Another thread that finds a pointer here finds whole what it points to. */
    static inline void amqpcodec_publish(void **place, void *value) {
    #if defined(Py_GIL_DISABLED) && !defined(_MSC_VER)
        __atomic_store_n(place, value, __ATOMIC_RELEASE);
    #else
        *place = value;
    #endif
    }
    """
    void publish "amqpcodec_publish"(void **place, void *value) noexcept

cdef extern from "structmember.h":
    enum:
        T_OBJECT_EX
        READONLY
    ctypedef struct PyMemberDef:
        const char *name
        int type
        Py_ssize_t offset
        int flags

cdef extern from "Python.h":
    ctypedef struct Wrapper "struct wrapperbase":
        pass
    ctypedef int (*setattrofunc)(PyObject *, PyObject *, PyObject *) except -1
    ctypedef struct ClassType "PyTypeObject":
        vectorcallfunc tp_vectorcall
        Py_ssize_t tp_vectorcall_offset
        unsigned long tp_flags
        PyObject *tp_dict
        setattrofunc tp_setattro
        void *tp_getattro
        void *tp_iternext
        object (*tp_call)(object, object, PyObject *)
    enum:
        VECTORCALL "Py_TPFLAGS_HAVE_VECTORCALL"
        METHOD_DESCRIPTOR "Py_TPFLAGS_METHOD_DESCRIPTOR"
    ctypedef struct MemberDescriptor "PyMemberDescrObject":
        PyMemberDef *d_member
    ctypedef object (*getter)(PyObject *, void *)
    ctypedef int (*setter)(PyObject *, PyObject *, void *) except -1
    ctypedef struct PyGetSetDef:
        const char *name
        getter get
        setter set
        void *closure
    ctypedef struct WrapperDescriptor "PyWrapperDescrObject":
        Wrapper *d_base
    object PyDescr_NewGetSet(type cls, PyGetSetDef *definition)
    object PyDescr_NewMember(type cls, PyMemberDef *definition)
    object PyType_GenericAlloc(PyTypeObject *cls, Py_ssize_t items)
    object PyDescr_NewWrapper(type cls, Wrapper *base, void *function)
    PyTypeObject *PyDescr_TYPE(PyObject *descriptor) noexcept
    PyTypeObject PyMemberDescr_Type
    PyObject *_PyType_Lookup(PyTypeObject *cls, PyObject *name) noexcept
    bint PyObject_TypeCheck(PyObject *instance, PyTypeObject *cls) noexcept
    int PyObject_GenericSetAttr(PyObject *instance, PyObject *name, PyObject *value) except -1
    void PyType_Modified(type cls) noexcept
    const char *PyUnicode_AsUTF8(object text) except NULL
    bint PyObject_GC_IsTracked(object instance)
    void PyObject_GC_UnTrack(void *instance) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items) noexcept
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t at) noexcept

cdef enum:
    BUCKETS = 256

cdef bint _ON = ON
cdef str _SPEC = intern("spec")  # says how fields are written

# By address of the class. An entry is put in front once it is whole, and never removed: should two threads
# do that at once, one entry may be lost, and its class is then constructed the ordinary way.
cdef Layout *_layouts[BUCKETS]

cdef Py_ssize_t _HEAD = sizeof(PyObject)


cdef struct Described:
    PyObject *cls
    Described *next
    PyObject *name  # what errors call the constructor
    vectorcallfunc construct  # what served calls before; NULL for `type.__call__`


# By address of the class, as `_layouts`.
cdef Described *_described[BUCKETS]


cdef inline size_t _bucket(PyObject *cls) noexcept:
    return (<uintptr_t>cls >> 6) % BUCKETS


cdef inline size_t _name_bucket(PyObject *name) noexcept:
    return (<uintptr_t>name >> 4) % NAME_BUCKETS


cdef inline Layout *_layout_of(PyObject *cls) noexcept:
    cdef Layout *layout = _layouts[_bucket(cls)]
    while layout is not NULL and layout.cls is not cls:
        layout = layout.next
    return layout


cdef inline object _allocated(Layout *layout):
    """An instance whose slots are not set yet."""
    cdef PyObject *taken
    if layout.maker is NULL:
        return PyType_GenericAlloc(<PyTypeObject *>layout.cls, 0)
    taken = take(layout.maker)
    if taken is NULL:
        raise MemoryError
    made = <object>taken
    Py_DECREF(made)
    return made


cdef inline object _copy_memory(Layout *layout):
    """An instance with the slots of the model, without counting the references in them."""
    made = _allocated(layout)
    memcpy(<char *><PyObject *>made + _HEAD, <char *>layout.model + _HEAD, <size_t>(layout.size - _HEAD))
    if layout.maker is not NULL:
        hand_out(layout.maker, <PyObject *>made)
    return made


cdef int add_attributes(type cls, list names, Py_ssize_t offset) except -1:
    """Make the slots of a class, which begin at an offset in a row, attributes.

    They are what `__slots__` makes, because the interpreter reads such a slot in place, without a call. But it
    could leave an empty slot behind, and our code expects an object there. So the attributes themselves are
    read-only, and `_set_attribute` sets them for the class. Without that they are what Cython makes of a public
    attribute: a pair of functions.
    """
    for name in names:
        put_attribute(cls, name, _member(cls, name, offset) if _ON else _pair(cls, name, offset))
        offset += <Py_ssize_t>sizeof(PyObject *)
    Py_INCREF(names)  # the definitions refer to their memory, and live as long as the class: for good
    if not _ON:
        return 0
    for name in ("__setattr__", "__delattr__"):
        wrapper = getattr(object, name)
        put_attribute(
            cls, name, PyDescr_NewWrapper(cls, (<WrapperDescriptor *>wrapper).d_base, <void *>_set_attribute)
        )
    (<ClassType *>cls).tp_setattro = _set_attribute
    return 0


cdef int put_attribute(type cls, str name, object attribute) except -1:
    """Put an attribute into a class of this package, before others know it, as Cython does with those that a class
    statement has."""
    (<dict>(<ClassType *>cls).tp_dict)[name] = attribute
    PyType_Modified(cls)
    return 0


cdef object _member(type cls, str name, Py_ssize_t offset):
    """Return the descriptor of a slot."""
    cdef PyMemberDef *definition = <PyMemberDef *>PyMem_Calloc(1, sizeof(PyMemberDef))
    if definition is NULL:
        raise MemoryError
    definition.name = PyUnicode_AsUTF8(name)
    definition.type = T_OBJECT_EX
    definition.offset = offset
    definition.flags = READONLY
    return PyDescr_NewMember(cls, definition)


cdef object _pair(type cls, str name, Py_ssize_t offset):
    """Return a descriptor that calls `_get` and `_set` for a slot."""
    cdef PyGetSetDef *definition = <PyGetSetDef *>PyMem_Calloc(1, sizeof(PyGetSetDef))
    if definition is NULL:
        raise MemoryError
    definition.name = PyUnicode_AsUTF8(name)
    definition.get = _get
    definition.set = _set
    definition.closure = <void *>offset
    return PyDescr_NewGetSet(cls, definition)


cdef object _get(PyObject *instance, void *offset):
    with cython.critical_section(<object>instance):
        return <object>(<PyObject **>(<char *>instance + <Py_ssize_t>offset))[0]


cdef int _set(PyObject *instance, PyObject *value, void *offset) except -1:
    """Set or delete an attribute; a slot that is deleted is None."""
    cdef PyObject **place = <PyObject **>(<char *>instance + <Py_ssize_t>offset)
    cdef PyObject *old
    if value is NULL:
        value = <PyObject *>None
    Py_INCREF(<object>value)
    with cython.critical_section(<object>instance):
        old = place[0]
        publish(<void **>place, value)
    Py_XDECREF(old)
    return 0


cdef int _set_attribute(PyObject *instance, PyObject *name, PyObject *value) except -1:
    """Set or delete an attribute of a class that has `_member`s."""
    cdef MemberDescriptor *found = <MemberDescriptor *>_PyType_Lookup(instance.ob_type, name)
    if found is NULL or (<PyObject *>found).ob_type is not &PyMemberDescr_Type or not _is_ours(found, instance):
        return PyObject_GenericSetAttr(instance, name, value)
    return _set(instance, value, <void *>found.d_member.offset)


cdef inline bint _is_ours(MemberDescriptor *found, PyObject *instance) noexcept:
    """Return whether `add_attributes` made it, for this instance. Classes of callers may have other slots."""
    return (
        found.d_member.flags == READONLY
        and (<ClassType *>PyDescr_TYPE(<PyObject *>found)).tp_setattro is _set_attribute
        and PyObject_TypeCheck(instance, PyDescr_TYPE(<PyObject *>found))
    )


cdef int prepare(type cls) except -1:
    """Give a generated class the attributes of its fields, and let calls of it be served by `_construct`."""
    cdef Layout *layout
    cdef Py_ssize_t before = octets_before_slots(cls, len(cls.spec.fields))
    attributes = [intern(field.attribute) for field in cls.spec.fields]
    offsets = [before + at * <Py_ssize_t>sizeof(PyObject *) for at in range(len(attributes))]
    if not all([attribute in vars(cls) for attribute in attributes]):
        add_attributes(cls, attributes, before)
    if not _ON or len(attributes) > MOST_FIELDS or (<ClassType *>cls).tp_vectorcall is _construct:
        return 0
    model = cls.__new__(cls)
    for field in cls.spec.fields:
        setattr(model, field.attribute, default_of(cls.spec, field))
    layout = lay_out(cls, attributes, offsets, model)
    for at, attribute in enumerate(attributes):
        if type(getattr(model, attribute)) is dict:
            layout.table[at] = True
            layout.finish = _make_tables
        if attribute in cls.__match_args__:
            layout.place[layout.positional] = <unsigned char>at
            layout.positional += 1
    if layout.positional == layout.fields and layout.finish is NULL:
        layout.in_full = layout.fields
    layout.maker = maker_of(cls, before, layout.fields)
    share([getattr(model, attribute) for attribute in attributes])  # every call refers to the defaults
    serve(layout)
    return 0


cdef Layout *lay_out(type cls, list names, list offsets, object model) except NULL:
    """The layout of a class by its fields' names and offsets: one for each class, for good. No argument may be
    given by position until `place` and `positional` say so."""
    cdef Layout *layout = _layout_of(<PyObject *>cls)
    if layout is not NULL:
        return layout
    if len(names) > MOST_FIELDS:
        raise ValueError(f"{cls.__name__} has more than {MOST_FIELDS} fields")
    layout = <Layout *>PyMem_Calloc(1, sizeof(Layout))
    if layout is NULL:
        raise MemoryError
    layout.cls = <PyObject *>cls
    layout.model = <PyObject *>model
    layout.size = (<PyTypeObject *>cls).tp_basicsize
    layout.fields = len(names)
    layout.all_none = True
    layout.in_full = -1
    for field, (name, offset) in enumerate(zip(names, offsets)):
        layout.offset[field] = <unsigned short>offset
        _enter_name(layout, <PyObject *>name, field)
        layout.all_none &= slot(layout, layout.model, field)[0] is <PyObject *>None
    for kept in (cls, model, names):
        Py_INCREF(kept)
    if PyObject_GC_IsTracked(model):
        PyObject_GC_UnTrack(<void *>model)  # or `gc.get_objects` hands it to who may change it
    layout.next = _layouts[_bucket(layout.cls)]
    publish(<void **>&_layouts[_bucket(layout.cls)], layout)
    return layout


cdef void serve(Layout *layout) noexcept:
    """Let calls of the class be served by `_construct`."""
    serve_by(<type>layout.cls, _construct)


cdef void serve_by(type cls, vectorcallfunc construct) noexcept:
    """Let calls of a class be served by a function; NULL leaves them to the interpreter again."""
    if _ON:
        (<ClassType *>cls).tp_vectorcall = construct


cdef void call_by_vector(type cls, Py_ssize_t offset) noexcept:
    """Let instances of a class be called by the function that lies at an offset in each."""
    (<ClassType *>cls).tp_vectorcall_offset = offset
    (<ClassType *>cls).tp_flags |= VECTORCALL | METHOD_DESCRIPTOR


cdef void _enter_name(Layout *layout, PyObject *name, Py_ssize_t field) noexcept:
    cdef size_t at = _name_bucket(name)
    while layout.field_of[at]:
        at = (at + 1) % NAME_BUCKETS
    layout.field_of[at] = <unsigned char>(field + 1)
    layout.names[field] = name


cdef inline Py_ssize_t _find_name(Layout *layout, PyObject *name) noexcept:
    """The field of a keyword, or -1. Names in source code are interned: one address each."""
    cdef size_t at = _name_bucket(name)
    cdef Py_ssize_t field
    while layout.field_of[at]:
        field = layout.field_of[at] - 1
        if layout.names[field] is name:
            return field
        at = (at + 1) % NAME_BUCKETS
    return -1


cdef object _construct(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """An instance from arguments as the interpreter has them."""
    cdef Layout *layout = _layout_of(cls)
    cdef Py_ssize_t at
    if layout is NULL or keywords is not NULL or PyVectorcall_NARGS(nargsf) != layout.in_full:
        return _otherwise(cls, arguments, nargsf, keywords)
    made = _allocated(layout)
    for at in range(layout.in_full):
        Py_INCREF(<object>arguments[at])
        slot(layout, <PyObject *>made, layout.place[at])[0] = arguments[at]
    hand_out(layout.maker, <PyObject *>made)
    return made


cdef object _construct_in_part(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """Make an instance from any arguments."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(nargsf)
    cdef Layout *layout = _layout_of(cls)
    if layout is not NULL and count <= layout.positional:
        made = _copy_memory(layout)
        if _put(layout, <PyObject *>made, arguments, count, keywords):
            if layout.finish is NULL or layout.finish(layout, <PyObject *>made):
                return made
    return _call_described(cls, arguments, nargsf, keywords)


cdef vectorcallfunc _otherwise = _construct_in_part  # not called by its name, or it is made part of `_construct`


cdef object copy_model(Layout *layout):
    """An instance that holds what the model holds."""
    cdef Py_ssize_t at
    made = _copy_memory(layout)
    if layout.all_none:
        refer_to_none(layout.fields)
        return made
    for at in range(layout.fields):
        Py_INCREF(<object>slot(layout, <PyObject *>made, at)[0])
    return made


cdef void set_slot(PyObject **slot, PyObject *value) noexcept:
    """Put a value in the place of another."""
    cdef PyObject *old = slot[0]
    Py_INCREF(<object>value)
    slot[0] = value
    Py_XDECREF(old)  # a finalizer may have deleted it


cdef bint _put(
    Layout *layout, PyObject *made, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords
) noexcept:
    """Put each argument into its slot of a copy of the model, and count the references in the others; False for a
    call that `__init__` should judge."""
    cdef Py_ssize_t at, field
    cdef Py_ssize_t named = 0 if keywords is NULL else PyTuple_GET_SIZE(keywords)
    cdef uint32_t given = 0
    cdef bint known = True
    for at in range(count + named):
        field = layout.place[at] if at < count else _find_name(layout, PyTuple_GET_ITEM(keywords, at - count))
        if field < 0 or given >> field & 1:
            known = False
            break
        given |= <uint32_t>1 << field
        Py_INCREF(<object>arguments[at])
        slot(layout, made, field)[0] = arguments[at]
    if layout.all_none and known:
        refer_to_none(layout.fields - count - named)
        return True
    for at in range(layout.fields):
        if not given >> at & 1:
            Py_INCREF(<object>slot(layout, made, at)[0])
    return known


cdef int _make_tables(Layout *layout, PyObject *made) except -1:
    """A new dict where none was given: that of the model would be shared."""
    cdef PyObject **place
    cdef Py_ssize_t at
    for at in range(layout.fields):
        place = slot(layout, made, at)
        if layout.table[at] and (place[0] is slot(layout, layout.model, at)[0] or place[0] is <PyObject *>None):
            table = {}
            set_slot(place, <PyObject *>table)
    return 1


cdef bint put_fields(object record, tuple positional, dict named) except -1:
    """Set the fields of an instance of a subclass; False where `__init__` of the pure build has to judge the call."""
    cdef PyTypeObject *cls = (<PyObject *>record).ob_type
    cdef PyTypeObject *base = cls
    cdef Layout *layout = _layout_of(<PyObject *>base)
    cdef PyObject *values[MOST_FIELDS]
    cdef Py_ssize_t at, field
    while layout is NULL and base.tp_base is not NULL:
        base = base.tp_base
        layout = _layout_of(<PyObject *>base)
    if layout is NULL or len(positional) > layout.positional:
        return False
    if cls is not base:
        if (<ClassType *>cls).tp_setattro is not (<ClassType *>base).tp_setattro:
            return False
        if not leaves_fields(&layout.heir, cls, base, layout.names, layout.fields):
            return False
    memset(values, 0, sizeof(values))
    for at in range(len(positional)):
        values[layout.place[at]] = PyTuple_GET_ITEM(<PyObject *>positional, at)
    for name, value in named.items():
        field = _find_name(layout, <PyObject *>name)
        if field < 0 or values[field] is not NULL:
            return False
        values[field] = <PyObject *>value  # which `named` holds
    for field in range(layout.fields):
        if layout.table[field] and (values[field] is NULL or values[field] is <PyObject *>None):
            table = {}
            set_slot(slot(layout, <PyObject *>record, field), <PyObject *>table)
        else:
            set_slot(
                slot(layout, <PyObject *>record, field),
                slot(layout, layout.model, field)[0] if values[field] is NULL else values[field],
            )
    return True


cdef bint leaves_fields(
    Heir *heir, PyTypeObject *cls, PyTypeObject *base, PyObject **names, Py_ssize_t count
) noexcept:
    """Return whether a subclass has these attributes from its base, and is asked for them as that is."""
    cdef uint64_t version = type_version(<PyObject *>cls)
    if version != 0 and heir.version == version and heir.cls is cls:
        return True
    if not _has_from(cls, base, names, count):
        return False
    heir.cls = cls
    heir.version = type_version(<PyObject *>cls)
    return True


cdef bint _has_from(PyTypeObject *cls, PyTypeObject *base, PyObject **names, Py_ssize_t count) noexcept:
    cdef Py_ssize_t at
    if (<ClassType *>cls).tp_getattro is not (<ClassType *>base).tp_getattro:
        return False
    if _PyType_Lookup(cls, <PyObject *>_SPEC) is not _PyType_Lookup(base, <PyObject *>_SPEC):
        return False
    for at in range(count):
        if _PyType_Lookup(cls, names[at]) is not _PyType_Lookup(base, names[at]):
            return False
    return True


cdef object call_init(PyObject *cls, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords):
    """Call the class as `type.__call__` does, with its errors for wrong arguments."""
    positional, named = _taken_apart(arguments, count, keywords)
    return (<ClassType *>type).tp_call(<object>cls, positional, NULL if keywords is NULL else <PyObject *>named)


cdef tuple _taken_apart(PyObject *const *arguments, Py_ssize_t count, PyObject *keywords):
    """Arguments as a tuple and a dict."""
    cdef Py_ssize_t at
    positional = tuple([<object>arguments[at] for at in range(count)])
    named = {}
    if keywords is not NULL:
        for at in range(PyTuple_GET_SIZE(keywords)):
            named[<object>PyTuple_GET_ITEM(keywords, at)] = <object>arguments[count + at]
    return positional, named


cdef int describe_constructor(type cls, str name) except -1:
    """Have errors about wrong arguments name the constructor, and `inspect.signature` know it."""
    cdef Described *described = <Described *>PyMem_Calloc(1, sizeof(Described))
    if described is NULL:
        raise MemoryError
    described.cls = <PyObject *>cls
    described.name = <PyObject *>name
    for kept in (cls, name):
        Py_INCREF(kept)
    if (<ClassType *>cls).tp_vectorcall is not _construct:
        described.construct = (<ClassType *>cls).tp_vectorcall
        (<ClassType *>cls).tp_vectorcall = _call_described
    described.next = _described[_bucket(described.cls)]
    publish(<void **>&_described[_bucket(described.cls)], described)
    return put_attribute(cls, "__signature__", TwinSignature(cls))


cdef int hand_down_step(type cls) except -1:
    """Have Python subclasses of an iterator inherit its step. Cython makes `__next__` a method, which they look up each
    time; this makes it the wrapper that it is of other classes."""
    wrapper = type(iter(())).__next__
    step = PyDescr_NewWrapper(cls, (<WrapperDescriptor *>wrapper).d_base, (<ClassType *>cls).tp_iternext)
    return put_attribute(cls, "__next__", step) if _ON else 0


cdef object _call_described(PyObject *cls, PyObject *const *arguments, size_t nargsf, PyObject *keywords):
    """Construct as before; about wrong arguments, say what Python says of the pure build."""
    cdef Described *described = _described[_bucket(cls)]
    while described is not NULL and described.cls is not cls:
        described = described.next
    if described is NULL:
        return call_init(cls, arguments, PyVectorcall_NARGS(nargsf), keywords)
    try:
        if described.construct is not NULL:
            return described.construct(cls, arguments, nargsf, keywords)
        return call_init(cls, arguments, PyVectorcall_NARGS(nargsf), keywords)
    except TypeError as error:
        if not str(error).startswith("__init__()"):
            raise
        positional, named = _taken_apart(arguments, PyVectorcall_NARGS(nargsf), keywords)
        raise arguments_error(<object>cls, positional, named) or error from None
