# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path of decoding frames and whole messages, in C. That of the pure build is `__next__` of the decoders.

As in fast_reader_c.pyx, what is unusual is declined, and nothing has changed then.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint64_t

from .fast_reader_c cimport read_record
from .framing cimport WHOLE, frame_at
from .slots.makers_c cimport maker_of, slots_of, take
from .octets cimport u16, u32, u64
from .rawproperties_c cimport RawProperties
from .records_c cimport ContentHeader
from .wire cimport BODY, ENVELOPE_SIZE, HEADER, METHOD, OVERHEAD

cdef extern from "Python.h":
    PyObject *int_of_long "PyLong_FromLong"(long value) noexcept
    PyObject *int_of_unsigned "PyLong_FromUnsignedLongLong"(unsigned long long value) noexcept
    PyObject *new_octets "PyBytes_FromStringAndSize"(const char *octets, Py_ssize_t size) noexcept
    void PyErr_Clear() noexcept

cdef enum:
    HEAD_SIZE = 12  # octets of a content header before the property flags

cdef Maker *_frame_maker = maker_of(Frame, sizeof(PyObject), 3)
cdef Maker *_header_maker = maker_of(ContentHeader, sizeof(PyObject), 3)
cdef Maker *_message_maker = maker_of(Message, sizeof(PyObject), 5)
# Cython's table of its methods lies before its slots, and the numbers behind them.
cdef Maker *_raw_maker = maker_of(RawProperties, sizeof(PyObject) + sizeof(void *), 3)
cdef RawProperties _raw_model = RawProperties.__new__(RawProperties)
cdef void *_raw_methods = (<void **>(<PyObject *>_raw_model + 1))[0]
# As objects: the frame types that a decoder returns.
cdef object _METHOD = METHOD
cdef object _HEADER = HEADER
cdef object _BODY = BODY
cdef object _TRUE = True


cdef Frame read_frame(
    Reader reader, Dispatch methods, Dispatch properties, PropertiesReading raw_reading, object channel
):
    """Return the frame whose payload the reader is aimed at, or None where the slow path must read it.

    Args:
        reader: the reader.
        methods, properties: those of the dialect.
        raw_reading: how properties that stay octets are read later; None where they are decoded.
        channel: the number of the frame's channel, as an object.
    """
    cdef PyObject *payload = NULL
    cdef PyObject *frame_type
    cdef PyObject **slots
    cdef PyObject *made
    if reader.strict:
        return None
    if reader.frame_type == METHOD:
        frame_type = <PyObject *>_METHOD
        payload = _method(reader, methods)
    elif reader.frame_type == HEADER:
        frame_type = <PyObject *>_HEADER
        payload = _header(reader, properties, raw_reading)
    elif reader.frame_type == BODY:
        frame_type = <PyObject *>_BODY
        payload = _body(reader, reader._pos, reader._end - reader._pos)
    made = NULL if payload is NULL else take(_frame_maker)
    if made is NULL:
        return _declined(payload, NULL)
    Py_INCREF(<object>frame_type)
    Py_INCREF(channel)
    slots = slots_of(_frame_maker, made)
    slots[0] = frame_type
    slots[1] = <PyObject *>channel
    slots[2] = payload
    reader._pos = reader._end
    return <Frame>_owned(made)


cdef Message read_message(
    Reader reader, Dispatch methods, Dispatch properties, PropertiesReading raw_reading, object chunk, Py_ssize_t end,
    long long size_limit, long long header_limit, unsigned long long body_limit
):
    """Return the message of the method that the reader is aimed at, if its content header, and its body in one frame,
    lie whole right behind it; or None where the slow path must read it. `passed` of the reader then has the octets of
    those frames.

    Args:
        reader, methods, properties, raw_reading: as for `read_frame`.
        chunk, end: what the octets behind the method are in, and where they end.
        size_limit, body_limit: octets of the largest payload, and of the largest body.
        header_limit: octets of the largest frame to take for a content header.
    """
    cdef const unsigned char *header = reader._end + 1
    cdef const unsigned char *p = header + ENVELOPE_SIZE
    cdef const unsigned char *stop = reader._data + end
    cdef long long header_size, frame_size = 0
    cdef uint64_t body_size
    cdef Maker *maker
    if reader._owner is not chunk or reader.channel == 0 or reader._end - reader._pos < 4:
        return None
    maker = methods.makers.find(u32(reader._pos))
    if maker is NULL or maker.content < 0:
        return None
    if not _is_next(reader, header, stop, HEADER, size_limit, &header_size):
        return None
    if not OVERHEAD + HEAD_SIZE <= header_size <= header_limit or u16(p) != maker.content:
        return None
    body_size = u64(p + 4)
    if body_size > body_limit or reader.strict and (raw_reading is not None or u16(p + 2) != 0):
        return None
    if body_size != 0:
        if not _is_next(reader, header + header_size, stop, BODY, size_limit, &frame_size):
            return None
        if body_size != <uint64_t>(frame_size - OVERHEAD):
            return None
    reader.passed = header_size + frame_size
    return _put_together(
        reader, maker, properties, raw_reading, p, header + header_size - 1,
        header + header_size + ENVELOPE_SIZE, <Py_ssize_t>body_size,
    )


