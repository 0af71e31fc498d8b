# The memory of columns, whoever made it, as Arrow lays it out.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.string cimport memcpy

from .buffers_c cimport INT16, INT32, INT64


cdef struct View:  # of a column's memory
    int kind
    bint empty  # everything is null, and nothing else is known of it
    const unsigned char *bits  # NULL if nothing is null
    const unsigned char *values  # numbers, bits or octets
    const unsigned char *offsets
    View *inside
    int members


cdef int look_at(View *view, object described, object filled, Py_ssize_t rows, list held) except -1
cdef void free_view(View *view) noexcept
cdef size_t octets_in(const View *view, Py_ssize_t rows) noexcept


cdef inline bint is_given(const View *view, Py_ssize_t row) noexcept nogil:
    return view is not NULL and not view.empty and (view.bits is NULL or view.bits[row >> 3] >> (row & 7) & 1)


cdef inline bint is_true(const View *view, Py_ssize_t row) noexcept nogil:
    return view.values[row >> 3] >> (row & 7) & 1


cdef inline int64_t number_at(const View *view, Py_ssize_t row) noexcept nogil:
    cdef int64_t wide
    cdef int32_t middle
    cdef int16_t small
    if view.kind == INT64:
        memcpy(&wide, view.values + 8 * row, 8)
        return wide
    if view.kind == INT32:
        memcpy(&middle, view.values + 4 * row, 4)
        return middle
    if view.kind == INT16:
        memcpy(&small, view.values + 2 * row, 2)
        return small
    return <int8_t>view.values[row]


cdef inline size_t offset_at(const View *view, Py_ssize_t row) noexcept nogil:
    cdef int32_t offset
    memcpy(&offset, view.offsets + 4 * row, 4)
    return <size_t>offset


cdef inline const unsigned char *cell_at(const View *view, Py_ssize_t row, size_t *size) noexcept nogil:
    """The octets of a cell."""
    cdef size_t start = offset_at(view, row)
    size[0] = offset_at(view, row + 1) - start
    return view.values + start
