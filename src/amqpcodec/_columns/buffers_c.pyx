# cython: boundscheck=False, wraparound=False, cdivision=True
"""Columns of a batch as they lie in memory, see buffers_c.pxd."""

cimport cython

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove, memset

from .._kernel.lock_c cimport amqp_lock_acquire, amqp_lock_release

from .buffers_py import MAP_ENTRY, Batch, Filled, parts
from .schemas import Column as Described

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef dict _KINDS = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "timestamp": INT64,
    "string": TEXT,
    "binary": OCTETS,
    "map": MAP,
    "content": STRUCT,
    "struct": STRUCT,
}
cdef dict _WIDTHS = {INT8: 1, INT16: 2, INT32: 4, INT64: 8}
cdef enum:
    _LEAST_ROOM = 64
    _LEAST_OCTETS = 256
    _MOST_USUAL_OCTETS = 8 * 1024 * 1024
    _LEAST_SPARE = 4096  # octets of a block that is worth keeping

cdef char _NOTHING = 0


cdef inline size_t _bit_octets(Py_ssize_t rows) noexcept nogil:
    return <size_t>(rows + 7) >> 3


cdef bint _resize(void **block, size_t size) noexcept nogil:
    """Change the size of a block of memory."""
    cdef void *moved = realloc(block[0], size)
    if moved is NULL:
        return False
    block[0] = moved
    return True


cdef bint _resize_bits(unsigned char **block, Py_ssize_t old, Py_ssize_t new) noexcept nogil:
    """Change the number of bits in a block of memory; those that are new are zero."""
    if not _resize(<void **>block, _bit_octets(new)):
        return False
    memset(block[0] + _bit_octets(old), 0, _bit_octets(new) - _bit_octets(old))
    return True


cdef bint widen(Column *column, Py_ssize_t row) noexcept nogil:
    """Have memory for a row and more."""
    cdef Py_ssize_t room = max(row + 1, 2 * column.room, column.usual_rows, <Py_ssize_t>_LEAST_ROOM)
    cdef bint done = True
    if column.kind == BOOL:
        done = _resize_bits(&column.values, column.room, room)
    elif column.width:
        done = _resize(<void **>&column.values, <size_t>(room * column.width))
    elif column.kind != STRUCT:
        done = _resize(<void **>&column.offsets, <size_t>(room + 1) * sizeof(int32_t))
        if done and column.room == 0:
            column.offsets[0] = 0
    if done and column.bits is not NULL:
        done = _resize_bits(&column.bits, column.room, room)
    if not done:
        column.trouble[0] = NO_MEMORY
        return False
    column.room = room
    return True


cdef bint pass_over(Column *column, Py_ssize_t row) noexcept nogil:
    """Make the rows before one null that are not set; there is memory for them."""
    cdef Py_ssize_t at = column.rows
    if column.bits is NULL:
        column.bits = <unsigned char *>calloc(1, _bit_octets(column.room))
        if column.bits is NULL:
            column.trouble[0] = NO_MEMORY
            return False
        memset(column.bits, 0xFF, <size_t>at >> 3)
        if at & 7:
            column.bits[at >> 3] = <unsigned char>((1 << (at & 7)) - 1)
    column.nulls += row - at
    if column.width:
        memset(column.values + at * column.width, 0, <size_t>((row - at) * column.width))
    if column.offsets is not NULL:
        while at < row:
            at += 1
            column.offsets[at] = <int32_t>column.used
    column.rows = row
    return True


cdef bint add_space(Column *column, size_t size) noexcept nogil:
    """Have memory for further octets, as far as an offset can point."""
    cdef size_t need = column.used + size
    cdef size_t space = 2 * column.space
    if need > MAX_OCTETS:
        column.trouble[0] = TOO_LARGE
        return False
    space = min(max(space, need, column.usual_octets, <size_t>_LEAST_OCTETS), MAX_OCTETS)
    if not _resize(<void **>&column.values, space + BLOCK):
        column.trouble[0] = NO_MEMORY
        return False
    column.space = space
    return True


cdef void cut(Column *column, Py_ssize_t row) noexcept nogil:
    """Forget the rows from one on."""
    cdef Py_ssize_t at = column.rows
    cdef int member
    while at > row:
        at -= 1
        if column.kind == BOOL:
            column.values[at >> 3] &= <unsigned char>~(1 << (at & 7))
        if column.bits is NULL:
            continue
        if column.bits[at >> 3] >> (at & 7) & 1:
            column.bits[at >> 3] &= <unsigned char>~(1 << (at & 7))
        else:
            column.nulls -= 1
    if column.rows > row:
        column.rows = row
        if column.offsets is not NULL:
            column.used = <size_t>column.offsets[row]
    for member in range(column.members):
        cut(column.inside + member, <Py_ssize_t>column.used if column.kind == MAP else row)


