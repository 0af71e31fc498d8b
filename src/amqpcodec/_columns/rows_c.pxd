# Rows from octets that are plainly right, without the GIL.
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

from ..capture.headers cimport Headers
from .buffers_c cimport Column, Columns, Table
from .lane_c cimport Channel, Lane
from .plan_c cimport Layout


cdef struct Place:  # of a frame or packet
    int64_t offset  # of a packet it may be NO_NUMBER
    int64_t packet
    int64_t time_ns


cdef struct Targets:  # the columns that every dialect has; NULL for those that nobody asked for
    Table *table
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
    Column *seq
    Column *ack
    Column *flags
    Column *length
    bint bare  # there are no columns and no checks: rows are only counted
    # What is known of the latest file: packets before it, and its name, NULL for none. `Files` has the others.
    int64_t before
    const char *file_name
    size_t file_size
    PyObject *files  # borrowed


cdef int aim(Targets *targets, Columns columns) except -1
cdef bytes name_file(Targets *targets)
cdef void add_packet(
    const Targets *targets, const Lane *lane, const Headers *headers, const Place *place
) noexcept nogil
cdef void add_frame(
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place
) noexcept nogil
cdef bint add_method(
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place
) noexcept nogil
cdef bint add_message(
    const Targets *targets, const Lane *lane, const unsigned char *p, size_t size, const Place *place,
    int64_t last_ns,
) noexcept nogil
