# One direction of a connection whose frames are followed without the GIL, and what is kept of it between packets.
from libc.stdint cimport int64_t, uint64_t

from .plan_c cimport Layout, Shape

cdef extern from *:
    const int64_t NO_NUMBER "INT64_MIN"  # of a packet, or for a time that is not known


cdef struct Octets:  # that grow
    unsigned char *start
    size_t used
    size_t room


cdef struct Mark:  # which packet brought the octets before `end`
    int64_t end
    int64_t packet
    int64_t time_ns


cdef struct Channel:
    int number  # -1 in a place that is free
    bint known  # whether a method or content header was seen since the exact sink was told
    bint exact  # whether the exact sink has the content that is open
    const Shape *method  # of the content that is open here; NULL without one
    Octets frames  # of that content, one behind the other
    size_t header_at  # where its content header begins among them; 0 without one
    int64_t header_offset
    int64_t offset, packet, time_ns  # of its first frame
    int64_t last_ns
    uint64_t body_size
    uint64_t left
    int count  # of its frames


cdef struct Lane:
    int direction
    bint following  # False: the exact decoder has the octets
    bint begun  # octets were seen
    bint ended  # nothing more will come
    int64_t packet, time_ns  # that brought the last octets
    int64_t offset  # of the first octet that is not in a row yet
    const Layout *layout
    Octets carry  # a frame that is not whole
    Mark *marks  # of the octets carried
    Py_ssize_t marked, mark_room
    Channel *channels
    int channel_count  # in use
    size_t channel_mask
    Py_ssize_t open  # contents, those of the exact sink included
    int64_t frames, messages  # that the exact account does not know of yet
    # What all rows of the lane have in common; NULL for null.
    const char *client
    size_t client_size
    const char *server
    size_t server_size
    int64_t flow


cdef unsigned char *more(Octets *octets, size_t size) noexcept nogil
cdef bint add(Octets *octets, const unsigned char *p, size_t size) noexcept nogil
cdef bint carry(Lane *lane, const unsigned char *p, size_t size, int64_t packet, int64_t time_ns) noexcept nogil
cdef void drop_carry(Lane *lane) noexcept nogil
cdef const Mark *latest(const Lane *lane) noexcept nogil
cdef Channel *channel_of(Lane *lane, int number) noexcept nogil
cdef void end_content(Lane *lane, Channel *channel) noexcept nogil
cdef void forget_channels(Lane *lane) noexcept nogil
cdef void free_lane(Lane *lane) noexcept nogil
