from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint32_t, uintptr_t

from .slots.layout_c cimport Heir
from .routines_c cimport Routines, WriteRoutine, Writing
from .writer_c cimport WriterRules

cdef enum:
    MOST_STEPS = 32  # no layout of more fields has routines
    BEFORE_ARGUMENTS = 11  # octets of a method frame before its first argument
    BEFORE_FLAGS = 19  # of a header frame before its property flags
    BEFORE_PROPERTIES = 21  # before its first property
    ROOM_OF_HEAD = 24  # what there has to be of it before a frame is begun


cdef struct Step:
    unsigned short flag  # of a property; of a bit, its mask
    unsigned char kind  # one of fields.pxd


cdef struct Form:
    PyObject *cls
    PyObject **names  # of its fields, then `validate`: in a tuple that `Forms` holds
    Heir heir
    int class_id
    unsigned char octets[ROOM_OF_HEAD]  # these, for channel 0 and with no size
    Py_ssize_t before  # octets of an instance before its slots, which lie in a row
    WriteRoutine write
    bint is_method
    bint content  # whether it is a method that a content follows
    Form *header  # that of the properties of its class, once it was looked for
    int count
    Step steps[MOST_STEPS]


cdef struct Kept:  # properties that are written as they came
    const unsigned char *octets  # their flags first
    Py_ssize_t size
    int class_id


cdef struct Span:
    unsigned short start  # where a field is in the octets of all fields
    unsigned short end


cdef struct Prepared:
    Form *method
    Form *header
    unsigned int number  # of the channel
    long long limit  # of a payload
    const unsigned char *octets  # the frames of a message without a body
    Py_ssize_t header_at  # where the second of them begins
    uint32_t flags
    Span arguments[MOST_STEPS + 1]
    Span properties[MOST_STEPS + 1]


cdef struct Changes:
    uint32_t given_arguments  # as bits
    uint32_t given_properties
    PyObject *arguments[MOST_STEPS]
    PyObject *properties[MOST_STEPS]


cdef inline size_t hash_of(void *cls) noexcept:
    return <uintptr_t>cls >> 6


cdef class Forms:
    cdef list _classes
    cdef list _names
    cdef Form **_entries
    cdef size_t _mask

    cdef int _enter(self, type cls, Routines routines) except -1
    cdef Form *of_class(self, int class_id) noexcept
    cdef Form *inherited(self, PyTypeObject *cls) noexcept
    cdef object frame(self, object channel, object method, long long limit, WriterRules rules)
    cdef object header(
        self, object channel, object properties, object body_size, object weight, long long limit, WriterRules rules
    )
    cdef object message(
        self, PyObject *channel, PyObject *method, PyObject *properties, PyObject *body, long long limit,
        PyObject *rules, PyObject *contents, const Kept *kept,
    )
    cdef unsigned char *put_message(
        self, unsigned char *p, const unsigned char *end, PyObject *item, long long limit, WriterRules rules,
        Forms contents, const Kept *kept,
    ) noexcept

    cdef inline Form *find(self, PyTypeObject *cls) noexcept:
        """Return the form of a class; NULL if it has none."""
        cdef size_t at = hash_of(cls) & self._mask
        while self._entries[at] is not NULL and self._entries[at].cls is not <PyObject *>cls:
            at = (at + 1) & self._mask
        return self._entries[at]

    cdef inline Form *form_of(self, PyObject *record) noexcept:
        """Return the form of the class of a record; NULL if the slow path must write it."""
        cdef Form *form = self.find(record.ob_type)
        return form if form is not NULL else self.inherited(record.ob_type)


cdef object changed_message(Prepared *prepared, Changes *changes, object body, WriterRules rules)
cdef bint emit_by_call(WriterRules rules, Writing *w, int kind, int place) noexcept
cdef bint emit_if_by_call(WriterRules rules, Writing *w, int kind, int place) noexcept