cdef bint is_utf8(const unsigned char *p, size_t size) noexcept nogil:
    """Return whether octets are UTF-8, by the table of well-formed sequences in the Unicode standard (section 3.9)."""
    cdef const unsigned char *end = p + size
    cdef unsigned char low, high
    cdef int further
    while p < end:
        if p[0] < 0x80:
            p += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= p[0] <= 0xDF:
            further = 1
        elif 0xE0 <= p[0] <= 0xEF:
            further = 2
            if p[0] == 0xE0:
                low = 0xA0
            elif p[0] == 0xED:
                high = 0x9F
        elif 0xF0 <= p[0] <= 0xF4:
            further = 3
            if p[0] == 0xF0:
                low = 0x90
            elif p[0] == 0xF4:
                high = 0x8F
        else:
            return False
        if end - p <= further or p[1] < low or p[1] > high:
            return False
        p += 2
        while further > 1:
            if p[0] & 0xC0 != 0x80:
                return False
            p += 1
            further -= 1
    return True


cdef int kind_of(object described) except 0:
    """The kind of a column that tables.py describes."""
    return <int>_KINDS[described.kind]


cdef tuple inside_of(object described):
    """Return the columns inside one, as schemas.py describes them."""
    if described.kind == "map":
        return (Described("entries", "struct", MAP_ENTRY),)
    return parts(described)


cdef Column *_set_up(tuple described, int *trouble) except? NULL:
    """Columns without rows."""
    cdef Column *columns = <Column *>calloc(<size_t>max(len(described), 1), sizeof(Column))
    cdef Column *column = columns
    cdef tuple inside
    if columns is NULL:
        raise MemoryError
    for each in described:
        column.kind = kind_of(each)
        column.width = _WIDTHS.get(column.kind, 0)
        column.trouble = trouble
        inside = inside_of(each)
        if inside:
            column.inside = _set_up(inside, trouble)
            column.members = <int>len(inside)
        column += 1
    return columns


cdef void _free(Column *columns, int count) noexcept:
    cdef int index
    for index in range(count):
        free(columns[index].bits)
        free(columns[index].values)
        free(columns[index].offsets)
        if columns[index].inside is not NULL:
            _free(columns[index].inside, columns[index].members)
    free(columns)


cdef int _put(Column *column, object described, Py_ssize_t row, object value) except -1:
    """Set a cell from a Python value, None for null."""
    cdef Py_ssize_t size = 0
    cdef const char *octets
    cdef int member = 0
    if value is None:
        return 0
    if column.kind == BOOL:
        put_bool(column, row, value)
    elif column.width:
        put_number(column, row, value)
    elif column.kind == TEXT:
        octets = PyUnicode_AsUTF8AndSize(value, &size)
        put_octets(column, row, octets, <size_t>size)
    elif column.kind == OCTETS:
        put_octets(column, row, PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value))
    elif column.kind == MAP:
        _put_pairs(column, row, value)
    elif claim(column, row):
        for each in inside_of(described):
            _put(column.inside + member, each, row, value.get(each.name))
            member += 1
    return 0


cdef int _put_pairs(Column *column, Py_ssize_t row, object pairs) except -1:
    if not claim(column, row):
        return 0
    for key, text in pairs:
        if claim(column.inside, <Py_ssize_t>column.used):
            _put(column.inside.inside, MAP_ENTRY[0], <Py_ssize_t>column.used, key)
            _put(column.inside.inside + 1, MAP_ENTRY[1], <Py_ssize_t>column.used, text)
        column.used += 1
    column.offsets[row + 1] = <int32_t>column.used
    return 0


@cython.final
cdef class _Zeros:
    """Memory that is zero, which all columns share of which every row is null."""

    cdef object _octets

    cdef object of(self, size_t size):
        """So many octets of it."""
        if self._octets is None or size > <size_t>len(self._octets):
            self._octets = memoryview(bytes(size))
        return self._octets[:<Py_ssize_t>size]


