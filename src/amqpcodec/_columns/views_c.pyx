# cython: boundscheck=False, wraparound=False
"""Looking at the memory of columns that came from elsewhere: nothing is believed that could lead out of it."""

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from .buffers_c cimport BOOL, INT8, INT16, INT32, INT64, MAP, OCTETS, STRUCT, TEXT, inside_of, kind_of

cdef dict _WIDTHS = {INT8: 1, INT16: 2, INT32: 4, INT64: 8}


cdef int look_at(View *view, object described, object filled, Py_ssize_t rows, list held) except -1:
    """Look at the memory of a column that has at least as many rows."""
    cdef tuple inside = inside_of(described)
    cdef Py_ssize_t size = 0
    cdef int index = 0
    free_view(view)
    if filled.length < rows:
        raise ValueError(f"column {described.name} has {filled.length} rows, not {rows}")
    view.kind = kind_of(described)
    view.empty = filled.nulls == filled.length
    if rows == 0 or view.empty:
        return 0
    if filled.nulls and filled.buffers[0] is not None:
        view.bits = _memory(filled.buffers[0], (rows + 7) >> 3, &size, held)
    if view.kind == BOOL:
        view.values = _memory(filled.buffers[1], (rows + 7) >> 3, &size, held)
    elif view.kind == TEXT or view.kind == OCTETS or view.kind == MAP:
        view.offsets = _memory(filled.buffers[1], 4 * (rows + 1), &size, held)
        if view.kind == MAP:
            size = filled.children[0].length
        else:
            view.values = _memory(filled.buffers[2], 0, &size, held)
        _check_offsets(view, rows, size)
    elif view.kind != STRUCT:
        view.values = _memory(filled.buffers[1], rows * <Py_ssize_t>_WIDTHS[view.kind], &size, held)
    if inside:
        view.inside = <View *>calloc(<size_t>len(inside), sizeof(View))
        if view.inside is NULL:
            raise MemoryError
        view.members = <int>len(inside)
        inner = <Py_ssize_t>offset_at(view, rows) if view.kind == MAP else rows
        for child, memory in zip(inside, filled.children, strict=True):
            look_at(view.inside + index, child, memory, inner, held)
            index += 1
    return 0


cdef const unsigned char *_memory(object buffer, Py_ssize_t least, Py_ssize_t *size, list held) except? NULL:
    """Where a buffer lies and how large it is; it stays there as long as it is held."""
    if buffer is None:
        buffer = b""
    view = memoryview(buffer)
    held.append(view)
    size[0] = PyMemoryView_GET_BUFFER(view).len
    if size[0] < least:
        raise ValueError(f"a buffer of {size[0]} octets where a column needs {least}")
    return <const unsigned char *>PyMemoryView_GET_BUFFER(view).buf


cdef int _check_offsets(const View *view, Py_ssize_t rows, Py_ssize_t size) except -1:
    cdef int32_t before, behind
    cdef unsigned int wrong = 0  # no way out of the loop, so that it takes several at a time
    cdef Py_ssize_t row
    for row in range(rows):
        memcpy(&before, view.offsets + 4 * row, 4)
        memcpy(&behind, view.offsets + 4 * row + 4, 4)
        wrong |= behind < before
    memcpy(&before, view.offsets, 4)
    memcpy(&behind, view.offsets + 4 * rows, 4)
    if wrong or before < 0 or behind > size:
        raise ValueError("the offsets of a column lead out of its memory")
    return 0


cdef void free_view(View *view) noexcept:
    cdef int index
    for index in range(view.members):
        free_view(view.inside + index)
    free(view.inside)
    memset(view, 0, sizeof(View))


cdef size_t octets_in(const View *view, Py_ssize_t rows) noexcept:
    """Octets that the text, octets and entries of a column can lead to."""
    cdef size_t most = 0, entries
    cdef int index
    if rows == 0 or view.empty:
        return 0
    if view.kind == TEXT or view.kind == OCTETS:
        return offset_at(view, rows) - offset_at(view, 0)
    if view.kind == MAP:
        entries = offset_at(view, rows)
        # Each entry has two lengths and a tag beside its texts.
        return 6 * entries + octets_in(view.inside, <Py_ssize_t>entries)
    for index in range(view.members):
        most += octets_in(view.inside + index, rows)
    return most
