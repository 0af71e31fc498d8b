# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path that the compiled build tries first when it writes methods, content headers and messages.

A `Form` says where the fields of a class lie in an instance, and which routine writes those of its layout, through a
pointer into memory whose end is known. No code of a caller is run, so nothing can change meanwhile.

It declines whatever is unusual, by NULL or None, and has then changed nothing: values of other types than a field's
own, subclasses, what does not fit, strict rules, octets beyond the memory at hand. `Writer` then starts over, and
raises all errors.
"""

from sys import intern

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from .civil cimport import_datetime
from .fields import FIELD_KINDS
from .fields cimport BIT_FIELD
from .write_values cimport (
    Py_False, Py_True, PyTuple_GET_ITEM, emit, emit_if, is_bytes, is_int, items_of, put_field, put_octets,
)
from .ints cimport small, unsigned_value
from .slots.layout_c cimport leaves_fields
from .slots.makers_c cimport octets_before_slots
from .octets cimport octet_count, octets_in, put16, put32, put64
from .routines_c cimport MOST_HEAD
from .wire cimport BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD, OVERHEAD

cdef extern from *:
    """
    /* The number of the lowest bit that is set; there is one. */
    static inline int amqpcodec_lowest_bit(uint32_t bits) {
    #if defined(__GNUC__)
        return __builtin_ctz(bits);
    #else
        int at = 0;
        while (!(bits >> at & 1)) at++;
        return at;
    #endif
    }
    """
    int lowest_bit "amqpcodec_lowest_bit"(uint32_t bits) noexcept

import_datetime()

cdef str _CHECK = intern("validate")  # one of a caller may change fields, so it comes before they are written


# -- records

cdef inline PyObject **_slots(Form *form, PyObject *record) noexcept:
    return <PyObject **>(<char *>record + form.before)


cdef inline unsigned char *_end_frame(
    unsigned char *start, unsigned char *p, const unsigned char *end, long long limit
) noexcept:
    """Fill in the size of a frame and end it, where it may be that long."""
    cdef Py_ssize_t size = p - start - ENVELOPE_SIZE
    if p == end or size > limit:
        return NULL
    put32(start + 3, <uint32_t>size)
    p[0] = FRAME_END
    return p + 1


cdef inline unsigned char *_put_method(
    Form *form, unsigned int number, PyObject *method, unsigned char *p, const unsigned char *end, long long limit,
    WriterRules rules,
) noexcept:
    """Write the frame of a method; there is room for its head."""
    cdef unsigned char *start = p
    memcpy(p, form.octets, 16)
    put16(p + 1, number)
    p = form.write(rules, _slots(form, method), p + BEFORE_ARGUMENTS, end)
    return NULL if p is NULL else _end_frame(start, p, end, limit)


cdef inline unsigned char *_put_header_head(
    Form *form, unsigned int number, uint64_t body_size, unsigned char *p
) noexcept:
    """Write a header frame up to the property flags; there is room for it."""
    memcpy(p, form.octets, BEFORE_FLAGS - 8)  # and no more: few properties may be all that follows
    put16(p + 1, number)
    put64(p + BEFORE_FLAGS - 8, body_size)
    return p + BEFORE_FLAGS


cdef inline unsigned char *_put_header(
    Form *form, unsigned int number, PyObject *properties, uint64_t body_size, unsigned char *p,
    const unsigned char *end, long long limit, WriterRules rules,
) noexcept:
    """Write the frame of a content header, of no properties if they are None."""
    cdef unsigned char *start = p
    if end - p < ROOM_OF_HEAD:
        return NULL
    p = _put_header_head(form, number, body_size, p)
    if properties is <PyObject *>None:
        put16(p, 0)
        p += 2
    else:
        p = form.write(rules, _slots(form, properties), p, end)
    return NULL if p is NULL else _end_frame(start, p, end, limit)


cdef inline Py_ssize_t _kept_size(const Kept *kept) noexcept:
    """Return how many octets the header frame of properties has that are kept as octets; none of others."""
    return 0 if kept is NULL else BEFORE_FLAGS + kept.size + 1


cdef inline unsigned char *_put_kept_header(
    Form *form, unsigned int number, const Kept *kept, uint64_t body_size, unsigned char *p
) noexcept:
    """Write the frame of a content header from the octets of its properties; there is room for it."""
    cdef unsigned char *start = p
    p = _put_header_head(form, number, body_size, p)
    put_octets(p, kept.octets, kept.size)
    put32(start + 3, <uint32_t>(kept.size + BEFORE_FLAGS - ENVELOPE_SIZE))
    p[kept.size] = FRAME_END
    return p + kept.size + 1


cdef inline Form *_header_form(Form *form, Forms contents) noexcept:
    """Return the form of the properties that go with a method."""
    if form.header is NULL:
        form.header = contents.of_class(form.class_id)
    return form.header


cdef inline Form *_form_of_content(Form *form, Forms contents, PyObject *properties, const Kept *kept) noexcept:
    """Return the form of the header that goes with a method; NULL if there is none or the properties have another."""
    cdef Form *header
    if form is NULL or not form.content:
        return NULL
    header = _header_form(form, contents)
    if kept is not NULL:
        return header if kept.class_id == form.class_id else NULL
    if properties is <PyObject *>None or header is NULL or header.cls is <PyObject *>properties.ob_type:
        return header
    return header if contents.inherited(properties.ob_type) is header else NULL


cdef inline Py_ssize_t _channel_number(PyObject *channel) noexcept:
    """Return the number of a channel; -1 if that is no ordinary one."""
    cdef Py_ssize_t number = small(<object>channel) if is_int(channel) else -1
    return number if 0 <= number <= 0xFFFF else -1


cdef inline Py_ssize_t _framed_size(Py_ssize_t size, long long limit) noexcept:
    """Return how many octets a body has in frames."""
    if size <= limit:
        return size + OVERHEAD if size else 0
    return size + (size + <Py_ssize_t>limit - 1) // <Py_ssize_t>limit * OVERHEAD


cdef inline void _put_body(
    unsigned char *p, unsigned int number, const unsigned char *octets, Py_ssize_t size, long long limit
) noexcept:
    """Write a body in frames; there is room for `_framed_size`."""
    cdef Py_ssize_t piece
    while size > 0:
        piece = size if size <= limit else <Py_ssize_t>limit
        p[0] = BODY
        put16(p + 1, number)
        put32(p + 3, <uint32_t>piece)
        memcpy(p + ENVELOPE_SIZE, octets, <size_t>piece)
        p[ENVELOPE_SIZE + piece] = FRAME_END
        p += piece + OVERHEAD
        octets += piece
        size -= piece


cdef unsigned char *_put_changed(
    Form *form, const unsigned char *octets, const Span *spans, PyObject **values, uint32_t given,
    unsigned char *p, const unsigned char *end, uint32_t *flags, WriterRules rules,
) noexcept:
    """Write fields that were written before, some of them with other values.

    Args:
        form: of their class.
        octets: the fields as they were written.
        spans: where each is in them, a bit after its octet; then where all of them end.
        values: by field, those that are other ones.
        given: of which fields there are such, as bits.
        p, end: where to.
        flags: those of the properties that were there, and then of those that are.
        rules: those of the encoder.
    """
    cdef int at
    cdef int done = 0
    cdef Py_ssize_t size
    cdef Step *step
    while True:
        at = lowest_bit(given) if given else form.count
        given &= given - 1
        size = spans[at].start - done
        if end - p < size:
            return NULL
        if size:
            put_octets(p, octets + done, size)
            p += size
        if at == form.count:
            return p
        step = &form.steps[at]
        if step.kind == BIT_FIELD:
            if values[at] is Py_True:
                (p - 1)[0] |= <unsigned char>step.flag
            elif values[at] is Py_False:
                (p - 1)[0] &= ~<unsigned char>step.flag
            else:
                return NULL
        elif values[at] is not <PyObject *>None:
            flags[0] |= step.flag
            p = put_field(p, end, step.kind, values[at], rules)
            if p is NULL:
                return NULL
        elif form.is_method:
            return NULL
        else:
            flags[0] &= ~<uint32_t>step.flag
        done = spans[at].end


cdef object changed_message(Prepared *prepared, Changes *changes, object body, WriterRules rules):
    """Return all frames of a message of which some fields have other values than before, or None."""
    cdef unsigned char octets[MOST_HEAD]
    cdef unsigned char *p = octets
    cdef unsigned char *end = octets + MOST_HEAD
    cdef unsigned char *header
    cdef const unsigned char *before = prepared.octets
    cdef Py_ssize_t size, head
    cdef uint32_t flags = 0
    if not is_bytes(<PyObject *>body):
        return None
    size = PyBytes_GET_SIZE(body)
    memcpy(p, before, BEFORE_ARGUMENTS)
    p = _put_changed(
        prepared.method, before + BEFORE_ARGUMENTS, prepared.arguments, changes.arguments,
        changes.given_arguments, p + BEFORE_ARGUMENTS, end, &flags, rules,
    )
    header = NULL if p is NULL else _end_frame(octets, p, end, prepared.limit)
    if header is NULL or end - header < ROOM_OF_HEAD:
        return None
    flags = prepared.flags  # without those that bits of the method have as masks
    before += prepared.header_at
    memcpy(header, before, BEFORE_PROPERTIES)
    p = _put_changed(
        prepared.header, before + BEFORE_PROPERTIES, prepared.properties, changes.properties,
        changes.given_properties, header + BEFORE_PROPERTIES, end, &flags, rules,
    )
    p = NULL if p is NULL else _end_frame(header, p, end, prepared.limit)
    if p is NULL:
        return None
    put64(header + BEFORE_PROPERTIES - 10, <uint64_t>size)
    put16(header + BEFORE_PROPERTIES - 2, flags)
    head = p - octets
    whole = PyBytes_FromStringAndSize(NULL, head + _framed_size(size, prepared.limit))
    p = <unsigned char *>PyBytes_AS_STRING(whole)
    memcpy(p, octets, <size_t>head)
    _put_body(p + head, prepared.number, octets_in(<PyObject *>body), size, prepared.limit)
    return whole


# -- classes

cdef class Forms:
    """Know the forms of those classes that have only fields of common kinds."""

    def __cinit__(self, dict routines):
        cdef size_t size = 8
        self._classes = [cls for cls, found in routines.items() if found is not None]
        self._names = []
        while size < 2 * <size_t>len(self._classes):
            size *= 2
        self._mask = size - 1
        self._entries = <Form **>PyMem_Calloc(size, sizeof(Form *))
        if self._entries is NULL:
            raise MemoryError
        for cls in self._classes:
            self._enter(cls, routines[cls])

    def __dealloc__(self):
        if self._entries is not NULL:
            for at in range(self._mask + 1):
                PyMem_Free(self._entries[at])
            PyMem_Free(self._entries)

    cdef int _enter(self, type cls, Routines routines) except -1:
        cdef Form *form = <Form *>PyMem_Calloc(1, sizeof(Form))
        cdef size_t at = hash_of(<void *>cls) & self._mask
        if form is NULL:
            raise MemoryError
        while self._entries[at] is not NULL:
            at = (at + 1) & self._mask
        self._entries[at] = form
        names = tuple([intern(field.attribute) for field in cls.spec.fields] + [_CHECK])
        self._names.append(names)
        form.cls = <PyObject *>cls
        form.names = items_of(<PyObject *>names)
        form.write = routines.write
        form.before = octets_before_slots(cls, len(cls.spec.fields))
        return _lay_out(form, cls.spec)

    cdef Form *of_class(self, int class_id) noexcept:
        """Return the form of the properties of a content class; NULL if they have none."""
        cdef size_t at
        for at in range(self._mask + 1):
            if self._entries[at] is not NULL and self._entries[at].class_id == class_id:
                return self._entries[at]
        return NULL

    cdef Form *inherited(self, PyTypeObject *cls) noexcept:
        """Return the form of the class that a caller's one derives from, if that leaves the fields alone."""
        cdef PyTypeObject *base = cls.tp_base
        cdef Form *form = NULL
        while form is NULL and base is not NULL:
            form = self.find(base)
            if form is NULL:
                base = base.tp_base
        if form is NULL or not leaves_fields(&form.heir, cls, base, form.names, form.count + 1):
            return NULL
        return form

    cdef object frame(self, object channel, object method, long long limit, WriterRules rules):
        """Return the frame of a method, or None."""
        cdef unsigned char octets[MOST_HEAD]
        cdef unsigned char *p
        cdef Form *form = self.form_of(<PyObject *>method)
        cdef Py_ssize_t number = _channel_number(<PyObject *>channel)
        if form is NULL or number < 0 or rules.strict:
            return None
        p = _put_method(
            form, <unsigned int>number, <PyObject *>method, octets, octets + MOST_HEAD, limit, rules
        )
        if p is NULL:
            return None
        return PyBytes_FromStringAndSize(<const char *>octets, p - octets)

    cdef object header(
        self, object channel, object properties, object body_size, object weight, long long limit, WriterRules rules
    ):
        """Return the frame of a content header, or None."""
        cdef unsigned char octets[MOST_HEAD]
        cdef unsigned char *p
        cdef uint64_t size = 0
        cdef Form *form = self.form_of(<PyObject *>properties)
        cdef Py_ssize_t number = _channel_number(<PyObject *>channel)
        if form is NULL or number < 0 or rules.strict or not is_int(<PyObject *>weight) or small(weight) != 0:
            return None
        if not is_int(<PyObject *>body_size) or not unsigned_value(body_size, &size):
            return None
        p = _put_header(
            form, <unsigned int>number, <PyObject *>properties, size, octets, octets + MOST_HEAD, limit, rules
        )
        if p is NULL:
            return None
        return PyBytes_FromStringAndSize(<const char *>octets, p - octets)

    cdef object message(
        self, PyObject *channel, PyObject *method, PyObject *properties, PyObject *body, long long limit,
        PyObject *rules, PyObject *contents, const Kept *kept,
    ):
        """Return all frames of a message, or None. The body is bytes."""
        cdef unsigned char octets[MOST_HEAD]
        cdef const unsigned char *end = octets + MOST_HEAD
        cdef unsigned char *p = octets
        cdef Py_ssize_t number = _channel_number(channel)
        cdef Py_ssize_t size = octet_count(body)
        cdef Py_ssize_t head
        cdef Form *form = self.form_of(method)
        cdef Form *header = _form_of_content(form, <Forms>contents, properties, kept)
        if header is NULL or number < 1 or (<WriterRules>rules).strict:
            return None
        p = _put_method(form, <unsigned int>number, method, p, end, limit, <WriterRules>rules)
        if kept is NULL:
            if p is not NULL:
                p = _put_header(
                    header, <unsigned int>number, properties, <uint64_t>size, p, end, limit, <WriterRules>rules
                )
        elif _kept_size(kept) - OVERHEAD > limit:
            return None
        if p is NULL:
            return None
        head = p - octets
        whole = PyBytes_FromStringAndSize(NULL, head + _kept_size(kept) + _framed_size(size, limit))
        p = <unsigned char *>PyBytes_AS_STRING(whole)
        memcpy(p, octets, <size_t>head)
        p += head
        if kept is not NULL:
            p = _put_kept_header(header, <unsigned int>number, kept, <uint64_t>size, p)
        _put_body(p, <unsigned int>number, octets_in(body), size, limit)
        return whole

    cdef unsigned char *put_message(
        self, unsigned char *p, const unsigned char *end, PyObject *item, long long limit, WriterRules rules,
        Forms contents, const Kept *kept,
    ) noexcept:
        """Write all frames of a message, a tuple of four items; return where they end."""
        cdef PyObject *method = PyTuple_GET_ITEM(item, 1)
        cdef PyObject *properties = PyTuple_GET_ITEM(item, 2)
        cdef PyObject *body = PyTuple_GET_ITEM(item, 3)
        cdef Py_ssize_t number = _channel_number(PyTuple_GET_ITEM(item, 0))
        cdef Py_ssize_t size
        cdef Form *form = self.form_of(method)
        cdef Form *header = _form_of_content(form, contents, properties, kept)
        if header is NULL or number < 1 or rules.strict or not is_bytes(body) or end - p < ROOM_OF_HEAD:
            return NULL
        p = _put_method(form, <unsigned int>number, method, p, end, limit, rules)
        if p is NULL:
            return NULL
        size = octet_count(body)
        if kept is NULL:
            p = _put_header(header, <unsigned int>number, properties, <uint64_t>size, p, end, limit, rules)
        elif _kept_size(kept) - OVERHEAD > limit or end - p < _kept_size(kept):
            return NULL
        else:
            p = _put_kept_header(header, <unsigned int>number, kept, <uint64_t>size, p)
        if p is NULL or end - p < _framed_size(size, limit):
            return NULL
        _put_body(p, <unsigned int>number, octets_in(body), size, limit)
        return p + _framed_size(size, limit)


cdef int _lay_out(Form *form, object spec) except -1:
    cdef bint is_method = hasattr(spec, "method_id")
    cdef Step *step = form.steps
    cdef uint32_t flag = 0x8000
    form.class_id = spec.class_id
    form.octets[0] = <unsigned char>(METHOD if is_method else HEADER)
    put16(form.octets + ENVELOPE_SIZE, spec.class_id)
    if is_method:
        put16(form.octets + ENVELOPE_SIZE + 2, spec.method_id)
        form.is_method = True
        form.content = spec.content
        flag = 1
    for field in spec.fields:
        step.kind = FIELD_KINDS[field.type]
        step.flag = <unsigned short>flag
        if not is_method:
            flag >>= 1
        elif step.kind == BIT_FIELD and flag < 0x80:
            flag <<= 1
        else:
            flag = 1
        step += 1
        form.count += 1
    return 0


# -- the steps of layouts that are not usual, which call them

cdef bint emit_by_call(WriterRules rules, Writing *w, int kind, int place) noexcept:
    return emit(rules, w, kind, place)


cdef bint emit_if_by_call(WriterRules rules, Writing *w, int kind, int place) noexcept:
    return emit_if(rules, w, kind, place)