cdef object _taken(Column *column, Py_ssize_t rows, Spares spares, _Zeros zeros):
    """Return the contents of a column, as `Columns.take` does."""
    cdef Py_ssize_t inner = <Py_ssize_t>column.used if column.kind == MAP else rows
    cdef size_t bits = _bit_octets(rows), room
    cdef int member
    if column.rows == 0:
        return _all_null(column, rows, zeros)
    if column.rows < rows and ((rows > column.room and not widen(column, rows - 1)) or not pass_over(column, rows)):
        raise MemoryError
    room = _bit_octets(column.room)
    buffers = [handed_over(<void **>&column.bits, bits, room, spares) if column.nulls else None]
    if column.offsets is not NULL:
        buffers.append(handed_over(
            <void **>&column.offsets, <size_t>(rows + 1) * sizeof(int32_t),
            <size_t>(column.room + 1) * sizeof(int32_t), spares,
        ))
    if column.kind == BOOL:
        buffers.append(handed_over(<void **>&column.values, bits, room, spares))
    elif column.width:
        buffers.append(handed_over(
            <void **>&column.values, <size_t>(rows * column.width), <size_t>(column.room * column.width), spares
        ))
    elif column.kind == TEXT or column.kind == OCTETS:
        buffers.append(handed_over(<void **>&column.values, column.used, column.space + BLOCK, spares))
    inside = tuple([_taken(column.inside + member, inner, spares, zeros) for member in range(column.members)])
    taken = Filled(rows, column.nulls, tuple(buffers), inside)
    _begin(column, rows, spares)
    return taken


cdef object _all_null(const Column *column, Py_ssize_t rows, _Zeros zeros):
    """Return the contents of a column of nulls alone. The column keeps its memory."""
    cdef Py_ssize_t inner = 0 if column.kind == MAP else rows
    cdef size_t bits = _bit_octets(rows)
    cdef int member
    buffers = [zeros.of(bits) if rows else None]
    if column.kind == TEXT or column.kind == OCTETS or column.kind == MAP:
        buffers.append(zeros.of(<size_t>(rows + 1) * sizeof(int32_t)))
    if column.kind != MAP and column.kind != STRUCT:
        buffers.append(zeros.of(bits if column.kind == BOOL else <size_t>(rows * column.width)))
    inside = tuple([_all_null(column.inside + member, inner, zeros) for member in range(column.members)])
    return Filled(rows, rows, tuple(buffers), inside)


