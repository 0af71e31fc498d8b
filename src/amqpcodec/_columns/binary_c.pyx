# cython: boundscheck=False, wraparound=False
"""A column of octets to rows, without the GIL. The twin of binary_py.py.

A value that is whole frames in order is read here; any other, and what is left of one with a row that cells decline,
by `binary_py.ValueReader`.
"""

cimport cython

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from .._kernel.framing cimport WHOLE, frame_at
from .._kernel.octets cimport u16, u32
from .._kernel.wire cimport METHOD, OVERHEAD
from ..capture.direction_state_c cimport NO_NUMBER
from .buffers_c cimport Column, Columns, View, cell_at, free_view, is_given, look_at, offset_at, put_int32
from .cells_c cimport (
    LEAST_METHOD, Origin, Plan, Position, Shape, Targets, add_frame, add_message, add_method, aim, shape_of_method,
)
from .contents_c cimport whole_content

from amqpcodec.capture.dialects import module as _module

from .binary_py import VALUE, VALUES
from .binary_py import ValueReader as RowReader

cdef enum:
    _FRAMES = 1
    _METHODS = 2
    _MESSAGES = 3

cdef dict _TABLES = {"frames": _FRAMES, "methods": _METHODS, "messages": _MESSAGES}


def _none_counted_only(method):
    """No method of the connection class is read here: it may change how the rest of a value is to be read."""
    return False


@cython.final
cdef class ValueReader:
    """Reads columns of octets into the columns of a table; see `binary_py.ValueReader`."""

    cdef object _rows
    cdef Columns _store
    cdef Plan _plan
    cdef Targets _targets
    cdef Column *_number  # of the value, where all its rows are wanted
    cdef Origin _origin
    cdef int _table
    cdef int64_t _size_limit
    cdef uint64_t _body_limit

    def __cinit__(self, table, columns, decoding, *, direction, explode):
        reader = RowReader(table, columns, decoding, direction=direction, explode=explode, store=Columns)
        self._rows = reader
        self._store = reader.store
        make = reader.make
        self._plan = Plan(self._store, _module(decoding.dialect), make, make.checks, _none_counted_only)
        aim(&self._targets, self._store)
        self._number = self._store.find(VALUE.name, "") if explode else NULL
        self._origin.layout = &self._plan.layout
        self._origin.direction = direction
        self._table = _TABLES[table]
        self._size_limit = decoding.frame_max - OVERHEAD
        self._body_limit = decoding.limits.body_size

    @property
    def columns(self):
        """Return the columns of the batches."""
        return self._rows.columns

    def read(self, values):
        """The rows of a column of octets; see `binary_py.ValueReader.read`."""
        cdef View view
        cdef Py_ssize_t count = values.length
        held = []
        memset(&view, 0, sizeof(View))
        try:
            look_at(&view, VALUES, values, count, held)
            with nogil:
                self._read(&view, count)
        finally:
            free_view(&view)
        return self._store.take()

    cdef int _read(self, const View *view, Py_ssize_t count) except -1 nogil:
        cdef const unsigned char *p = NULL
        cdef Py_ssize_t at, rows
        cdef size_t size = 0
        for at in range(count):
            if self._targets.table.trouble:
                break
            if not is_given(view, at):
                self._targets.table.rows += self._number is NULL
                continue
            rows = size = 0
            if offset_at(view, at) != offset_at(view, at + 1):  # there may be no memory for nothing to lie in
                p = cell_at(view, at, &size)
                if self._is_in_order(p, p + size) and self._add(p, p + size, at, &rows):
                    continue
            with gil:
                self._rows.add(at, PyBytes_FromStringAndSize(<const char *>p, <Py_ssize_t>size), rows)
        return 0

    cdef bint _is_in_order(self, const unsigned char *p, const unsigned char *end) noexcept nogil:
        """Return whether a value is a row of frames, and has as many rows of the table as there are to be."""
        cdef size_t size
        cdef Py_ssize_t rows = 0
        while p < end:
            size = self._frame(p, end)
            if size == 0:
                return False
            if self._table == _FRAMES:
                rows += 1
            elif self._table == _METHODS:
                rows += p[0] == METHOD
            elif self._carries_content(p, size):
                size = whole_content(self._origin.layout, p, end, self._body_limit, self._size_limit)
                if size == 0:
                    return False
                rows += 1
            elif p[0] != METHOD:
                return False  # of a content, and out of order
            p += size
        return rows == 1 or self._number is not NULL

    cdef bint _add(
        self, const unsigned char *begin, const unsigned char *end, Py_ssize_t at, Py_ssize_t *rows
    ) noexcept nogil:
        """Add the rows of a value and count them; False if cells decline the next."""
        cdef const unsigned char *p = begin
        cdef Position position = Position(0, NO_NUMBER, NO_NUMBER)
        cdef size_t size
        while p < end:
            position.offset = p - begin
            size = <size_t>u32(p + 3) + OVERHEAD
            if self._table == _MESSAGES:
                if not self._carries_content(p, size):
                    p += size
                    continue
                size = whole_content(self._origin.layout, p, end, self._body_limit, self._size_limit)
                if not add_message(&self._targets, &self._origin, p, size, &position, NO_NUMBER):
                    return False
            elif self._table == _FRAMES:
                add_frame(&self._targets, &self._origin, p, size, &position)
            elif p[0] != METHOD:
                p += size
                continue
            elif not add_method(&self._targets, &self._origin, p, size, &position):
                return False
            if self._number is not NULL:
                put_int32(self._number, self._targets.table.rows - 1, <int32_t>at)
            rows[0] += 1
            p += size
        return True

    cdef inline size_t _frame(self, const unsigned char *p, const unsigned char *end) noexcept nogil:
        """Octets of the frame at `p`, which may lead to nothing special; else 0."""
        cdef long long size
        if frame_at(p, end - p, self._origin.layout.frame_types, self._size_limit, False, &size) != WHOLE:
            return 0
        if p[0] == METHOD and (size < LEAST_METHOD or u16(p + 7) == self._origin.layout.connection_class):
            return 0
        return <size_t>size

    cdef inline bint _carries_content(self, const unsigned char *p, size_t size) noexcept nogil:
        """Return whether a frame is a method with which a content begins."""
        cdef const Shape *shape
        if p[0] != METHOD or size < LEAST_METHOD:
            return False
        shape = shape_of_method(self._origin.layout, u32(p + 7))
        return shape is not NULL and shape.carries_content
