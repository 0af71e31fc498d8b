# cython: boundscheck=False, wraparound=False
"""Rows from octets that are plainly right, without the GIL; see `rows.py` for what is in them.

A function that gives False has added nothing: the row is to be made exactly.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint64_t

from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, METHOD, OVERHEAD
from .buffers_c cimport (
    NO_MEMORY, Columns, Table, add_octets, cut_row, put_bool, put_int8, put_int16, put_int32, put_int64, put_octets,
)
from .lane_c cimport NO_NUMBER, Lane
from .plan_c cimport Shape, put_arguments, put_properties, shape_of_content, shape_of_method

cdef enum:
    _IDS = 4
    _ACK = 0x10
    _CONTENT_HEAD = 12  # octets of a content header before its property flags

cdef extern from *:
    const uint64_t LAST_INT64 "9223372036854775807ULL"


cdef int aim(Targets *targets, Columns columns) except -1:
    """Find the columns of a table."""
    targets.table = &columns.table
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
    targets.seq = columns.find("seq", "")
    targets.ack = columns.find("ack", "")
    targets.flags = columns.find("flags", "")
    targets.length = columns.find("length", "")
    return 0


cdef bytes name_file(Targets *targets):
    """Keep what rows say of the latest file; gives the octets of its name, which have to be kept as long."""
    files = <object>targets.files
    cdef bytes octets = None if files.name is None else files.name.encode()
    targets.before = files.before
    targets.file_name = NULL if octets is None else PyBytes_AS_STRING(octets)
    targets.file_size = 0 if octets is None else <size_t>PyBytes_GET_SIZE(octets)
    return octets


cdef inline void _put_lead(const Targets *targets, const Lane *lane, const Place *place) noexcept nogil:
    """The cells that say where a row comes from."""
    cdef Py_ssize_t row = targets.table.rows
    if targets.direction is not NULL:
        put_int8(targets.direction, row, <signed char>lane.direction)
    if targets.offset is not NULL and place.offset != NO_NUMBER:
        put_int64(targets.offset, row, place.offset)
    if NO_NUMBER < place.packet <= targets.before:
        _put_former_file(targets, place.packet)
    else:
        if place.packet != NO_NUMBER and targets.packet is not NULL:
            put_int64(targets.packet, row, place.packet - targets.before)
        if targets.file is not NULL and targets.file_name is not NULL:
            put_octets(targets.file, row, targets.file_name, targets.file_size)
    if place.time_ns != NO_NUMBER:
        if targets.ts is not NULL:
            put_int64(targets.ts, row, _micros(place.time_ns))
        if targets.ts_ns is not NULL:
            put_int64(targets.ts_ns, row, place.time_ns)
    if lane.client is not NULL:
        if targets.client is not NULL:
            put_octets(targets.client, row, lane.client, lane.client_size)
        if targets.server is not NULL:
            put_octets(targets.server, row, lane.server, lane.server_size)
        if targets.flow is not NULL:
            put_int64(targets.flow, row, lane.flow)


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
    except MemoryError:
        targets.table.trouble = NO_MEMORY
        return
    if targets.packet is not NULL:
        put_int64(targets.packet, row, number)
    if targets.file is not NULL and name is not None:
        put_octets(targets.file, row, PyBytes_AS_STRING(octets), <size_t>PyBytes_GET_SIZE(octets))


cdef inline int64_t _micros(int64_t time_ns) noexcept nogil:
    """Nanoseconds as microseconds, rounded down."""
    return time_ns // 1000 - (time_ns % 1000 < 0)


cdef void add_packet(
    const Targets *targets, const Lane *lane, const Headers *headers, const Place *place
) noexcept nogil:
    """A row of `packets`."""
    cdef Py_ssize_t row = targets.table.rows
    _put_lead(targets, lane, place)
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
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place
) noexcept nogil:
    """A row of `frames`: `size` octets with their envelope, of any type."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const Shape *shape
    _put_lead(targets, lane, place)
    if targets.frame_type is not NULL:
        put_int16(targets.frame_type, row, p[0])
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.size is not NULL:
        put_int64(targets.size, row, <int64_t>(size - OVERHEAD))
    if p[0] == METHOD and size >= OVERHEAD + _IDS:
        if targets.class_id is not NULL:
            put_int32(targets.class_id, row, u16(p + 7))
        if targets.method_id is not NULL:
            put_int32(targets.method_id, row, u16(p + 9))
        if targets.name is not NULL:
            shape = shape_of_method(lane.layout, u32(p + 7))
            if shape is not NULL:
                put_octets(targets.name, row, shape.name, shape.name_size)
    elif p[0] == HEADER and size >= OVERHEAD + 2 and targets.class_id is not NULL:
        put_int32(targets.class_id, row, u16(p + 7))
    if targets.payload is not NULL:
        put_octets(targets.payload, row, p + ENVELOPE_SIZE, size - OVERHEAD)
    targets.table.rows += 1
    targets.table.octets += size


cdef bint add_method(
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place
) noexcept nogil:
    """A row of `methods`."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const Shape *shape
    if size < OVERHEAD + _IDS:
        return False
    shape = shape_of_method(lane.layout, u32(p + 7))
    if shape is NULL:
        return False
    if targets.bare:
        return _count_row(targets, size)
    if not put_arguments(lane.layout, shape, p + 11, p + size - 1, row, p + size):
        cut_row(targets.table)
        return False
    _put_lead(targets, lane, place)
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.class_id is not NULL:
        put_int32(targets.class_id, row, u16(p + 7))
    if targets.method_id is not NULL:
        put_int32(targets.method_id, row, u16(p + 9))
    if targets.name is not NULL:
        put_octets(targets.name, row, shape.name, shape.name_size)
    targets.table.rows += 1
    targets.table.octets += size
    return True


cdef bint add_message(
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place,
    int64_t last_ns,
) noexcept nogil:
    """A row of `messages`: method, content header and body in frames one behind the other, in order and whole."""
    cdef Py_ssize_t row = targets.table.rows
    cdef const unsigned char *header = p + OVERHEAD + u32(p + 3)
    cdef const unsigned char *body = header + OVERHEAD + u32(header + 3)
    cdef const Shape *method = shape_of_method(lane.layout, u32(p + 7))
    cdef const Shape *properties = shape_of_content(lane.layout, u16(header + 7))
    cdef uint64_t body_size = u64(header + 11)
    # A content on channel 0 is in error, and so is a class that nobody knows.
    if u16(p + 1) == 0 or properties is NULL or properties.exact or body_size > LAST_INT64:
        return False
    if targets.bare:
        return _count_row(targets, size)
    if (
        not put_arguments(lane.layout, method, p + 11, header - 1, row, p + size)
        or not put_properties(lane.layout, properties, header + 7 + _CONTENT_HEAD, body - 1, row, p + size)
    ):
        cut_row(targets.table)
        return False
    _put_lead(targets, lane, place)
    if targets.channel is not NULL:
        put_int32(targets.channel, row, u16(p + 1))
    if targets.name is not NULL:
        put_octets(targets.name, row, method.name, method.name_size)
    if targets.kind is not NULL:
        put_octets(targets.kind, row, method.kind, method.kind_size)
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
