# cython: boundscheck=False, wraparound=False, cdivision=True
"""Messages in columns back to frames, without the GIL. The twin of encode_py.py.

These functions may decline a row. `encode_py` then writes it, or raises its error.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from array import array

from .._protocol.wire_types cimport BIT, TABLE
from .._kernel.octets cimport put16, put64
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, MAX_PAYLOAD, METHOD, OVERHEAD
from .buffers_c cimport (
    Octets, View, append, cell_at, free_view, is_given, is_true, look_at, number_at, octets_in,
)

from .._protocol.wire_types import NUMBERS
from .encode_py import Encoded
from .encode_py import MessageEncoder as RowEncoder

cdef extern from "Python.h":
    PyObject *PyBytes_FromStringAndSize(const char *octets, Py_ssize_t size)
    void Py_SET_SIZE(PyObject *octets, Py_ssize_t size)
    int _PyBytes_Resize(PyObject **octets, Py_ssize_t size) except -1

cdef enum:
    _MOST_PROPERTIES = 15

cdef enum:  # columns that are not fields; where they are in `_special`
    _NAME = 0
    _KIND = 1
    _CHANNEL = 2
    _BODY = 3
    _BODY_SIZE = 4
    _COMPLETE = 5
    _ERROR = 6
    _PROPERTIES = 7
    _HEADERS = 8
    _HEADERS_RAW = 9
    _SPECIALS = 10

cdef tuple _NAMES = (
    "name", "kind", "channel", "body", "body_size", "complete", "_error", "properties", "headers", "headers_raw"
)


cdef struct Carrier:  # a method that carries content
    const char *name
    size_t name_size
    bint basic
    unsigned int class_id
    unsigned int method_id
    bint declined  # all rows with it are left to `encode_py`
    Source *arguments
    int argument_count
    Source *properties
    int property_count
    int present[15]  # the properties that a batch has values of
    int present_count


@cython.final
cdef class MessageEncoder:
    """Writes the messages of batches that have the same columns; see `encode_py.MessageEncoder`."""

    cdef object _encoder
    cdef list _kept
    cdef Carrier *_carriers
    cdef int _count
    cdef const Carrier *_last  # of the row before, since rows in a row are mostly of one kind
    cdef View *_views  # of the columns of the batch being written
    cdef int _view_count
    cdef Py_ssize_t _special[_SPECIALS]
    cdef const View *_at[_SPECIALS]  # of the columns that are no fields; NULL for one without values
    cdef uint64_t _limit
    cdef bint _voids
    cdef size_t _fixed  # octets of method and content header without text, at most
    cdef PyObject *_result  # the octets that are being written
    cdef Octets _out  # where they lie

    def __cinit__(self, columns, dialect, *, frame_max, skip_incomplete):
        cdef Py_ssize_t place
        self._encoder = RowEncoder(columns, dialect, frame_max=frame_max, skip_incomplete=skip_incomplete)
        self._kept = []
        names = [column.name for column in columns]
        for place in range(_SPECIALS):
            self._special[place] = names.index(_NAMES[place]) if _NAMES[place] in names else -1
        if type(frame_max) is int:  # the pure encoder refuses any other
            self._limit = min(max(frame_max - OVERHEAD, 0), MAX_PAYLOAD) if frame_max else MAX_PAYLOAD
        self._voids = "V" in dialect.DIALECT.profile.tags
        self._carriers = <Carrier *>calloc(<size_t>len(self._encoder.methods) + 1, sizeof(Carrier))
        self._view_count = <int>len(names)
        self._views = <View *>calloc(<size_t>len(names) + 1, sizeof(View))
        if self._carriers is NULL or self._views is NULL:
            raise MemoryError
        for method in self._encoder.methods.values():
            self._describe(self._carriers + self._count, method, dialect, names)
            self._count += 1
            fields = 2 * OVERHEAD + 4 + 14
            for spec in (method.spec, getattr(dialect.PROPERTIES.get(method.spec.class_id), "spec", method.spec)):
                fields += 8 * len(spec.fields)
            self._fixed = max(self._fixed, <size_t>fields)

    def __dealloc__(self):
        cdef int index
        for index in range(self._count):
            free(self._carriers[index].arguments)
            free(self._carriers[index].properties)
        free(self._carriers)
        self._forget()
        free(self._views)

    cdef int _describe(self, Carrier *carrier, object method, object dialect, list names) except -1:
        cdef bytes name = method.spec.name.encode()
        properties = dialect.PROPERTIES.get(method.spec.class_id)
        self._kept.append(name)
        carrier.name, carrier.name_size = PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name)
        carrier.basic = name.startswith(b"basic.")
        carrier.class_id, carrier.method_id = method.spec.class_id, method.spec.method_id
        columns = self._encoder.columns
        inside = [
            child.name for column in columns if column.name == "properties" for child in column.children
        ]
        carrier.argument_count = <int>len(method.spec.fields)
        carrier.arguments = _sources(method.spec.fields, self._encoder.fields[method], names)
        if properties is None or not _is_common(method):
            carrier.declined = True
            return 0
        fields = properties.spec.fields
        carrier.property_count = <int>len(fields)
        carrier.properties = _sources(fields, self._encoder.properties[properties], inside)
        carrier.declined = len(fields) > _MOST_PROPERTIES or any([field.type == "bit" for field in fields])
        return 0

    def encode(self, batch, Py_ssize_t first=0):
        """The frames of a batch; see `encode_py.MessageEncoder.encode`."""
        cdef Py_ssize_t row = 0, rows = batch.rows
        cdef bytes octets
        cdef int64_t *ends
        cdef int64_t *places
        cdef Py_ssize_t count = 0
        lists = None
        held = []
        all_ends, all_places = array("q", [0]) * rows, array("q", [0]) * rows
        # Their memory, which stays where it is: a typed view would take a fourth of this module.
        ends, places = <int64_t *>_memory_of(all_ends), <int64_t *>_memory_of(all_places)
        try:
            self._look(batch, held)
            self._resize(self._most(rows))
            self._out.used = 0
            while True:
                with nogil:
                    row = self._run(row, rows, ends, places, &count)
                if row == rows:
                    self._end()
                    return Encoded(<object>self._result, all_ends[:count], all_places[:count])
                if lists is None:
                    lists = self._encoder.lists(batch)
                octets = self._encoder.row(lists, row, first)
                if octets:
                    self._resize(self._out.room + <size_t>PyBytes_GET_SIZE(octets))
                    at = <const unsigned char *>PyBytes_AS_STRING(octets)
                    append(&self._out, at, <size_t>PyBytes_GET_SIZE(octets))
                    ends[count], places[count] = <int64_t>self._out.used, row
                    count += 1
                row += 1
        finally:
            Py_XDECREF(self._result)
            self._result = NULL
            self._forget()

    cdef int _resize(self, size_t size) except -1:
        """Have as much memory for the frames, which are joined in the memory that is returned."""
        if self._result is NULL:
            self._result = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            if self._result is NULL:
                raise MemoryError
        else:
            _PyBytes_Resize(&self._result, <Py_ssize_t>size)
        self._out.start = <unsigned char *>PyBytes_AS_STRING(<object>self._result)
        self._out.room = size
        return 0

    cdef int _end(self) except -1:
        """Make the octets as many as were written.

        Where little is left over, the memory is not made smaller: allocators return such large blocks to the
        system as soon as their sizes differ, and having them anew takes as long as writing the frames.
        """
        if self._out.room - self._out.used > self._out.used // 2:
            return self._resize(self._out.used)
        Py_SET_SIZE(self._result, <Py_ssize_t>self._out.used)
        self._out.start[self._out.used] = 0
        return 0

    cdef size_t _most(self, Py_ssize_t rows) noexcept:
        """Octets that the rows of a batch can lead to, at most."""
        cdef const View *body = self._at[_BODY]
        cdef size_t most = 0
        cdef int index
        for index in range(self._view_count):
            most += octets_in(self._views + index, rows)
        if body is not NULL and rows and self._limit:
            most += OVERHEAD * (<size_t>rows + octets_in(body, rows) // self._limit)
        return most + <size_t>rows * self._fixed

    # -- the memory of a batch

    cdef int _look(self, object batch, list held) except -1:
        """Find the memory of the columns, and check that all that their offsets point at is there."""
        cdef int index = 0
        for described, filled in zip(self._encoder.columns, batch.columns, strict=True):
            look_at(self._views + index, described, filled, batch.rows, held)
            index += 1
        for index in range(_SPECIALS):
            self._at[index] = _with_values(self._views, self._special[index])
        for index in range(self._count):
            self._choose(self._carriers + index)
        return 0

    cdef void _choose(self, Carrier *carrier) noexcept:
        """Learn which fields there are any values of."""
        cdef const View *outer = self._at[_PROPERTIES]
        cdef Source *source
        cdef int index
        carrier.present_count = 0
        for index in range(carrier.argument_count):
            source = carrier.arguments + index
            source.view = _with_values(self._views, source.column)
        for index in range(0 if carrier.declined else carrier.property_count):
            source = carrier.properties + index
            source.view = _with_values(outer.inside, source.column) if outer is not NULL else NULL
            if source.headers or source.view is not NULL:
                carrier.present[carrier.present_count] = index
                carrier.present_count += 1

    cdef void _forget(self) noexcept:
        cdef int index
        for index in range(self._view_count):
            free_view(self._views + index)

    # -- rows

    cdef Py_ssize_t _run(
        self, Py_ssize_t row, Py_ssize_t rows, int64_t *ends, int64_t *places, Py_ssize_t *count
    ) noexcept nogil:
        """Write rows up to one that is declined; that row, or the number of all."""
        cdef size_t begin
        while row < rows:
            begin = self._out.used
            if self._message(row) == DECLINED:
                self._out.used = begin
                return row
            ends[count[0]], places[count[0]] = <int64_t>self._out.used, row
            count[0] += 1
            row += 1
        return row

    cdef int _message(self, Py_ssize_t row) noexcept nogil:
        """Write the frames of one row."""
        cdef const View *view = self._at[_CHANNEL]
        cdef const Carrier *carrier = self._carrier(row)
        cdef const unsigned char *body = NULL
        cdef size_t size = 0
        cdef int64_t channel = 1
        cdef int done
        if carrier is NULL or carrier.declined or is_given(self._at[_ERROR], row) or not self._limit:
            return DECLINED
        if is_given(self._at[_COMPLETE], row) and not is_true(self._at[_COMPLETE], row):
            return DECLINED
        if is_given(view, row):
            channel = number_at(view, row)
        if not 1 <= channel <= 65535:
            return DECLINED
        if is_given(self._at[_BODY], row):
            body = cell_at(self._at[_BODY], row, &size)
        if size == 0 and is_given(self._at[_BODY_SIZE], row) and number_at(self._at[_BODY_SIZE], row):
            return DECLINED
        done = self._method(carrier, row, <unsigned int>channel)
        if done == WRITTEN:
            done = self._header(carrier, row, <unsigned int>channel, size)
        return self._body(<unsigned int>channel, body, size) if done == WRITTEN else done

    cdef const Carrier *_carrier(self, Py_ssize_t row) noexcept nogil:
        """The method that a row names; NULL if there is none such."""
        cdef const View *view = self._at[_NAME]
        cdef const unsigned char *name = b"publish"
        cdef size_t size = 0, before = 0
        cdef const Carrier *carrier
        cdef int index
        if is_given(view, row):
            name = cell_at(view, row, &size)
        if size == 0:
            view, before = self._at[_KIND], 6  # behind "basic."
            if is_given(view, row):
                name = cell_at(view, row, &size)
            if size == 0:
                name, size = b"publish", 7
        if self._last is not NULL and _named(self._last, before, name, size):
            return self._last
        for index in range(self._count):
            carrier = self._carriers + index
            if _named(carrier, before, name, size):
                self._last = carrier
                return carrier
        return NULL

    cdef int _method(self, const Carrier *carrier, Py_ssize_t row, unsigned int channel) noexcept nogil:
        cdef Octets *out = &self._out
        cdef size_t begin = out.used, packed = 0
        cdef const Source *source
        cdef unsigned char *to
        cdef int index, done
        begin_frame(out, METHOD, channel)
        to = next_octets(out, 4)
        put16(to, carrier.class_id)
        put16(to + 2, carrier.method_id)
        for index in range(carrier.argument_count):
            source = carrier.arguments + index
            if source.type != BIT:
                done = put_field(out, source, row, self._voids)
                if done != WRITTEN:
                    return done
                continue
            if source.bit == 0:
                packed = out.used
                to = next_octets(out, 1)
                to[0] = 0
            if is_given(source.view, row) and is_true(source.view, row):
                out.start[packed] |= <unsigned char>(1 << source.bit)
        return end_frame(out, begin, self._limit)

    cdef int _header(
        self, const Carrier *carrier, Py_ssize_t row, unsigned int channel, size_t body_size
    ) noexcept nogil:
        cdef Octets *out = &self._out
        cdef size_t begin = out.used
        cdef const Source *source
        cdef bint given = is_given(self._at[_PROPERTIES], row)
        cdef unsigned char *to
        cdef unsigned int flags = 0
        cdef int place, index, done
        begin_frame(out, HEADER, channel)
        to = next_octets(out, 14)
        put16(to, carrier.class_id)
        put16(to + 2, 0)
        put64(to + 4, body_size)
        for place in range(carrier.present_count):
            index = carrier.present[place]
            source = carrier.properties + index
            done = ABSENT
            if source.headers:
                done = self._headers(row)
            elif given and is_given(source.view, row):
                done = put_field(out, source, row, self._voids)
            if done == DECLINED:
                return DECLINED
            if done == WRITTEN:
                flags |= 0x8000U >> index
        put16(out.start + begin + ENVELOPE_SIZE + 12, flags)
        return end_frame(out, begin, self._limit)

    cdef int _headers(self, Py_ssize_t row) noexcept nogil:
        """Write the property headers, from its octets or from the map."""
        cdef const View *raw = self._at[_HEADERS_RAW]
        cdef const View *view = self._at[_HEADERS]
        cdef const unsigned char *p
        cdef size_t size = 0
        if is_given(raw, row):
            p = cell_at(raw, row, &size)
            return put_long(&self._out, p, size)
        if is_given(view, row):
            return put_map(&self._out, view, row, self._voids)
        return ABSENT

    cdef int _body(self, unsigned int channel, const unsigned char *p, size_t size) noexcept nogil:
        cdef size_t begin, part
        while size:
            part = min(size, self._limit)
            begin = self._out.used
            begin_frame(&self._out, BODY, channel)
            memcpy(next_octets(&self._out, part), p, part)
            end_frame(&self._out, begin, self._limit)
            p += part
            size -= part
        return WRITTEN


cdef inline const View *_with_values(const View *views, Py_ssize_t column) noexcept nogil:
    """The view of a column; NULL without it, or if everything in it is null."""
    if views is NULL or column < 0 or views[column].empty:
        return NULL
    return views + column


cdef inline bint _named(const Carrier *carrier, size_t before, const unsigned char *name, size_t size) noexcept nogil:
    """Return whether this is the name of a method, behind as many octets of it."""
    if carrier.name_size != before + size or (before and not carrier.basic):
        return False
    return memcmp(carrier.name + before, name, size) == 0


cdef void *_memory_of(object numbers) except? NULL:
    """Return where the items of an array lie."""
    return <void *><size_t>numbers.buffer_info()[0]


cdef Source *_sources(object fields, dict columns, list names) except NULL:
    """Where the fields of a method or content class come from."""
    cdef Source *sources = <Source *>calloc(<size_t>len(fields) + 1, sizeof(Source))
    cdef Source *source = sources
    cdef int bits = 0
    if sources is NULL:
        raise MemoryError
    for field in fields:
        source.type = NUMBERS[field.type]
        if source.type == BIT:
            source.bit = bits & 7
            bits += 1
        else:
            bits = 0
        name = columns[field.attribute][0] if field.attribute in columns else None
        source.column = names.index(name) if name in names else -1
        source.headers = name == "headers" and source.type == TABLE
        source += 1
    return sources


cdef bint _is_common(object method):
    """Return whether the arguments of a method are zero or empty where nothing is given."""
    empty = method()
    return not any([getattr(empty, field.attribute) for field in method.spec.fields])
