# cython: boundscheck=False, wraparound=False, cdivision=True
"""From the octets of frames to the cells of rows, without the GIL, by a plan made once.

`rows.py` says what is in them.

These functions may decline: a function that returns False has added nothing, and `rows` makes the row.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from .._protocol.wire_types cimport (
    BIT, CONTENT, LONG, LONGLONG, LONGSTR, OCTET, SHORT, SHORTSTR, TABLE, TIMESTAMP,
)
from .._kernel.kinds cimport LONGSTR as LONGSTR_VALUE
from .._kernel.civil cimport LAST_SECOND
from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, HEARTBEAT, METHOD, OVERHEAD
from ..capture.direction_state_c cimport NO_NUMBER
from .buffers_c cimport (
    BLOCK, Column, Columns, add_octets, claim, cut_row, put_bool, put_constant, put_int8, put_int16,
    put_int32, put_int64, put_number, put_octets, put_text,
)
from .text_c cimport MOST_OCTETS, Keys, add_key, are_entries, behind_value, put_value

from .._protocol.wire_types import NUMBERS
from .rows import ANSWERS
from .steps import step_of
from .trace import TRACERS, trace_of
from .waits_c import DROPPED

cdef extern from *:
    const uint64_t CONTENT_CLASS "0x100000000ULL"  # sets the keys of content classes off from those of methods

cdef enum:
    _MOST_PROPERTIES = 15  # of a class: as many as one word of flags has
    _IDS_END = 11  # octets of a method's frame up to its arguments
    _CONTENT_HEAD_END = 19  # and of a content header's up to its property flags
    _ACK = 0x10
    _TRACEPARENT = 55  # octets

_HEADERS = ("headers", "")


cdef struct Traced:  # headers of tracers, in the order of `TRACERS`; NULL for those that are not there
    const unsigned char *values[4]
    size_t sizes[4]


cdef inline size_t _slot(uint64_t key, size_t mask) noexcept nogil:
    return <size_t>((key * 0x9E3779B97F4A7C15U) >> 40) & mask


cdef class Plan:
    """The plan for the methods and content headers of one dialect.

    Args:
        columns: where rows go.
        module: the dialect.
        make: knows where fields go, a `rows.Rows`.
        checks: whether to look for what is wrong in fields that nobody asked for, too.
        counted_only: whether a method of the connection class, given its class, may be read here.
    """

    def __cinit__(self, Columns columns, module, make, bint checks, counted_only):
        cdef Layout *layout = &self.layout
        self._columns = columns
        self._kept = []
        self.module = module
        layout.module = <PyObject *>module
        layout.columns = <PyObject *>columns
        dialect = module.DIALECT
        layout.checks = checks
        layout.connection_class = dialect.connection_class or 0
        layout.frame_types = sum([1 << each for each in dialect.frame_types])
        for tag, kind in dialect.profile.readable(False).items():
            layout.kinds[<int>ord(tag)] = kind
        layout.arguments = columns.find("args", "")
        layout.properties = columns.find("properties", "")
        layout.trace_id = columns.find("trace_id", "")
        layout.span_id = columns.find("span_id", "")
        count = len(module.METHODS) + len(module.PROPERTIES)
        layout.shapes = <Shape *>calloc(<size_t>count + 1, sizeof(Shape))
        if layout.shapes is NULL:
            raise MemoryError
        for method in module.METHODS.values():
            declined = method.spec.class_id == dialect.connection_class and not counted_only(method)
            self._describe(method, method.spec.index, make, declined)
        for properties in module.PROPERTIES.values():
            fields = properties.spec.fields
            declined = len(fields) > _MOST_PROPERTIES or any([field.type == "bit" for field in fields])
            self._describe(properties, properties.spec.class_id | CONTENT_CLASS, make, declined)
        self._index()

    def __dealloc__(self):
        cdef int index
        for index in range(self.layout.count):
            free(self.layout.shapes[index].steps)
        free(self.layout.shapes)
        free(self.layout.slots)

    cdef int _describe(self, object record, uint64_t key, object make, bint declined) except -1:
        """Add the shape of a method or content class."""
        cdef Shape *shape = self.layout.shapes + self.layout.count
        cdef Step *step
        cdef int bits = 0
        spec = record.spec
        cdef bytes name = _constant(spec.name), kind = _constant(spec.name.partition(".")[2])
        self._kept.append((name, kind))
        self.layout.count += 1
        shape.key = key
        shape.name, shape.name_size = PyBytes_AS_STRING(name), _size(name)
        shape.kind, shape.kind_size = PyBytes_AS_STRING(kind), _size(kind)
        shape.carries_content = getattr(spec, "content", False)
        shape.step = 0 if key & CONTENT_CLASS else step_of(record)
        shape.declined = declined
        shape.read = self.layout.checks or make.reads(record)
        shape.steps = <Step *>calloc(<size_t>len(spec.fields) + 1, sizeof(Step))
        if shape.steps is NULL:
            raise MemoryError
        for field in spec.fields:
            step = shape.steps + shape.count
            shape.count += 1
            step.type = NUMBERS[field.type]
            if step.type == BIT:
                step.bit = bits & 7
                bits += 1
            else:
                bits = 0
            column = make.target_of(spec, field)
            if column is not None:
                step.column = self._columns.find(column[0], column[1])
            if column == _HEADERS:
                step.raw = self._columns.find("headers_raw", "")
                step.traced = self.layout.trace_id is not NULL or self.layout.span_id is not NULL
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
        while not flags & 0x8000:
            flags <<= 1
            step += 1
        if step >= last:
            break
        p = _put_field(layout, step, p, end, row, limit)
        if p is NULL:
            return False
        flags = flags << 1 & 0xFFFF
        step += 1
    return p == end


cdef bint is_valid(const Layout *layout, const unsigned char *p, size_t size) noexcept nogil:
    """Return whether decoders take a whole frame; by a layout without columns. False if there is any doubt."""
    cdef const unsigned char *end = p + size - 1
    cdef const Shape *shape
    cdef bint connection_wide = u16(p + 1) == 0
    if p[0] == METHOD:
        shape = shape_of_method(layout, u32(p + 7)) if size > _IDS_END else NULL
        return shape is not NULL and put_arguments(layout, shape, p + _IDS_END, end, 0, end)
    if p[0] == HEADER:
        shape = shape_of_content(layout, u16(p + 7)) if size > _CONTENT_HEAD_END else NULL
        if shape is NULL or shape.declined or connection_wide:
            return False
        return put_properties(layout, shape, p + _CONTENT_HEAD_END, end, 0, end)
    if p[0] == BODY:
        return not connection_wide
    return p[0] != HEARTBEAT or (connection_wide and size == OVERHEAD)


cdef inline const unsigned char *_put_field(
    const Layout *layout, const Step *step, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil:
    """Set the cell for one field; what is behind the field, or NULL to decline."""
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
    """Handle any field but short strings, which most are."""
    cdef Py_ssize_t left = end - p, size
    if step.type == LONGLONG:
        if left < 8 or (u64(p) > <uint64_t>INT64_MAX and (layout.checks or step.column is not NULL)):
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
    """Handle short numbers and contents."""
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
    cdef Keys keys
    cdef const unsigned char *end = p + size
    cdef Column *column = step.column
    keys.count = 0
    if step.raw is not NULL:
        put_octets(step.raw, row, p, <size_t>size)
    if step.traced:
        _put_trace(layout, p, end, row)
    if column is NULL and not layout.checks:
        return True
    if size > MOST_OCTETS:
        return False
    if column is NULL:
        return are_entries(layout.kinds, p, end, 0)
    if not claim(column, row):
        return True
    while p < end:
        if p[0] >= end - p - 1 or not add_key(&keys, p, end):
            return False
        if not put_text(column.inside.inside, <Py_ssize_t>column.used, p + 1, p[0], limit):
            return False
        p += 1 + p[0]
        p = put_value(layout.kinds, column, p, end, limit)
        if p is NULL:
            return False
    column.inside.rows = <Py_ssize_t>column.used
    column.offsets[row + 1] = <int32_t>column.used
    return True


# -- ids of traces


cdef void _put_trace(
    const Layout *layout, const unsigned char *p, const unsigned char *end, Py_ssize_t row
) noexcept nogil:
    """Set the cells for the ids of a trace in a field table; none from one that is not valid."""
    cdef Traced found
    cdef bint any_found = False
    cdef int index
    if end - p > MOST_OCTETS:
        return
    memset(&found, 0, sizeof(Traced))
    while p < end:
        if p[0] >= end - p - 1:
            return
        index = _tracer(p)
        p += 1 + p[0]
        if index >= 0:
            found.values[index] = NULL
            if layout.kinds[p[0]] == LONGSTR_VALUE and end - p >= 5:
                found.values[index], found.sizes[index] = p + 5, u32(p + 1)
            any_found = True
        p = behind_value(layout.kinds, p, end, 0)
        if p is NULL:
            return
    if any_found and not _put_traceparent(layout, &found, row):
        _put_ids(layout, &found, row)


cdef inline int _tracer(const unsigned char *key) noexcept nogil:
    """Return the place of a tracer among `TRACERS` by the key of its header, length in front; -1 for none."""
    if key[0] == 11:
        return 0 if memcmp(key + 1, <const char *>b"traceparent", 11) == 0 else -1
    if key[0] == 2:
        return 1 if memcmp(key + 1, <const char *>b"b3", 2) == 0 else -1
    if key[0] == 3:
        return 2 if memcmp(key + 1, <const char *>b"sw8", 3) == 0 else -1
    if key[0] == 13:
        return 3 if memcmp(key + 1, <const char *>b"uber-trace-id", 13) == 0 else -1
    return -1


cdef bint _put_traceparent(const Layout *layout, const Traced *found, Py_ssize_t row) noexcept nogil:
    """Set the cells from the header of W3C; False if it is not there, or needs a closer look."""
    cdef const unsigned char *p = found.values[0]
    if p is NULL or found.sizes[0] != _TRACEPARENT or (p[0] == 0x66 and p[1] == 0x66):
        return False
    if p[2] != 0x2D or p[35] != 0x2D or p[52] != 0x2D or not _is_hex(p, 2) or not _is_hex(p + 53, 2):
        return False
    if _is_hex(p + 3, 32) != 2 or _is_hex(p + 36, 16) != 2:
        return False
    if layout.trace_id is not NULL:
        put_octets(layout.trace_id, row, p + 3, 32)
    if layout.span_id is not NULL:
        put_octets(layout.span_id, row, p + 36, 16)
    return True


cdef inline int _is_hex(const unsigned char *p, int size) noexcept nogil:
    """Return 2 for hexadecimal digits in lower case, 1 if all of them are zero, 0 for anything else."""
    cdef int index
    cdef bint some = False
    for index in range(size):
        if not (0x30 <= p[index] <= 0x39 or 0x61 <= p[index] <= 0x66):
            return 0
        some = some or p[index] != 0x30
    return 2 if some else 1


cdef void _put_ids(const Layout *layout, const Traced *found, Py_ssize_t row) noexcept with gil:
    """Set the cells from whichever header has ids."""
    cdef int index
    cdef bytes octets
    cdef Column *columns[2]
    columns[0], columns[1] = layout.trace_id, layout.span_id
    try:
        headers = {
            name: found.values[index][:<Py_ssize_t>found.sizes[index]].decode("utf-8", "surrogateescape")
            for index, name in enumerate(TRACERS) if found.values[index] is not NULL
        }
        for index, text in enumerate(trace_of(headers)):
            if text is not None and columns[index] is not NULL:
                octets = text.encode()
                put_octets(columns[index], row, PyBytes_AS_STRING(octets), <size_t>PyBytes_GET_SIZE(octets))
    except BaseException as error:  # an interrupt, if not a lack of memory
        (<Columns>layout.columns).fail(error)


# -- rows


cdef bytes _constant(str text):
    """A text as octets, as `put_constant` takes it."""
    return text.encode() + bytes(BLOCK)


cdef inline size_t _size(bytes octets) noexcept:
    return <size_t>(PyBytes_GET_SIZE(octets) - BLOCK)


cdef tuple name_origin(const Targets *targets, Origin *origin, dict cells):
    """Keep what every row of a direction says of it; returns the names as octets, which are kept as long. There are
    none where no column asks for them: a recording may have very many connections."""
    cdef bytes client, server
    if cells.get("client") is None:
        return ()
    origin.named, origin.flow = True, cells["flow"]
    if targets.client is NULL and targets.server is NULL:
        return ()
    client, server = _constant(cells["client"]), _constant(cells["server"])
    origin.client, origin.client_size = PyBytes_AS_STRING(client), _size(client)
    origin.server, origin.server_size = PyBytes_AS_STRING(server), _size(server)
    return client, server


cdef int aim(Targets *targets, Columns columns) except -1:
    """Find the columns of a table."""
    targets.table = &columns.table
    targets.columns = <PyObject *>columns
    targets.file = columns.find("file", "")
    targets.flow = columns.find("flow", "")
    targets.client = columns.find("client", "")
    targets.server = columns.find("server", "")
    targets.direction = columns.find("direction", "")
    targets.ts = columns.find("ts", "")
    targets.ts_ns = columns.find("ts_ns", "")
    targets.offset = columns.find("offset", "")
    targets.packet = columns.find("packet", "")
    targets.frame_type = columns.find("frame_type", "")
    targets.channel = columns.find("channel", "")
    targets.size = columns.find("size", "")
    targets.class_id = columns.find("class_id", "")
    targets.method_id = columns.find("method_id", "")
    targets.name = columns.find("name", "")
    targets.payload = columns.find("payload", "")
    targets.kind = columns.find("kind", "")
    targets.body = columns.find("body", "")
    targets.body_size = columns.find("body_size", "")
    targets.frames = columns.find("frames", "")
    targets.ts_last = columns.find("ts_last", "")
    targets.complete = columns.find("complete", "")
    targets.queue = columns.find("queue", "")
    targets.delivery_tag = columns.find("delivery_tag", "")
    targets.outcome = columns.find("outcome", "")
    targets.ts_outcome = columns.find("ts_outcome", "")
    targets.ts_outcome_ns = columns.find("ts_outcome_ns", "")
    targets.packet_outcome = columns.find("packet_outcome", "")
    targets.latency_us = columns.find("latency_us", "")
    targets.wait_us = columns.find("wait_us", "")
    targets.wait_by = columns.find("wait_by", "")
    targets.publish_flow = columns.find("publish_flow", "")
    targets.publish_offset = columns.find("publish_offset", "")
    targets.seq = columns.find("seq", "")
    targets.ack = columns.find("ack", "")
    targets.flags = columns.find("flags", "")
    targets.length = columns.find("length", "")
    targets.places = targets.file is not NULL or targets.packet is not NULL
    targets.flows = targets.client is not NULL or targets.server is not NULL or targets.flow is not NULL
    targets.methods = targets.class_id is not NULL or targets.method_id is not NULL or targets.name is not NULL
    return 0


cdef bytes name_file(Targets *targets):
    """Keep what rows say of the latest file; returns its name as octets, which are kept as long."""
    files = <object>targets.files
    cdef bytes octets = None if files.name is None else _constant(files.name)
    targets.before = files.before
    targets.file_name = NULL if octets is None else PyBytes_AS_STRING(octets)
    targets.file_size = 0 if octets is None else _size(octets)
    return octets


cdef inline void _put_lead(const Targets *targets, const Origin *origin, const Position *position) noexcept nogil:
    """The cells that say where a row comes from."""
    cdef Py_ssize_t row = targets.table.rows
    if targets.direction is not NULL:
        put_int8(targets.direction, row, <signed char>origin.direction)
    if targets.offset is not NULL and position.offset != NO_NUMBER:
        put_int64(targets.offset, row, position.offset)
    if targets.places:
        _put_place(targets, position.packet)
    if position.time_ns != NO_NUMBER:
        if targets.ts is not NULL:
            put_int64(targets.ts, row, _micros(position.time_ns))
        if targets.ts_ns is not NULL:
            put_int64(targets.ts_ns, row, position.time_ns)
    if targets.flows and origin.named:
        _put_flow(targets, origin)


cdef void _put_flow(const Targets *targets, const Origin *origin) noexcept nogil:
    """The cells that say which connection a row comes from."""
    cdef Py_ssize_t row = targets.table.rows
    if targets.client is not NULL:
        put_constant(targets.client, row, origin.client, origin.client_size)
    if targets.server is not NULL:
        put_constant(targets.server, row, origin.server, origin.server_size)
    if targets.flow is not NULL:
        put_int64(targets.flow, row, origin.flow)


cdef void _put_place(const Targets *targets, int64_t packet) noexcept nogil:
    """The cells that say which packet of which file a row comes from."""
    cdef Py_ssize_t row = targets.table.rows
    if NO_NUMBER < packet <= targets.before:
        _put_former_file(targets, packet)
        return
    if packet != NO_NUMBER and targets.packet is not NULL:
        put_int64(targets.packet, row, packet - targets.before)
    if targets.file is not NULL and targets.file_name is not NULL:
        put_constant(targets.file, row, targets.file_name, targets.file_size)


cdef inline bint _count_row(const Targets *targets, size_t size) noexcept nogil:
    targets.table.rows += 1
    targets.table.octets += size
    return True


cdef void _put_former_file(const Targets *targets, int64_t packet) noexcept with gil:
    """The cells that say which packet of a file before the latest one a row comes from."""
    cdef Py_ssize_t row = targets.table.rows
    cdef bytes octets
    try:
        name, number = (<object>targets.files).locate(packet)
        octets = b"" if name is None else name.encode()
    except BaseException as error:  # an interrupt, if not a lack of memory
        (<Columns>targets.columns).fail(error)
        return
    if targets.packet is not NULL:
        put_int64(targets.packet, row, number)
    if targets.file is not NULL and name is not None:
        put_octets(targets.file, row, PyBytes_AS_STRING(octets), <size_t>PyBytes_GET_SIZE(octets))


cdef inline int64_t _micros(int64_t time_ns) noexcept nogil:
    """Nanoseconds as microseconds, rounded down."""
    if time_ns >= 0:
        return <int64_t>(<uint64_t>time_ns // 1000)
    return time_ns // 1000 - (time_ns % 1000 < 0)


cdef void add_packet(
    const Targets *targets, const Origin *origin, const Headers *headers, const Position *position
) noexcept nogil:
    """A row of `packets`."""
    cdef Py_ssize_t row = targets.table.rows
    _put_lead(targets, origin, position)
    if targets.seq is not NULL:
        put_int64(targets.seq, row, headers.seq)
    if targets.ack is not NULL and headers.flags & _ACK:
        put_int64(targets.ack, row, headers.ack)
    if targets.flags is not NULL:
        put_int16(targets.flags, row, <short>headers.flags)
    if targets.length is not NULL:
        put_int64(targets.length, row, headers.length)
    if targets.payload is not NULL:
        put_octets(targets.payload, row, headers.payload, <size_t>headers.recorded)
    targets.table.rows += 1
    targets.table.octets += <size_t>headers.recorded


cdef void add_frame(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position
) noexcept nogil:
    """A row of `frames`: `size` octets with their envelope, of any type."""
    cdef Py_ssize_t row = targets.table.rows
    _put_lead(targets, origin, position)
    if targets.frame_type is not NULL:
        put_int16(targets.frame_type, row, p[0])
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.size is not NULL:
        put_int64(targets.size, row, <int64_t>(size - OVERHEAD))
    if targets.methods:
        _put_method(targets, origin, p, size)
    if targets.payload is not NULL:
        put_octets(targets.payload, row, p + ENVELOPE_SIZE, size - OVERHEAD)
    targets.table.rows += 1
    targets.table.octets += size


cdef inline void _put_method(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size
) noexcept nogil:
    """The cells that say which method a frame is, or of which class a content header."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const Shape *shape
    if p[0] == METHOD and size >= LEAST_METHOD:
        if targets.class_id is not NULL:
            put_int32(targets.class_id, row, u16(p + 7))
        if targets.method_id is not NULL:
            put_int32(targets.method_id, row, u16(p + 9))
        if targets.name is not NULL:
            shape = shape_of_method(origin.layout, u32(p + 7))
            if shape is not NULL:
                put_constant(targets.name, row, shape.name, shape.name_size)
    elif p[0] == HEADER and size >= OVERHEAD + 2 and targets.class_id is not NULL:
        put_int32(targets.class_id, row, u16(p + 7))


