# Columns as they lie in memory, by the Arrow columnar format: values or octets with offsets, and a bit a row that
# says what is not null. Cells are set without the GIL and by the number of their row: rows that were left out
# are null, and cost nothing before a later one is set or the column is taken.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from .._kernel.octets cimport word

cdef enum:
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    TEXT = 6
    OCTETS = 7
    MAP = 8
    STRUCT = 9

cdef enum:
    NO_MEMORY = 1
    TOO_LARGE = 2
    FAILED = 3  # by an exception

cdef enum:
    BLOCK = 16  # octets copied at once; there is memory for as many behind those of every text

cdef extern from *:
    const size_t MAX_OCTETS "2147483647U"  # what an offset of 32 bits can point behind


cdef struct Column:
    int kind
    int width  # octets of a value, for kinds of one width
    Py_ssize_t rows  # set or null so far
    Py_ssize_t room  # rows there is memory for
    Py_ssize_t usual_rows  # rows of the last batch: memory to begin the next with
    Py_ssize_t nulls
    unsigned char *bits  # NULL as long as nothing is null
    unsigned char *values  # numbers, bits or octets
    size_t used  # octets in `values` behind the last row, or entries of a map
    size_t usual_octets  # the same of the last batch
    size_t space  # octets there is memory for in `values`
    int32_t *offsets
    Column *inside  # what a map or struct holds, as many as `members`
    int members
    int *trouble  # of all columns of a batch: NO_MEMORY or TOO_LARGE once a cell could not be set


cdef int kind_of(object described) except 0
cdef tuple inside_of(object described)
cdef bint widen(Column *column, Py_ssize_t row) noexcept nogil
cdef bint pass_over(Column *column, Py_ssize_t row) noexcept nogil
cdef bint add_space(Column *column, size_t size) noexcept nogil
cdef void cut(Column *column, Py_ssize_t row) noexcept nogil
cdef bint is_utf8(const unsigned char *p, size_t size) noexcept nogil


cdef inline bint claim(Column *column, Py_ssize_t row) noexcept nogil:
    """Make a row the last of a column, not null; False if there is no memory for it."""
    if row >= column.room and not widen(column, row):
        return False
    if column.rows != row and not pass_over(column, row):
        return False
    if column.bits is not NULL:
        column.bits[row >> 3] |= <unsigned char>(1 << (row & 7))
    column.rows = row + 1
    return True


cdef inline void put_bool(Column *column, Py_ssize_t row, bint value) noexcept nogil:
    if claim(column, row) and value:
        column.values[row >> 3] |= <unsigned char>(1 << (row & 7))


cdef inline void put_int8(Column *column, Py_ssize_t row, int8_t value) noexcept nogil:
    if claim(column, row):
        (<int8_t *>column.values)[row] = value


cdef inline void put_int16(Column *column, Py_ssize_t row, int16_t value) noexcept nogil:
    if claim(column, row):
        (<int16_t *>column.values)[row] = value


cdef inline void put_int32(Column *column, Py_ssize_t row, int32_t value) noexcept nogil:
    if claim(column, row):
        (<int32_t *>column.values)[row] = value


cdef inline void put_int64(Column *column, Py_ssize_t row, int64_t value) noexcept nogil:
    if claim(column, row):
        (<int64_t *>column.values)[row] = value


cdef inline void put_number(Column *column, Py_ssize_t row, int64_t value) noexcept nogil:
    """A number that fits, whatever the width of the column."""
    if not claim(column, row):
        return
    if column.kind == INT64:
        (<int64_t *>column.values)[row] = value
    elif column.kind == INT32:
        (<int32_t *>column.values)[row] = <int32_t>value
    elif column.kind == INT16:
        (<int16_t *>column.values)[row] = <int16_t>value
    else:
        (<int8_t *>column.values)[row] = <int8_t>value


cdef inline bint open_cell(Column *column, Py_ssize_t row, size_t size) noexcept nogil:
    """Claim a row for `size` octets, which the caller puts behind those that are there."""
    if not claim(column, row):
        return False
    if size > column.space - column.used and not add_space(column, size):
        column.offsets[row + 1] = <int32_t>column.used
        return False
    column.offsets[row + 1] = <int32_t>(column.used + size)
    return True


cdef inline void put_octets(Column *column, Py_ssize_t row, const void *octets, size_t size) noexcept nogil:
    if open_cell(column, row, size) and size:
        memcpy(column.values + column.used, octets, size)
        column.used += size


cdef inline void put_constant(Column *column, Py_ssize_t row, const char *octets, size_t size) noexcept nogil:
    """A text behind which up to `BLOCK` octets may be read: no call, as `memcpy` of an unknown size is."""
    cdef unsigned char *to
    if not open_cell(column, row, size) or size == 0:
        return
    to = column.values + column.used
    column.used += size
    memcpy(to, octets, BLOCK)
    while size > BLOCK:
        octets += BLOCK
        to += BLOCK
        size -= BLOCK
        memcpy(to, octets, BLOCK)


cdef inline void add_octets(Column *column, Py_ssize_t row, const void *octets, size_t size) noexcept nogil:
    """Lengthen the cell of the last row."""
    if size == 0 or column.rows != row + 1:
        return
    if size > column.space - column.used and not add_space(column, size):
        return
    memcpy(column.values + column.used, octets, size)
    column.used += size
    column.offsets[row + 1] = <int32_t>column.used