cdef inline bint _is_next(
    Reader reader, const unsigned char *p, const unsigned char *stop, int frame_type, long long size_limit,
    long long *size
) noexcept:
    """Return whether a whole frame of a type and of the reader's channel lies at `p`; `size` is that of the frame."""
    return frame_at(p, stop - p, 1U << frame_type, size_limit, False, size) == WHOLE and u16(p + 1) == reader.channel


cdef inline Message _put_together(
    Reader reader, Maker *maker, Dispatch properties, PropertiesReading raw_reading,
    const unsigned char *header, const unsigned char *header_end, const unsigned char *body, Py_ssize_t body_size,
):
    """Return the message whose parts lie there."""
    cdef PyObject *method = read_record(maker, reader, reader._pos + 4, reader._end)
    cdef PyObject *fields
    cdef PyObject *octets
    cdef PyObject *made
    cdef PyObject **slots
    if method is NULL:
        return _declined(NULL, NULL)
    fields = _content(reader, properties, raw_reading, header, header_end)
    if fields is NULL:
        return _declined(method, NULL)
    octets = new_octets(<const char *>body, body_size)
    made = NULL if octets is NULL else take(_message_maker)
    if made is NULL:
        Py_XDECREF(octets)
        return _declined(method, fields)
    slots = slots_of(_message_maker, made)
    Py_INCREF(_TRUE)
    slots[0] = int_of_long(reader.channel)
    slots[1] = method
    slots[2] = fields
    slots[3] = octets
    slots[4] = <PyObject *>_TRUE
    return <Message>_owned(made) if slots[0] is not NULL else _declined(made, NULL)


cdef inline object _owned(PyObject *made):
    """Return what was made, whose one reference is the caller's."""
    owned = <object>made
    Py_DECREF(owned)
    return owned


cdef object _declined(PyObject *first, PyObject *second):
    """Let go of what was made, and leave the rest to the slow path."""
    PyErr_Clear()
    Py_XDECREF(first)
    Py_XDECREF(second)
    return None


cdef inline PyObject *_method(Reader reader, Dispatch methods) noexcept:
    """Return the method in a payload."""
    cdef Maker *maker = NULL
    if reader._end - reader._pos >= 4:
        maker = methods.makers.find(u32(reader._pos))
    return NULL if maker is NULL else read_record(maker, reader, reader._pos + 4, reader._end)


cdef inline PyObject *_header(Reader reader, Dispatch properties, PropertiesReading raw_reading) noexcept:
    """Return the content header in a payload (0-9-1 section 4.2.6.1)."""
    cdef const unsigned char *p = reader._pos
    cdef PyObject *fields
    cdef PyObject *made
    cdef PyObject **slots
    if reader.channel == 0 or reader._end - p < HEAD_SIZE:
        return NULL
    fields = _content(reader, properties, raw_reading, p, reader._end)
    made = NULL if fields is NULL else take(_header_maker)
    if made is NULL:
        Py_XDECREF(fields)
        return NULL
    slots = slots_of(_header_maker, made)
    slots[0] = fields
    slots[1] = int_of_unsigned(u64(p + 4))
    slots[2] = int_of_long(u16(p + 2))
    if slots[1] is NULL or slots[2] is NULL:
        Py_DECREF(<object>made)
        return NULL
    return made


cdef inline PyObject *_body(Reader reader, const unsigned char *p, Py_ssize_t size) noexcept:
    """Return the octets of a body frame."""
    return NULL if reader.channel == 0 else new_octets(<const char *>p, size)


cdef inline PyObject *_content(
    Reader reader, Dispatch properties, PropertiesReading raw_reading, const unsigned char *p,
    const unsigned char *end,
) noexcept:
    """Return the properties of a content header at `p`, whose head is there."""
    cdef Maker *maker = properties.makers.find(u16(p))
    if maker is NULL:
        return NULL
    if raw_reading is not None:
        return _raw_properties(reader, raw_reading, p, end)
    return read_record(maker, reader, p + HEAD_SIZE, end)


cdef PyObject *_raw_properties(
    Reader reader, PropertiesReading raw_reading, const unsigned char *p, const unsigned char *end
) noexcept:
    """Return properties that stay octets, as `PropertiesReading.keep` does."""
    cdef PyObject *octets = new_octets(<const char *>p + HEAD_SIZE, end - p - HEAD_SIZE)
    cdef PyObject *made = NULL if octets is NULL else take(_raw_maker)
    cdef PyObject **slots
    if made is NULL:
        Py_XDECREF(octets)
        return NULL
    Py_INCREF(raw_reading)
    Py_INCREF(None)
    (<void **>(made + 1))[0] = _raw_methods
    slots = slots_of(_raw_maker, made)
    slots[0] = octets
    slots[1] = <PyObject *>raw_reading
    slots[2] = <PyObject *>None
    (<RawProperties>made)._class = u16(p)
    (<RawProperties>made)._channel = reader.channel
    (<RawProperties>made)._offset = reader._base + (p + HEAD_SIZE - reader._start)
    return made