cdef bint add_method(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position
) noexcept nogil:
    """A row of `methods`."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const Shape *shape
    if size < LEAST_METHOD:
        return False
    shape = shape_of_method(origin.layout, u32(p + 7))
    if shape is NULL:
        return False
    if targets.bare:
        return _count_row(targets, size)
    if not put_arguments(origin.layout, shape, p + 11, p + size - 1, row, p + size):
        cut_row(targets.table)
        return False
    _put_lead(targets, origin, position)
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.class_id is not NULL:
        put_int32(targets.class_id, row, u16(p + 7))
    if targets.method_id is not NULL:
        put_int32(targets.method_id, row, u16(p + 9))
    if targets.name is not NULL:
        put_constant(targets.name, row, shape.name, shape.name_size)
    targets.table.rows += 1
    targets.table.octets += size
    return True


cdef bint add_message(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position,
    int64_t last_ns,
) noexcept nogil:
    """A row of `messages`: method, content header and body in frames one behind the other, in order and whole."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const unsigned char *header = p + OVERHEAD + u32(p + 3)
    cdef const unsigned char *body = header + OVERHEAD + u32(header + 3)
    cdef const Shape *method = shape_of_method(origin.layout, u32(p + 7))
    cdef const Shape *properties = shape_of_content(origin.layout, u16(header + 7))
    cdef uint64_t body_size = u64(header + 11)
    # A content on channel 0 is in error, and so is a class that nobody knows.
    if u16(p + 1) == 0 or properties is NULL or properties.declined or body_size > <uint64_t>INT64_MAX:
        return False
    if targets.bare:
        return _count_row(targets, size)
    if (
        not put_arguments(origin.layout, method, p + 11, header - 1, row, p + size)
        or not put_properties(origin.layout, properties, header + _CONTENT_HEAD_END, body - 1, row, p + size)
    ):
        cut_row(targets.table)
        return False
    _put_lead(targets, origin, position)
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.name is not NULL:
        put_constant(targets.name, row, method.name, method.name_size)
    if targets.kind is not NULL:
        put_constant(targets.kind, row, method.kind, method.kind_size)
    if targets.body_size is not NULL:
        put_int64(targets.body_size, row, <int64_t>body_size)
    if targets.ts_last is not NULL and last_ns != NO_NUMBER:
        put_int64(targets.ts_last, row, _micros(last_ns))
    if targets.complete is not NULL:
        put_bool(targets.complete, row, True)
    _put_body(targets, body, p + size)
    targets.table.rows += 1
    targets.table.octets += size
    return True


