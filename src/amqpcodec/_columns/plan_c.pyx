# cython: boundscheck=False, wraparound=False
"""From the octets of methods and content headers to the cells of a row, by a plan made once.

Only what is plainly right gets through: where a function here says no, the row is left to the exact way,
which knows what to make of it, and what was set of it is cut off again.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport BODY, HEADER, HEARTBEAT, METHOD, OVERHEAD
from .buffers_c cimport (
    Column, Columns, claim, put_bool, put_int64, put_number, put_octets, put_text,
)
from .sound_c cimport MOST_OCTETS, are_entries
from .text_c cimport LAST_SECOND, MOST_ENTRIES, is_among, put_value

cdef extern from *:
    const uint64_t LAST_INT64 "9223372036854775807ULL"
    const uint64_t CONTENT_CLASS "0x100000000ULL"  # sets the keys of content classes off from those of methods

cdef enum:
    _MOST_PROPERTIES = 15  # of a class: as many as one word of flags tells of
    _IDS_END = 11  # octets of a method's frame up to its arguments
    _CONTENT_HEAD_END = 19  # and of a content header's up to its property flags

cdef dict _TYPES = {
    "bit": BIT, "octet": OCTET, "short": SHORT, "long": LONG, "longlong": LONGLONG, "shortstr": SHORTSTR,
    "longstr": LONGSTR, "timestamp": TIMESTAMP, "table": TABLE, "content": CONTENT,
}
_HEADERS = ("headers", "")


cdef inline size_t _slot(uint64_t key, size_t mask) noexcept nogil:
    return <size_t>((key * 0x9E3779B97F4A7C15U) >> 40) & mask


cdef class Plan:
    """What is done with the methods and content headers of one dialect.

    Args:
        columns: where rows go.
        module: the dialect.
        make: tells where fields go, a `rows.Rows`.
        checks: whether to look for what is odd in fields that nobody asked for, too.
        counted_only: whether a method of the connection class, given its class, may be read here.
    """

    def __cinit__(self, Columns columns, module, make, bint checks, counted_only):
        cdef Layout *layout = &self.layout
        self._columns = columns
        self._kept = []
        self.module = module
        dialect = module.DIALECT
        layout.checks = checks
        layout.connection_class = dialect.connection_class or 0
        layout.frame_types = sum([1 << each for each in dialect.frame_types])
        for tag, kind in dialect.profile.readable(False).items():
            layout.kinds[<int>ord(tag)] = kind
        layout.arguments = columns.find("args", "")
        layout.properties = columns.find("properties", "")
        count = len(module.METHODS) + len(module.PROPERTIES)
        layout.shapes = <Shape *>calloc(<size_t>count + 1, sizeof(Shape))
        if layout.shapes is NULL:
            raise MemoryError
        for method in module.METHODS.values():
            exact = method.spec.class_id == dialect.connection_class and not counted_only(method)
            self._describe(method, method.spec.index, make, exact)
        for properties in module.PROPERTIES.values():
            fields = properties.spec.fields
            exact = len(fields) > _MOST_PROPERTIES or any([field.type == "bit" for field in fields])
            self._describe(properties, properties.spec.class_id | CONTENT_CLASS, make, exact)
        self._index()

    def __dealloc__(self):
        cdef int index
        for index in range(self.layout.count):
            free(self.layout.shapes[index].steps)
        free(self.layout.shapes)
        free(self.layout.slots)

    cdef int _describe(self, object record, uint64_t key, object make, bint exact) except -1:
        """Add the shape of a method or content class."""
        cdef Shape *shape = self.layout.shapes + self.layout.count
        cdef Step *step
        cdef int bits = 0
        spec = record.spec
        cdef bytes name = spec.name.encode(), kind = name.partition(b".")[2]
        self._kept.append((name, kind))
        self.layout.count += 1
        shape.key = key
        shape.name, shape.name_size = PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name)
        shape.kind, shape.kind_size = PyBytes_AS_STRING(kind), <size_t>PyBytes_GET_SIZE(kind)
        shape.carries_content = getattr(spec, "content", False)
        shape.exact = exact
        shape.read = self.layout.checks or make.reads(record)
        shape.steps = <Step *>calloc(<size_t>len(spec.fields) + 1, sizeof(Step))
        if shape.steps is NULL:
            raise MemoryError
        for field in spec.fields:
            step = shape.steps + shape.count
            shape.count += 1
            step.type = _TYPES[field.type]
            if step.type == BIT:
                step.bit = bits & 7
                bits += 1
            else:
                bits = 0
            column = make.place_of(spec, field)
            if column is not None:
                step.column = self._columns.find(column[0], column[1])
            if column == _HEADERS:
                step.raw = self._columns.find("headers_raw", "")
        return 0

    cdef int _index(self) except -1:
        """A hash table of the shapes, at most a quarter full."""
        cdef size_t slot, slots = 8
        cdef int index
        while slots < 4 * <size_t>self.layout.count:
            slots *= 2
        self.layout.mask = slots - 1
        self.layout.slots = <Shape **>calloc(slots, sizeof(Shape *))
        if self.layout.slots is NULL:
            raise MemoryError
        for index in range(self.layout.count):
            slot = _slot(self.layout.shapes[index].key, self.layout.mask)
            while self.layout.slots[slot] is not NULL:
                slot = (slot + 1) & self.layout.mask
            self.layout.slots[slot] = self.layout.shapes + index
        return 0


cdef const Shape *shape_of_method(const Layout *layout, uint64_t index) noexcept nogil:
    """The method with these class and method ids; NULL for one that nobody knows."""
    cdef size_t slot = _slot(index, layout.mask)
    while layout.slots[slot] is not NULL and layout.slots[slot].key != index:
        slot = (slot + 1) & layout.mask
    return layout.slots[slot]


cdef const Shape *shape_of_content(const Layout *layout, uint64_t class_id) noexcept nogil:
    """The content header of a class; NULL for one without."""
    return shape_of_method(layout, class_id | CONTENT_CLASS)


cdef bint put_arguments(
    const Layout *layout, const Shape *shape, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """Set the cells for the arguments of a method, which must take up all octets up to the end, if they are read.

    Octets up to the limit, which is no nearer, may be read.
    """
    cdef unsigned char packed = 0
    cdef const Step *step = shape.steps
    cdef const Step *last = shape.steps + shape.count
    if not shape.read:
        return True
    if layout.arguments is not NULL:
        claim(layout.arguments, row)
    while step < last:
        if step.type == BIT:
            if step.bit == 0:
                if p >= end:
                    return False
                packed = p[0]
                p += 1
            if step.column is not NULL:
                put_bool(step.column, row, packed >> step.bit & 1)
        else:
            p = _put_field(layout, step, p, end, row, limit)
            if p is NULL:
                return False
        step += 1
    return p == end


cdef bint put_properties(
    const Layout *layout, const Shape *shape, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """Set the cells for the properties of a content header, from its flags on; the same holds for them."""
    cdef unsigned int flags
    cdef const Step *step = shape.steps
    cdef const Step *last = shape.steps + shape.count
    if not shape.read:
        return True
    if end - p < 2:
        return False
    flags = u16(p)
    if flags & 1:  # another word of flags follows
        return False
    p += 2
    if layout.properties is not NULL:
        claim(layout.properties, row)
    while flags and step < last:
        if flags & 0x8000:
            p = _put_field(layout, step, p, end, row, limit)
            if p is NULL:
                return False
        flags = flags << 1 & 0xFFFF
        step += 1
    return p == end


cdef bint is_sound(const Layout *layout, const unsigned char *p, size_t size) noexcept nogil:
    """Whether a whole frame is plainly one that the exact decoder takes; by a layout without columns."""
    cdef const unsigned char *end = p + size - 1
    cdef const Shape *shape
    cdef bint connection_wide = u16(p + 1) == 0
    if p[0] == METHOD:
        shape = shape_of_method(layout, u32(p + 7)) if size > _IDS_END else NULL
        return shape is not NULL and put_arguments(layout, shape, p + _IDS_END, end, 0, end)
    if p[0] == HEADER:
        shape = shape_of_content(layout, u16(p + 7)) if size > _CONTENT_HEAD_END else NULL
        if shape is NULL or shape.exact or connection_wide:
            return False
        return put_properties(layout, shape, p + _CONTENT_HEAD_END, end, 0, end)
    if p[0] == BODY:
        return not connection_wide
    return p[0] != HEARTBEAT or (connection_wide and size == OVERHEAD)


cdef inline const unsigned char *_put_field(
    const Layout *layout, const Step *step, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """Set the cell for one field; what is behind the field, or NULL if there is anything odd about it."""
    cdef size_t size
    if step.type != SHORTSTR:
        return _put_other(layout, step, p, end, row, limit)
    if end - p < 1 or end - p <= p[0]:
        return NULL
    size = p[0]
    if step.column is not NULL and not put_text(step.column, row, p + 1, size, limit):
        return NULL
    return p + 1 + size


cdef const unsigned char *_put_other(
    const Layout *layout, const Step *step, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """The same for any field but short strings, which most are."""
    cdef Py_ssize_t left = end - p, size
    if step.type == LONGLONG:
        if left < 8 or (u64(p) > LAST_INT64 and (layout.checks or step.column is not NULL)):
            return NULL
        if step.column is not NULL:
            put_int64(step.column, row, <int64_t>u64(p))
        return p + 8
    if step.type == TIMESTAMP:
        if left < 8 or (u64(p) > LAST_SECOND and (layout.checks or step.column is not NULL)):
            return NULL
        if step.column is not NULL:
            put_int64(step.column, row, <int64_t>u64(p) * 1_000_000)
        return p + 8
    if step.type == TABLE or step.type == LONGSTR:
        if left < 4 or u32(p) > <uint64_t>(left - 4):
            return NULL
        size = <Py_ssize_t>u32(p)
        p += 4
        if step.type == TABLE:
            return p + size if _put_table(layout, step, p, size, row, limit) else NULL
        if step.column is not NULL:
            put_octets(step.column, row, p, <size_t>size)
        return p + size
    return _put_seldom(step, p, left, row)


cdef const unsigned char *_put_seldom(
    const Step *step, const unsigned char *p, Py_ssize_t left, Py_ssize_t row
) noexcept nogil:
    """The same for short numbers, and for contents."""
    cdef Py_ssize_t size
    cdef int64_t value
    if step.type == OCTET and left >= 1:
        size, value = 1, p[0]
    elif step.type == SHORT and left >= 2:
        size, value = 2, u16(p)
    elif step.type == LONG and left >= 4:
        size, value = 4, u32(p)
    elif step.type == CONTENT and left >= 5 and p[0] <= 1 and u32(p + 1) <= <uint64_t>(left - 5):
        size = <Py_ssize_t>u32(p + 1)
        if step.column is not NULL and claim(step.column, row):
            put_octets(step.column.inside + p[0], row, p + 5, <size_t>size)
        return p + 5 + size
    else:
        return NULL
    if step.column is not NULL:
        put_number(step.column, row, value)
    return p + size


cdef bint _put_table(
    const Layout *layout, const Step *step, const unsigned char *p, Py_ssize_t size, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """Set the cells for a field table; False if it holds what a map does not show as it is."""
    cdef const unsigned char *keys[MOST_ENTRIES]
    cdef const unsigned char *end = p + size
    cdef Column *column = step.column
    cdef int count = 0
    if step.raw is not NULL:
        put_octets(step.raw, row, p, <size_t>size)
    if column is NULL and not layout.checks:
        return True
    if size > MOST_OCTETS:
        return False
    if column is NULL:
        return are_entries(layout.kinds, p, end, 0)
    if not claim(column, row):
        return True
    while p < end:
        if count == MOST_ENTRIES or p[0] >= end - p - 1 or is_among(keys, count, p):
            return False
        keys[count] = p
        count += 1
        if not put_text(column.inside.inside, <Py_ssize_t>column.used, p + 1, p[0], limit):
            return False
        p += 1 + p[0]
        p = put_value(layout.kinds, column, p, end, limit)
        if p is NULL:
            return False
    column.offsets[row + 1] = <int32_t>column.used
    return True