cdef void _begin(Column *column, Py_ssize_t rows, Spares spares) noexcept:
    """Begin anew behind a batch of so many rows, in memory that was given back if there is any."""
    cdef size_t size = 0, width = <size_t>column.width if column.width else sizeof(int32_t)
    cdef size_t least_rows = <size_t>(rows + rows // 16), least_octets = column.used + column.used // 16
    free(column.bits)  # bits of a row that was cut again
    column.bits = NULL
    # With something to spare, since growing for a few more would take memory twice as large.
    column.usual_rows = rows + rows // 8
    column.usual_octets = min(column.used + column.used // 8, <size_t>_MOST_USUAL_OCTETS)
    column.rows = column.room = column.nulls = 0
    column.used = column.space = 0
    if column.width:
        size = spares.fetch(<void **>&column.values, least_rows * width)
        column.room = <Py_ssize_t>(size // width)
    elif column.kind == TEXT or column.kind == OCTETS or column.kind == MAP:
        size = spares.fetch(<void **>&column.offsets, (least_rows + 1) * width)
        if size:
            column.room = <Py_ssize_t>(size // width) - 1
            column.offsets[0] = 0
        if column.kind != MAP:
            size = spares.fetch(<void **>&column.values, least_octets + BLOCK)
            column.space = min(size - BLOCK, MAX_OCTETS) if size else 0


cdef void cut_row(Table *table) noexcept nogil:
    """Forget what was set of the row behind the last."""
    cdef int index
    for index in range(table.count):
        cut(table.columns + index, table.rows)


@cython.final
cdef class Columns:
    """The columns of one table, filled row by row; see `buffers_py.Columns`."""

    def __cinit__(self, described):
        self.described = tuple(described)
        self._spares = Spares()
        self.table.columns = _set_up(self.described, &self.table.trouble)
        self.table.count = <int>len(self.described)

    def __dealloc__(self):
        if self.table.columns is not NULL:
            _free(self.table.columns, self.table.count)

    @property
    def rows(self):
        """Rows of the batch so far."""
        return self.table.rows

    @property
    def octets(self):
        """Octets of the frames that they were made of."""
        return self.table.octets

    def append(self, dict cells, size_t octets):
        """Add a row; see `buffers_py.Columns.append`."""
        cdef int index = 0
        for each in self.described:
            _put(self.table.columns + index, each, self.table.rows, cells.get(each.name))
            index += 1
        self.table.rows += 1
        self.table.octets += octets

    def take(self):
        """Hand over the rows so far, without copying them, and begin anew; see `buffers_py.Columns.take`."""
        cdef Py_ssize_t rows = self.table.rows
        self.check()
        self.table.rows = 0
        self.table.octets = 0
        self.table.trouble = NO_MEMORY  # if it ends on the way, the columns are no longer of one length
        zeros = _Zeros()
        taken = [_taken(self.table.columns + index, rows, self._spares, zeros) for index in range(self.table.count)]
        batch = Batch(rows, tuple(taken))
        self._spares.end_batch()
        self.table.trouble = 0
        return batch

    cdef Column *find(self, str name, str inner) except? NULL:
        """The column of a name, or inside one; NULL if it was not asked for."""
        cdef Py_ssize_t member
        cdef int index = 0
        for each in self.described:
            if each.name == name:
                if not inner:
                    return self.table.columns + index
                names = [child.name for child in each.children]
                member = names.index(inner) if inner in names else -1
                return self.table.columns[index].inside + member if member >= 0 else NULL
            index += 1
        return NULL

    cdef void fail(self, object failure) noexcept:
        """Let `check` raise an exception that ended a row where nothing can be raised."""
        self._failure = failure
        self.table.trouble = FAILED

    cdef int check(self) except -1:
        """Complain if a cell could not be set."""
        if self.table.trouble == FAILED:
            self.table.trouble = NO_MEMORY  # the columns are no longer of one length
            failure, self._failure = self._failure, None
            raise failure
        if self.table.trouble == NO_MEMORY:
            raise MemoryError
        if self.table.trouble == TOO_LARGE:
            raise OverflowError("a column of more than 2147483647 octets: ask for smaller batches")
        return 0


# -- blocks of memory, reused for later batches


@cython.final
cdef class Spares:
    """The blocks that batches returned, as long as they are no more than two batches have.

    Whoever finds another thread here goes without: a block is allocated or freed instead.
    """

    def __dealloc__(self):
        while self._count:
            free(self._blocks[0].block)
            self._drop(0)

    cdef void end_batch(self) noexcept:
        """Learn from a batch that was handed over how many octets to keep."""
        if amqp_lock_acquire(&self._taken):
            self._most_octets = 2 * self._handed_over
            amqp_lock_release(&self._taken)
        self._handed_over = 0

    cdef size_t fetch(self, void **block, size_t size) noexcept:
        """Put a block of at least `size` octets at `block`; how many it has, 0 if there is none that fits."""
        cdef Block found = Block(NULL, 0)
        cdef int index
        if size < _LEAST_SPARE or not amqp_lock_acquire(&self._taken):
            return 0
        for index in range(self._count - 1, -1, -1):
            if size <= self._blocks[index].size <= 2 * size:
                found = self._blocks[index]
                block[0] = found.block
                self._drop(index)
                break
        amqp_lock_release(&self._taken)
        return found.size

    cdef void keep(self, void *block, size_t size) noexcept:
        """Take a block that nobody looks at any more, instead of the oldest ones if there are too many."""
        if size < _LEAST_SPARE or size > self._most_octets or not amqp_lock_acquire(&self._taken):
            free(block)
            return
        while self._count == _MOST_SPARES or self._octets + size > self._most_octets:
            free(self._blocks[0].block)
            self._drop(0)
        self._blocks[self._count] = Block(block, size)
        self._count += 1
        self._octets += size
        amqp_lock_release(&self._taken)

    cdef void _drop(self, int index) noexcept:
        """Forget a block."""
        self._count -= 1
        self._octets -= self._blocks[index].size
        memmove(&self._blocks[index], &self._blocks[index + 1], <size_t>(self._count - index) * sizeof(Block))


@cython.final
cdef class Memory:
    """A block of memory that was a column's, given back once nobody looks at it any more."""

    def __dealloc__(self):
        if self._spares is None:
            free(self._block)
        else:
            self._spares.keep(self._block, self._room)

    def __getbuffer__(self, Py_buffer *view, int flags):
        # A buffer without octets has an address as well: not everybody takes NULL for one.
        PyBuffer_FillInfo(view, self, self._block or <void *>&_NOTHING, self._size, 1, flags)

    def __len__(self):
        return self._size


cdef Memory handed_over(void **block, size_t size, size_t room, Spares spares):
    """Take `size` octets at `block`, a block of `room` that its owner gives up."""
    cdef Memory memory = Memory.__new__(Memory)
    memory._block, memory._size, memory._room, memory._spares = block[0], <Py_ssize_t>size, room, spares
    block[0] = NULL
    spares._handed_over += room
    return memory


# -- memory of columns that came from elsewhere: none of it is trusted


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