cdef inline void _put_body(const Targets *targets, const unsigned char *p, const unsigned char *end) noexcept nogil:
    """The cells for the body, in frames up to `end`, and for the number of all frames."""
    cdef Py_ssize_t row = targets.table.rows
    cdef int32_t frames = 2
    if targets.body is not NULL:
        put_octets(targets.body, row, NULL, 0)
    while p < end:
        frames += 1
        if targets.body is not NULL:
            add_octets(targets.body, row, p + ENVELOPE_SIZE, u32(p + 3))
        p += OVERHEAD + u32(p + 3)
    if targets.frames is not NULL:
        put_int32(targets.frames, row, frames)


# -- what became of messages


cdef inline void _put_str(Column *column, Py_ssize_t row, object value) noexcept:
    """Set a cell to a text; None, or no column, for nothing."""
    cdef Py_ssize_t size
    cdef const char *text
    if value is not None and column is not NULL:
        text = PyUnicode_AsUTF8AndSize(value, &size)
        put_octets(column, row, text, <size_t>size)


cdef void put_queue(const Targets *targets, Py_ssize_t row, object queue) noexcept:
    """Set the cell for the queue of a message."""
    _put_str(targets.queue, row, queue)


cdef void put_wait(
    const Targets *targets, Py_ssize_t row, object found, int64_t wait_ns, int64_t flow, int64_t offset
) noexcept:
    """Set the cells that say how long a message has waited; see `rows.delivery_row`."""
    _put_str(targets.wait_by, row, found)
    if found == DROPPED:
        return
    if targets.wait_us is not NULL and wait_ns != NO_NUMBER:
        put_int64(targets.wait_us, row, wait_ns // 1000)
    if targets.publish_flow is not NULL:
        put_int64(targets.publish_flow, row, flow)
    if targets.publish_offset is not NULL:
        put_int64(targets.publish_offset, row, offset)


cdef int put_outcome(
    const Targets *targets, Py_ssize_t row, int64_t sent_ns, object outcome, int64_t packet, int64_t time_ns
) except -1:
    """Set the cells that say what became of a message; see `rows.outcome_cells`."""
    _put_str(targets.outcome, row, outcome)
    if time_ns == NO_NUMBER:
        return 0
    if targets.ts_outcome is not NULL:
        put_int64(targets.ts_outcome, row, _micros(time_ns))
    if targets.ts_outcome_ns is not NULL:
        put_int64(targets.ts_outcome_ns, row, time_ns)
    if targets.packet_outcome is not NULL and packet != NO_NUMBER:
        if packet <= targets.before:
            packet = (<object>targets.files).locate(packet)[1]
        else:
            packet -= targets.before
        put_int64(targets.packet_outcome, row, packet)
    if targets.latency_us is not NULL and outcome in ANSWERS:
        put_int64(targets.latency_us, row, (time_ns - sent_ns) // 1000 if time_ns > sent_ns else 0)
    return 0