cdef inline bint put_text(
    Column *column, Py_ssize_t row, const unsigned char *p, size_t size, const unsigned char *limit
) noexcept nogil:
    """Octets that ought to be UTF-8; False if they are not: then what is in the cell counts for nothing.

    What is behind them, up to the limit, may be read as well.
    """
    cdef unsigned char *to
    cdef bint ascii
    if not open_cell(column, row, size) or size == 0:  # there may be no memory for octets to point into yet
        return True
    to = column.values + column.used
    ascii = copied_blocks(to, p, size) if <size_t>(limit - p) >= size + BLOCK else copied_ascii(to, p, size)
    if not ascii and not is_utf8(p, size):
        column.offsets[row + 1] = <int32_t>column.used
        return False
    column.used += size
    return True


cdef inline bint copied_blocks(unsigned char *to, const unsigned char *p, size_t size) noexcept nogil:
    """Copy octets, and up to `BLOCK` behind them; whether all but those are ASCII.

    How often it branches does not depend on the size but for its blocks, so the processor guesses right.
    """
    cdef const unsigned char *masks = <const unsigned char *>(
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    )
    cdef uint64_t first, second, seen = 0
    while True:
        memcpy(&first, p, 8)
        memcpy(&second, p + 8, 8)
        memcpy(to, &first, 8)
        memcpy(to + 8, &second, 8)
        if size <= BLOCK:
            break
        seen |= first | second
        p += BLOCK
        to += BLOCK
        size -= BLOCK
    masks += BLOCK - size
    seen = (seen & 0x8080808080808080U) | (first & word(masks)) | (second & word(masks + 8))
    return seen == 0


cdef inline bint copied_ascii(unsigned char *to, const unsigned char *p, size_t size) noexcept nogil:
    """Copy octets; whether all are ASCII."""
    cdef const unsigned char *last
    cdef uint64_t each, seen
    cdef unsigned char first, middle
    if size >= 8:
        last = p + size - 8
        memcpy(&seen, last, 8)  # may overlap with what the loop copies
        memcpy(to + size - 8, &seen, 8)
        while p < last:
            each = word(p)
            memcpy(to, &each, 8)
            seen |= each
            p += 8
            to += 8
        return (seen & 0x8080808080808080U) == 0
    if size >= 4:
        return _copied_few(to, p, size)
    if size == 0:
        return True
    first, middle = p[0], p[size >> 1]
    to[size - 1] = p[size - 1]
    to[size >> 1] = middle
    to[0] = first
    return (first | middle | to[size - 1]) < 0x80


cdef inline bint _copied_few(unsigned char *to, const unsigned char *p, size_t size) noexcept nogil:
    """Copy four to seven octets."""
    cdef uint32_t first, last
    memcpy(&first, p, 4)
    memcpy(&last, p + size - 4, 4)
    memcpy(to, &first, 4)
    memcpy(to + size - 4, &last, 4)
    return ((first | last) & 0x80808080U) == 0


# -- blocks of memory that columns lie in


cdef enum:
    _MOST_SPARES = 128


cdef struct Block:
    void *block
    size_t size


cdef class Spares:
    cdef Block _blocks[_MOST_SPARES]  # the oldest first
    cdef int _count
    cdef size_t _octets
    cdef size_t _most_octets
    cdef size_t _handed_over  # octets of the batch in the making
    cdef volatile char _taken

    cdef void end_batch(self) noexcept
    cdef size_t fetch(self, void **block, size_t size) noexcept
    cdef void keep(self, void *block, size_t size) noexcept
    cdef void _drop(self, int index) noexcept


cdef class Memory:
    cdef void *_block
    cdef Py_ssize_t _size
    cdef size_t _room
    cdef Spares _spares


cdef struct Octets:  # that grow
    unsigned char *start
    size_t used
    size_t room


cdef inline bint append(Octets *octets, const unsigned char *p, size_t size) noexcept nogil:
    """Put octets behind those that are there; False if there is no memory for them."""
    cdef size_t room = octets.room
    cdef void *moved
    if size > room - octets.used:
        room = max(octets.used + size, 2 * room)
        moved = realloc(octets.start, room)
        if moved is NULL:
            return False
        octets.start = <unsigned char *>moved
        octets.room = room
    memcpy(octets.start + octets.used, p, size)
    octets.used += size
    return True


cdef inline void free_octets(Octets *octets) noexcept nogil:
    free(octets.start)
    octets.start = NULL
    octets.used = octets.room = 0


# -- the columns of a table


cdef struct Table:  # of a batch in the making
    Column *columns
    int count
    Py_ssize_t rows
    size_t octets  # of the frames that the rows were made of
    int trouble


cdef void cut_row(Table *table) noexcept nogil


cdef class Columns:
    cdef readonly tuple described  # what schemas.py says of each
    cdef Table table
    cdef Spares _spares
    cdef object _failure  # what `check` raises, if `trouble` is FAILED

    cdef Column *find(self, str name, str inner) except? NULL
    cdef void fail(self, object failure) noexcept
    cdef int check(self) except -1


# -- memory of columns, whoever made it


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
