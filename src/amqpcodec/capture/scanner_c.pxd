from .flowtable_c cimport Entry, FlowTable
from .headers cimport Headers
from .layers_c cimport Walk
from .readahead_c cimport ReadAhead
from .streams_c cimport StreamTracker


cdef enum:
    # What `OctetConsumer.octets` returns.
    TAKEN
    PAUSE  # taken, and the consumer wants to be settled before there are more
    REFUSED  # not taken: the scanner passes them as an event


cdef extern from *:
    const long long NOWHERE "INT64_MIN"  # the offset of a segment, if it is not known


cdef class OctetConsumer:
    cdef bint every_segment  # whether it receives segments in place of octets
    cdef bint locked  # whether it needs the global lock for most of them, and is called with it

    cdef void *state_of(self, object connection, int direction) except? NULL
    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil
    cdef int segment(
        self, void *state, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil
    cdef int feed_segment(self, object segment, StreamTracker tracker) except -1
    cdef int event(self, object event) except -1
    cdef int settle(self) except -1


cdef enum Outcome:
    # How a step without the global interpreter lock ended.
    DONE
    MORE  # there is less in the buffer than `_need`
    RECORD  # the slow path reads the next record
    PACKET  # the slow path takes the current packet
    FULL  # the consumer wants to be settled
    BEHIND  # the next record goes on where none is to be read any more


cdef struct Interface:
    int linktype
    long long multiplier  # nanoseconds of a tick; 0 where the slow path sets its times
    long long divisor  # ticks of a nanosecond, where they are shorter
    long long offset_ns


cdef struct Record:
    int linktype
    const unsigned char *data
    Py_ssize_t captured
    long long original
    long long time_ns


cdef class Scanner:
    cdef ReadAhead _ahead
    cdef StreamTracker _tracker
    cdef OctetConsumer _consumer
    cdef FlowTable _table
    cdef object _reader
    cdef object _segments
    cdef object _position
    cdef bint _continues  # the recording, in another file
    cdef long long _before
    cdef long long _end
    cdef Py_ssize_t _behind  # where that is in the buffer
    cdef bint _blocks
    cdef bint _little
    cdef long long _unit
    cdef long long _max_record_bytes
    cdef Py_ssize_t _record_size  # octets before a packet of pcap
    cdef list _described
    cdef Interface *_interfaces
    cdef Py_ssize_t _interface_count
    cdef Py_ssize_t _interface_room
    cdef long long _number
    cdef long long _last_read
    cdef int _stopped  # why the last step ended
    cdef Py_ssize_t _need
    cdef Record _record
    cdef Headers _headers
    cdef bint _has_headers
    cdef Walk _walk

    cdef bint step(self) except -1
    cdef int save_position(self) except -1
    cdef int _note_section(self) except -1
    cdef int _describe(self, object interface) except -1
    cdef int _run(self) except -1 nogil
    cdef Outcome _next_record(self) noexcept nogil
    cdef Outcome _next_block(self) noexcept nogil
    cdef bint _set_time(self, const Interface *interface, unsigned long long ticks) noexcept nogil
    cdef bint _read_headers(self) noexcept nogil
    cdef int _fast_segment(self, Entry *entry) except -1 nogil
    cdef bint _slow_record(self) except -1
    cdef int _slow_packet(self) except -1
    cdef int _remember(self, object segment) except -1
    cdef int _feed(self, object segment) except -1
    cdef int _finish(self) except -1
