"""What is kept of a direction between packets: a frame that is not whole, and contents that are open."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

cdef enum:
    _FEW = 8
    _KEPT_ROOM = 4096  # octets of memory that are kept for the next frame that is not whole
    _KEPT_IN_ALL = 65536  # and that channels share, as long as they are few, for their next contents


cdef unsigned char *more(Octets *octets, size_t size) noexcept nogil:
    """Make room for octets behind those that are there; where they go, NULL if there is no memory for them."""
    cdef size_t room = octets.room
    cdef void *moved
    if size > room - octets.used:
        room = max(octets.used + size, 2 * room)
        moved = realloc(octets.start, room)
        if moved is NULL:
            return NULL
        octets.start = <unsigned char *>moved
        octets.room = room
    octets.used += size
    return octets.start + octets.used - size


cdef bint add(Octets *octets, const unsigned char *p, size_t size) noexcept nogil:
    """Put octets behind those that are there; False if there is no memory for them."""
    cdef unsigned char *to = more(octets, size)
    if to is NULL:
        return False
    memcpy(to, p, size)
    return True


cdef void _free_octets(Octets *octets) noexcept nogil:
    free(octets.start)
    octets.start = NULL
    octets.used = octets.room = 0


cdef bint carry(Lane *lane, const unsigned char *p, size_t size, int64_t packet, int64_t time_ns) noexcept nogil:
    """Keep octets of a frame that is not whole; False if there is no memory for them."""
    cdef Py_ssize_t room = lane.mark_room
    cdef Mark *mark
    cdef void *moved
    if lane.marked == room:
        room = max(2 * room, <Py_ssize_t>_FEW)
        moved = realloc(lane.marks, <size_t>room * sizeof(Mark))
        if moved is NULL:
            return False
        lane.marks = <Mark *>moved
        lane.mark_room = room
    if not add(&lane.carry, p, size):
        return False
    mark = lane.marks + max(lane.marked - 1, 0)
    if lane.marked == 0:
        lane.marked = 1
    elif mark.packet != packet or mark.time_ns != time_ns:
        mark += 1  # else one is for all that a packet, or a stream without packets, has brought
        lane.marked += 1
    mark[0] = Mark(lane.offset + <int64_t>lane.carry.used, packet, time_ns)
    return True


cdef void drop_carry(Lane *lane) noexcept nogil:
    """Forget the octets carried."""
    lane.carry.used = 0
    lane.marked = 0
    if lane.carry.room > _KEPT_ROOM:
        _free_octets(&lane.carry)
        free(lane.marks)
        lane.marks = NULL
        lane.mark_room = 0


cdef const Mark *latest(const Lane *lane) noexcept nogil:
    """The latest of the packets that brought the octets carried."""
    cdef const Mark *found = lane.marks
    cdef Py_ssize_t index
    for index in range(1, lane.marked):
        if lane.marks[index].packet > found.packet:
            found = lane.marks + index
    return found


cdef bint _spread(Lane *lane) noexcept nogil:
    """Have places for more channels."""
    cdef size_t places = 2 * (lane.channel_mask + 1) if lane.channels is not NULL else _FEW
    cdef Channel *channels = <Channel *>calloc(places, sizeof(Channel))
    cdef Channel *old = lane.channels
    cdef size_t index, place, count = lane.channel_mask + 1 if old is not NULL else 0
    if channels is NULL:
        return False
    for index in range(places):
        channels[index].number = -1
    for index in range(count):
        if old[index].number >= 0:
            place = <size_t>old[index].number & (places - 1)
            while channels[place].number >= 0:
                place = (place + 1) & (places - 1)
            channels[place] = old[index]
    free(old)
    lane.channels = channels
    lane.channel_mask = places - 1
    return True


cdef Channel *channel_of(Lane *lane, int number) noexcept nogil:
    """What is known of a channel; NULL if there is no memory for it."""
    cdef Channel *channel
    cdef size_t place
    if lane.channels is NULL and not _spread(lane):
        return NULL
    place = <size_t>number & lane.channel_mask
    while True:
        channel = lane.channels + place
        if channel.number == number:
            return channel
        if channel.number < 0:
            break
        place = (place + 1) & lane.channel_mask
    if 2 * <size_t>lane.channel_count >= lane.channel_mask:
        return channel_of(lane, number) if _spread(lane) else NULL
    channel.number = number
    lane.channel_count += 1
    return channel


cdef void end_content(Lane *lane, Channel *channel) noexcept nogil:
    """The content of a channel is in a row, or with the exact sink."""
    lane.open -= 1
    channel.method = NULL
    channel.frames.used = 0
    if channel.frames.room > <size_t>(_KEPT_IN_ALL // lane.channel_count):
        _free_octets(&channel.frames)


cdef void forget_channels(Lane *lane) noexcept nogil:
    """Know of no channel any more."""
    cdef size_t index
    if lane.channels is not NULL:
        for index in range(lane.channel_mask + 1):
            _free_octets(&lane.channels[index].frames)
        free(lane.channels)
        lane.channels = NULL
        lane.channel_count = 0
        lane.channel_mask = 0


cdef void free_lane(Lane *lane) noexcept nogil:
    """Give all memory back."""
    forget_channels(lane)
    _free_octets(&lane.carry)
    free(lane.marks)
    lane.marks = NULL
