# cython: boundscheck=False, wraparound=False, cdivision=True
"""Lines of frames and messages that wait to be written. The twin of lines_py.py.

A line is what its form says of all such frames or messages, with the values of this one put in. Common values are
written here. Everything else is text that the form's own functions make: a value that is not common, or a whole line.
It halves the time of `amqpcodec decode`: docs/architecture.md has the figures.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from .._kernel.civil cimport (
    datetime_day, datetime_hour, datetime_microsecond, datetime_minute, datetime_month, datetime_second,
    datetime_tzinfo, datetime_year, import_datetime,
)
from .._kernel.octets cimport is_ascii, word
from .._kernel.wire cimport BODY, HEADER

from datetime import UTC, datetime

from ..capture import CapturedFrame
from .messages_c cimport ShownMessage
from .rendering import LONGEST_TEXT, escaped

__all__ = ["Lines"]

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    str PyUnicode_DecodeUTF8(const char *octets, Py_ssize_t size, const char *errors)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1

cdef enum:
    _MOST_DIGITS = 20  # of 64 bits, with a sign
    _MOST_KEPT = 4096  # outlines
    _KEPT_ROOM = 1048576  # octets of memory that are kept while there is nothing in them
    _DEEPEST = 16

cdef enum:  # the marks of `forms`
    OFFSET_MARK = 1
    SIZE_MARK = 2
    FIELDS_MARK = 3
    BODY_SIZE_MARK = 4
    BODY_MARK = 5
    PROPERTIES_MARK = 6
    QUEUE_MARK = 7
    FRAMES_MARK = 8

cdef uint64_t _EACH = 0x0101010101010101U
cdef uint64_t _HIGH = 0x8080808080808080U
cdef const char *_HEX = b"0123456789abcdef"
cdef Py_ssize_t _longest_text = LONGEST_TEXT

import_datetime()


cdef inline uint64_t _zeros(uint64_t octets) noexcept nogil:
    """Return whether one of eight ASCII characters is 0: then not 0."""
    return (octets - _EACH) & ~octets & _HIGH


cdef inline bint _is_clean(const unsigned char *p, Py_ssize_t size, unsigned char quote) noexcept nogil:
    """Return whether ASCII text stands for itself between such quotes: no control characters, quotes or backslashes."""
    cdef uint64_t found = 0, each
    while size >= 8:
        each = word(p)
        found |= (each - 32 * _EACH) & ~each & _HIGH
        found |= _zeros(each ^ 127 * _EACH) | _zeros(each ^ 92 * _EACH) | _zeros(each ^ quote * _EACH)
        p += 8
        size -= 8
    while size > 0:
        if p[0] < 32 or p[0] == 127 or p[0] == 92 or p[0] == quote:
            return False
        p += 1
        size -= 1
    return found == 0


cdef inline bint _has_control(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """Return whether octets are no text that can be printed, whatever else is in them."""
    cdef Py_ssize_t at
    for at in range(size):
        if p[at] < 32 or p[at] == 127:
            return True
    return False


cdef inline void _digits(char *to, int number, int count) noexcept nogil:
    while count > 0:
        count -= 1
        to[count] = <char>(48 + number % 10)
        number //= 10


cdef class _Layout:
    """A `rendering.FieldLayout`, in octets."""

    cdef list labels
    cdef tuple names
    cdef tuple reserved
    cdef bint optional

    def __cinit__(self, layout):
        self.labels = [label.encode() for label in layout.labels]
        self.names, self.reserved, self.optional = layout.names, layout.reserved, layout.optional


cdef class _Outline:
    """A `forms.Outline`, in octets."""

    cdef list parts
    cdef _Layout fields
    cdef _Layout properties

    def __cinit__(self, outline):
        self.parts = [part.encode() for part in outline.parts]
        self.fields = None if outline.fields is None else _Layout(outline.fields)
        self.properties = None if outline.properties is None else _Layout(outline.properties)


cdef class Lines:
    """Collects lines; see `lines_py.Lines`."""

    cdef object _form
    cdef object _shown  # makes text of a value
    cdef bint _json
    cdef Py_ssize_t _body_bytes
    cdef unsigned char _quote
    cdef dict _outlines
    cdef object _connection, _direction, _packet, _time_ns  # of the latest line, and what that began with
    cdef bytes _begin
    cdef char *_memory
    cdef size_t _used, _room
    cdef Py_ssize_t _count

    def __cinit__(self, form):
        self._form = form
        self._shown = form.parts.shown
        self._json = form.json
        self._body_bytes = form.body_bytes
        self._quote = 34 if self._json else 39
        self._outlines = {}

    def __dealloc__(self):
        free(self._memory)

    def add(self, item):
        """Add the line of a frame, fault or message; how many lines wait now."""
        cdef size_t before = self._used
        cdef bint common
        try:
            if type(item) is CapturedFrame:
                common = self._frame(<tuple>item)
            else:
                common = type(item) is ShownMessage and self._message(<ShownMessage>item)
            if not common:
                self._used = before
                self._text(self._form.line(item))
        except BaseException:
            self._used = before
            raise
        self._count += 1
        return self._count

    def take(self):
        """The lines that wait; none do any more."""
        cdef str text = PyUnicode_DecodeUTF8(self._memory, <Py_ssize_t>self._used, b"surrogatepass")
        self._used = 0
        self._count = 0
        if self._room > _KEPT_ROOM:
            free(self._memory)
            self._memory, self._room = NULL, 0
        return text

    # -- frames

    cdef bint _frame(self, tuple item) except -1:
        """Add the line of a frame; False if the form has to make it."""
        frame = item[7]
        payload = frame.payload
        cdef int kind = frame.type
        record = payload.properties if kind == HEADER else payload
        cdef _Outline outline = self._outline(self._form.outline, item, (type(record), frame.channel, item[8]))
        if outline is None or (kind == BODY and type(payload) is not bytes):
            return False
        self._begin_line(item)
        return self._parts(
            outline, item[4], item[5], payload.body_size if kind == HEADER else 0, record, None,
            <bytes>payload if kind == BODY else None, None,
        )

    cdef bint _message(self, ShownMessage message) except -1:
        """Add the line of a message; False if the form has to make it."""
        cdef _Outline outline
        cdef tuple first = <tuple>message.first
        method, header, queue = message.method, message.header, message.queue
        if method is None or header is None or message.size != header.body_size:
            return False
        properties = header.properties
        key = type(method), type(properties), first[7].channel, first[8], queue is None
        outline = self._outline(self._form.message_outline, message, key)
        if outline is None:
            return False
        self._begin_line(first)
        body = <bytes>message.chunks[0] if len(message.chunks) == 1 else message.body
        return self._parts(outline, first[4], message.size, message.frames, method, properties, body, queue)

    cdef bint _parts(
        self, _Outline outline, object offset, object size, object count, object record, object properties,
        bytes body, object queue,
    ) except -1:
        """Add an outline with its values; False if there is something in a reserved argument.

        `count` is of the frames of a message, or of the octets that a content header announces.
        """
        cdef bytes part
        cdef unsigned char mark
        cdef Py_ssize_t at
        for at in range(len(outline.parts)):
            part = <bytes>outline.parts[at]
            mark = <unsigned char>PyBytes_AS_STRING(part)[0]
            if mark > FRAMES_MARK:
                self._octets(part)
            elif mark == OFFSET_MARK:
                self._number(offset)
            elif mark == SIZE_MARK:
                self._number(size)
            elif mark == BODY_SIZE_MARK or mark == FRAMES_MARK:
                self._number(count)
            elif mark == BODY_MARK:
                self._body(body, size)
            elif mark == QUEUE_MARK:
                self._value(queue, 0)
            elif not self._fields(
                outline.fields if mark == FIELDS_MARK else outline.properties,
                record if mark == FIELDS_MARK else properties,
            ):
                return False
        return True

    cdef _Outline _outline(self, object make, object item, tuple key):
        """The outline that a function makes of an item; None where there is none."""
        found = self._outlines.get(key, key)
        if found is key:
            if len(self._outlines) >= _MOST_KEPT:
                self._outlines.clear()
            outline = make(item)
            found = self._outlines[key] = None if outline is None else _Outline(outline)
        return found

    cdef int _begin_line(self, tuple item) except -1:
        """Add what the lines of frames of one packet begin with."""
        if (
            self._begin is None or item[0] is not self._connection or item[2] != self._packet
            or item[1] != self._direction or item[3] != self._time_ns
        ):
            self._begin = self._form.begin(item).encode()
            self._connection, self._direction, self._packet, self._time_ns = item[:4]
        return self._octets(self._begin)

    cdef bint _fields(self, _Layout layout, object record) except -1:
        """Add arguments or properties; False if there is something in a reserved one."""
        cdef bint first = True
        cdef Py_ssize_t at
        for name in layout.reserved:
            if getattr(record, name):
                return False
        for at in range(len(layout.names)):
            value = getattr(record, layout.names[at])
            if value is None and layout.optional:
                continue
            if self._json and not first:
                self._put(b", ", 2)
            first = False
            self._octets(<bytes>layout.labels[at])
            self._value(value, 0)
        return True

    cdef int _body(self, bytes body, Py_ssize_t size) except -1:
        """Add the first octets of a body of so many: in text quoted, if all of it can be printed, else in hex."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(body)
        cdef Py_ssize_t shown = min(PyBytes_GET_SIZE(body), self._body_bytes)
        if self._json:
            return self._hex(p, shown)
        if shown and is_ascii(p, shown) and _is_clean(p, shown, self._quote):
            self._put(b"'", 1)
            self._put(<const char *>p, <size_t>shown)
            self._put(b"'", 1)
        elif _has_control(p, shown):
            self._put(b"0x", 2)
            self._hex(p, shown)
        else:
            return self._text(self._form.body(body[:shown], size))
        if size > shown:
            self._put(b"...(+", 5)
            self._number(size - shown)
            self._put(b")", 1)
        return 0

    # -- values

    cdef int _value(self, object value, int depth) except -1:
        """Add a value, inside of so many others."""
        kind = type(value)
        if kind is str:
            if self._quoted(<str>value):
                return 0
        elif kind is int:
            return self._number(value)
        elif kind is bool:
            return self._put(b"true", 4) if value is True else self._put(b"false", 5)
        elif kind is dict and depth < _DEEPEST:
            return self._mapping(<dict>value, depth + 1)
        elif kind is list and depth < _DEEPEST:
            return self._items(<list>value, depth + 1)
        elif kind is datetime and <object>datetime_tzinfo(value) is UTC and not datetime_microsecond(value):
            return self._moment(value)
        return self._text(self._shown(value))

    cdef int _mapping(self, dict value, int depth) except -1:
        cdef bint first = True
        self._put(b"{", 1)
        for key, inner in value.items():
            if not first:
                self._put(b", ", 2)
            first = False
            self._key(key)
            self._put(b": ", 2)
            self._value(inner, depth)
        return self._put(b"}", 1)

    cdef int _key(self, object key) except -1:
        cdef str text = str(key)
        cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
        if self._json:
            return 0 if self._quoted(text) else self._text(self._shown(text))
        if PyUnicode_IS_COMPACT_ASCII(text) and _is_clean(<const unsigned char *>PyUnicode_DATA(text), size, 39):
            return self._text(text)
        return self._text(escaped(text))

    cdef int _items(self, list value, int depth) except -1:
        cdef bint first = True
        self._put(b"[", 1)
        for inner in value:
            if not first:
                self._put(b", ", 2)
            first = False
            self._value(inner, depth)
        return self._put(b"]", 1)

    cdef bint _quoted(self, str value) except -1:
        """Add text in quotes; False if something in it has to be escaped, or left out."""
        cdef Py_ssize_t size = PyUnicode_GET_LENGTH(value)
        cdef const unsigned char *p
        cdef char *to
        if not PyUnicode_IS_COMPACT_ASCII(value) or (size > _longest_text and not self._json):
            return False
        p = <const unsigned char *>PyUnicode_DATA(value)
        if not _is_clean(p, size, self._quote):
            return False
        to = self._claim(<size_t>size + 2)
        to[0] = to[size + 1] = <char>self._quote
        memcpy(to + 1, p, <size_t>size)
        self._used += <size_t>size + 2
        return True

    cdef int _number(self, object value) except -1:
        cdef int overflow = 0
        cdef long long number = PyLong_AsLongLongAndOverflow(value, &overflow)
        cdef unsigned long long left = <unsigned long long>number
        cdef char digits[_MOST_DIGITS]
        cdef Py_ssize_t at = _MOST_DIGITS
        if overflow:
            return self._text(str(value))
        if number < 0:
            self._put(b"-", 1)
            left = 0 - left
        while left or at == _MOST_DIGITS:
            at -= 1
            digits[at] = <char>(48 + left % 10)
            left //= 10
        return self._put(digits + at, <size_t>(_MOST_DIGITS - at))

    cdef int _moment(self, object value) except -1:
        """Add a time with whole seconds, in UTC."""
        cdef char text[24]
        memcpy(text, b'"0000-00-00T00:00:00Z"', 22)
        _digits(text + 1, datetime_year(value), 4)
        _digits(text + 6, datetime_month(value), 2)
        _digits(text + 9, datetime_day(value), 2)
        _digits(text + 12, datetime_hour(value), 2)
        _digits(text + 15, datetime_minute(value), 2)
        _digits(text + 18, datetime_second(value), 2)
        return self._put(text, 22) if self._json else self._put(text + 1, 20)

    # -- octets of the lines

    cdef char *_claim(self, size_t size) except NULL:
        """Room for so many octets behind the others."""
        cdef size_t room
        cdef void *moved
        if size >= self._room - self._used:
            room = max(2 * self._room, self._used + size + 1)
            moved = realloc(self._memory, room)
            if moved is NULL:
                raise MemoryError
            self._memory, self._room = <char *>moved, room
        return self._memory + self._used

    cdef int _put(self, const char *octets, size_t size) except -1:
        memcpy(self._claim(size), octets, size)
        self._used += size
        return 0

    cdef int _octets(self, bytes octets) except -1:
        return self._put(PyBytes_AS_STRING(octets), <size_t>PyBytes_GET_SIZE(octets))

    cdef int _text(self, str text) except -1:
        if PyUnicode_IS_COMPACT_ASCII(text):
            return self._put(<const char *>PyUnicode_DATA(text), <size_t>PyUnicode_GET_LENGTH(text))
        return self._octets(text.encode("utf-8", "surrogatepass"))

    cdef int _hex(self, const unsigned char *p, Py_ssize_t size) except -1:
        cdef char *to = self._claim(2 * <size_t>size + 1)
        cdef Py_ssize_t at
        for at in range(size):
            to[2 * at] = _HEX[p[at] >> 4]
            to[2 * at + 1] = _HEX[p[at] & 15]
        self._used += 2 * <size_t>size
        return 0
