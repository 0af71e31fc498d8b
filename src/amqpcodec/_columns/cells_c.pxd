# From the octets of frames to the cells of rows, without the GIL.
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from ..capture.headers cimport Headers
from .buffers_c cimport Column, Columns, Table

cdef enum:
    LEAST_METHOD = 12  # octets of a frame with the ids of a method
    LEAST_HEADER = 20  # and with the fixed part of a content header


cdef struct Step:
    int type  # of the field on the wire, from `wire_types.pxd`
    int bit  # its number in a packed octet, for bits
    Column *column  # where it goes; NULL if nobody asked for it
    Column *raw  # where the octets of a table go
    bint traced  # whether the table may have the ids of a trace, and a column asks for them


cdef struct Shape:  # of a method's arguments, or of the properties of a class
    uint64_t key
    bint carries_content
    int step  # what it is to a follower
    bint declined  # left to `rows`, whatever is in it
    bint read  # whether rows depend on what is in it
    Step *steps
    int count
    const char *name
    size_t name_size
    const char *kind  # the name without its class
    size_t kind_size


cdef struct Layout:  # of the frames of a dialect
    PyObject *module  # of the dialect, borrowed
    PyObject *columns  # that have the columns below, borrowed
    unsigned char kinds[256]  # table tag to wire kind, 0 for a tag nobody knows
    bint checks  # whether fields that nobody asked for are looked into
    unsigned int frame_types  # a bit each
    unsigned int connection_class
    Column *arguments  # the struct of a method's arguments, in `methods`
    Column *properties  # the struct of them, in `messages`
    Column *trace_id
    Column *span_id
    Shape *shapes
    int count
    Shape **slots  # the shapes by key
    size_t mask


cdef struct Origin:  # what the rows of a direction have in common
    int direction
    bint named  # whether the fields below are set; names that no column asks for are NULL all the same
    const Layout *layout
    const char *client
    size_t client_size
    const char *server
    size_t server_size
    int64_t flow


cdef struct Position:  # of a frame or packet
    int64_t offset  # of a packet it may be NO_NUMBER
    int64_t packet
    int64_t time_ns


cdef struct Targets:  # the columns that every dialect has; NULL for those that nobody asked for
    Table *table
    PyObject *columns  # whose table that is, borrowed
    Column *file
    Column *flow
    Column *client
    Column *server
    Column *direction
    Column *ts
    Column *ts_ns
    Column *offset
    Column *packet
    Column *frame_type
    Column *channel
    Column *size
    Column *class_id
    Column *method_id
    Column *name
    Column *payload
    Column *kind
    Column *body
    Column *body_size
    Column *frames
    Column *ts_last
    Column *complete
    Column *queue
    Column *delivery_tag
    Column *outcome
    Column *ts_outcome
    Column *ts_outcome_ns
    Column *packet_outcome
    Column *latency_us
    Column *wait_us
    Column *wait_by
    Column *publish_flow
    Column *publish_offset
    Column *seq
    Column *ack
    Column *flags
    Column *length
    bint bare  # there are no columns and no checks: rows are only counted
    bint places  # `file` or `packet` is there,
    bint flows  # `client`, `server` or `flow`,
    bint methods  # `class_id`, `method_id` or `name`
    # What is known of the latest file: packets before it, and its name, NULL for none. `Files` has the others.
    int64_t before
    const char *file_name
    size_t file_size
    PyObject *files  # borrowed


cdef const Shape *shape_of_method(const Layout *layout, uint64_t index) noexcept nogil
cdef const Shape *shape_of_content(const Layout *layout, uint64_t class_id) noexcept nogil
cdef bint is_valid(const Layout *layout, const unsigned char *p, size_t size) noexcept nogil
cdef tuple name_origin(const Targets *targets, Origin *origin, dict cells)
cdef int aim(Targets *targets, Columns columns) except -1
cdef bytes name_file(Targets *targets)
cdef void add_packet(
    const Targets *targets, const Origin *origin, const Headers *headers, const Position *position
) noexcept nogil
cdef void add_frame(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position
) noexcept nogil
cdef bint add_method(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position
) noexcept nogil
cdef bint add_message(
    const Targets *targets, const Origin *origin, const unsigned char *p, size_t size, const Position *position,
    int64_t last_ns,
) noexcept nogil
cdef void put_queue(const Targets *targets, Py_ssize_t row, object queue) noexcept
cdef int put_outcome(
    const Targets *targets, Py_ssize_t row, int64_t sent_ns, object outcome, int64_t packet, int64_t time_ns
) except -1
cdef void put_wait(
    const Targets *targets, Py_ssize_t row, object found, int64_t wait_ns, int64_t flow, int64_t offset
) noexcept


cdef class Plan:
    cdef readonly object module
    cdef Layout layout
    cdef list _kept  # the octets of names
    cdef Columns _columns

    cdef int _describe(self, object record, uint64_t key, object make, bint declined) except -1
    cdef int _index(self) except -1
