# cython: boundscheck=False, wraparound=False, cdivision=True
"""The contents of a direction that are not complete, without the GIL. The twin of contents_py.py.

Frames in order are added here. `message_sink` decides on all others: it takes the content out as an object, and
puts that back if it is still open.
"""

cimport cython

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from .._kernel.content_order cimport (
    BEFORE_HEADER, IN_BODY, IN_ORDER, NO_CONTENT, judge_body, judge_header, judge_method,
)
from .._kernel.framing cimport WHOLE, frame_at
from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, HEADER, METHOD, OVERHEAD
from .buffers_c cimport append, free_octets
from .cells_c cimport LEAST_HEADER, LEAST_METHOD, shape_of_method

from .open_message import OpenMessage
from .origins import FrameOrigin

cdef enum:
    _FEW = 8
    _KEPT_IN_ALL = 65536  # octets of memory that channels share, as long as they are few, for their next contents


@cython.final
cdef class OpenContents:
    """The contents of a direction that are not complete; see `contents_py.OpenContents`."""

    def __cinit__(self, connection, direction):
        self.connection = connection
        self.direction = direction
        self._kept = {}

    def __dealloc__(self):
        cdef size_t index
        if self._channels is not NULL:
            for index in range(self._mask + 1):
                free_octets(&self._channels[index].frames)
            free(self._channels)

    def __len__(self):
        return self.open

    def __iter__(self):
        cdef size_t index
        cdef list contents = list(self._kept.values())
        if self._channels is not NULL:
            for index in range(self._mask + 1):
                if self._channels[index].method is not NULL:
                    contents.append(self._content(self._channels + index))
        return iter(contents)

    @property
    def known(self):
        """The channels of which a method or content header was seen."""
        cdef size_t index
        cdef set known = set()
        if self._channels is not NULL:
            for index in range(self._mask + 1):
                if self._channels[index].known:
                    known.add(self._channels[index].number)
        return known

    def know(self, int number):
        """Note that a method or content header was seen; whether one was seen before."""
        cdef Channel *channel = self._seen(number)
        if channel is NULL:
            raise MemoryError
        before, channel.known = channel.known, True
        return before

    def knows(self, int number):
        """Return whether a method or content header was seen."""
        cdef Channel *channel = self._seen(number)
        if channel is NULL:
            raise MemoryError
        return channel.known

    def take(self, int number):
        """Take out the content that is open on a channel, if there is one."""
        cdef Channel *channel = self._seen(number)
        if channel is NULL:
            raise MemoryError
        if channel.kept:
            channel.kept = False
            self.open -= 1
            return self._kept.pop(number)
        if channel.method is NULL:
            return None
        content = self._content(channel)
        self.end(channel)
        return content

    def put(self, content):
        """Put in a content; none is open on its channel."""
        cdef Channel *channel = self._seen(content.channel)
        if channel is NULL:
            raise MemoryError
        self._kept[channel.number] = content
        channel.kept = True
        self.open += 1

    def clear(self):
        """Forget all contents and channels."""
        cdef size_t index
        self._kept.clear()
        if self._channels is not NULL:
            for index in range(self._mask + 1):
                free_octets(&self._channels[index].frames)
            free(self._channels)
            self._channels = NULL
            self._known_channels = 0
            self._mask = 0
        self.open = 0

    # -- frames in order

    cdef Channel *channel(self, int number) noexcept nogil:
        """Return the slot of a channel, valid until another is asked for; NULL if there is no memory for it."""
        return self._seen(number)

    cdef int add(
        self, Channel *channel, const Layout *layout, const unsigned char *p, size_t size, const Position *position,
        Py_ssize_t open_limit, uint64_t body_limit,
    ) noexcept nogil:
        """Add a frame to its content, if it is in order, or begin one with it."""
        cdef bint same_class
        if channel.kept:
            return DECLINED
        if p[0] == METHOD:
            if not self._open(channel, layout, p, size, position, open_limit):
                return DECLINED
        elif p[0] == HEADER:
            if channel.method is NULL or size < LEAST_HEADER or channel.layout is not layout:
                return DECLINED
            same_class = _is_of_class(p, channel.method)
            if judge_header(_stage_of(channel), same_class, u64(p + 11), body_limit) != IN_ORDER:
                return DECLINED
            channel.header_at = channel.frames.used
            channel.header_offset = position.offset
            channel.left = u64(p + 11)
        elif judge_body(_stage_of(channel), size - OVERHEAD, channel.left) != IN_ORDER:
            return DECLINED
        else:
            channel.left -= size - OVERHEAD
        if channel.method is NULL:
            return ADDED
        if not append(&channel.frames, p, size):
            return OUT_OF_MEMORY
        channel.last_ns = position.time_ns
        return COMPLETED if channel.header_at and not channel.left else ADDED

    cdef bint _open(
        self, Channel *channel, const Layout *layout, const unsigned char *p, size_t size, const Position *position,
        Py_ssize_t open_limit,
    ) noexcept nogil:
        """Begin a content with a method that carries one, on a channel where none is open."""
        cdef const Shape *method
        if judge_method(_stage_of(channel)) != IN_ORDER:
            return False
        method = shape_of_method(layout, u32(p + 7)) if size >= LEAST_METHOD else NULL
        if method is not NULL and method.carries_content:
            if self.open >= open_limit:
                return False
            self.open += 1
            channel.method, channel.layout = method, layout
            channel.first = position[0]
            channel.header_at = 0
        channel.known = True
        return True

    cdef void end(self, Channel *channel) noexcept nogil:
        """The content of a channel is in a row, or taken out."""
        self.open -= 1
        channel.method = NULL
        channel.frames.used = 0
        if channel.frames.room > <size_t>(_KEPT_IN_ALL // self._known_channels):
            free_octets(&channel.frames)

    cdef Channel *_seen(self, int number) noexcept nogil:
        """The slot of a channel; NULL if there is no memory for it."""
        cdef Channel *channel
        cdef size_t slot
        if self._channels is NULL and not self._spread():
            return NULL
        slot = <size_t>number & self._mask
        while True:
            channel = self._channels + slot
            if channel.number == number:
                return channel
            if channel.number < 0:
                break
            slot = (slot + 1) & self._mask
        if 2 * <size_t>self._known_channels >= self._mask:
            return self._seen(number) if self._spread() else NULL
        channel.number = number
        self._known_channels += 1
        return channel

    cdef bint _spread(self) noexcept nogil:
        """Have slots for more channels."""
        cdef Channel *old = self._channels
        cdef size_t index, slot, count = self._mask + 1 if old is not NULL else 0
        cdef size_t slots = 2 * count if count else _FEW
        cdef Channel *channels = <Channel *>calloc(slots, sizeof(Channel))
        if channels is NULL:
            return False
        for index in range(slots):
            channels[index].number = -1
        for index in range(count):
            if old[index].number >= 0:
                slot = <size_t>old[index].number & (slots - 1)
                while channels[slot].number >= 0:
                    slot = (slot + 1) & (slots - 1)
                channels[slot] = old[index]
        free(old)
        self._channels = channels
        self._mask = slots - 1
        return True

    cdef object _content(self, const Channel *channel):
        """The content whose frames are kept, as an object."""
        cdef const unsigned char *p = channel.frames.start
        cdef const unsigned char *end = p + channel.frames.used
        cdef size_t size
        origin = frame_origin(self.connection, self.direction, &channel.first)
        content = OpenMessage(origin, <object>channel.layout.module, channel.number)
        while p < end:
            size = u32(p + 3) + OVERHEAD
            if content.method is None:
                content.method = octets_at(p, size)
            elif content.header is None:
                content.header, content.header_offset = octets_at(p, size), channel.header_offset
                content.body_size, content.left = u64(p + 11), channel.left
            else:
                content.parts.append(octets_at(p + ENVELOPE_SIZE, size - OVERHEAD))
            content.frames += 1
            p += size
        content.octets = channel.frames.used
        content.last_ns = or_none(channel.last_ns)
        return content


cdef inline int _stage_of(const Channel *channel) noexcept nogil:
    if channel.method is NULL:
        return NO_CONTENT
    return IN_BODY if channel.header_at else BEFORE_HEADER


cdef inline bint _is_of_class(const unsigned char *header, const Shape *method) noexcept nogil:
    """Return whether a content header is of the class of a method."""
    return method.key >> 16 == u16(header + 7)


cdef size_t whole_content(
    const Layout *layout, const unsigned char *p, const unsigned char *end, uint64_t body_limit, int64_t size_limit
) noexcept nogil:
    """Octets of the content that begins with the method at `p`, if all its frames lie there one behind the other."""
    cdef const unsigned char *begin = p
    cdef const unsigned char *channel = p + 1
    cdef const Shape *method
    cdef uint64_t left
    cdef size_t size = <size_t>u32(p + 3) + OVERHEAD
    if size < LEAST_METHOD:
        return 0
    method = shape_of_method(layout, u32(p + 7))
    if method is NULL or not method.carries_content:
        return 0
    p += size
    size = _frame_at(p, end, HEADER, channel, size_limit)
    if size < LEAST_HEADER:
        return 0
    left = u64(p + 11)
    if judge_header(BEFORE_HEADER, _is_of_class(p, method), left, body_limit) != IN_ORDER:
        return 0
    p += size
    while left:
        size = _frame_at(p, end, BODY, channel, size_limit)
        if size < OVERHEAD or judge_body(IN_BODY, size - OVERHEAD, left) != IN_ORDER:
            return 0
        left -= size - OVERHEAD
        p += size
    return <size_t>(p - begin)


cdef inline size_t _frame_at(
    const unsigned char *p, const unsigned char *end, unsigned int frame_type, const unsigned char *channel,
    int64_t limit,
) noexcept nogil:
    """Octets of the frame at `p` if it is whole, and of this type and channel; else 0."""
    cdef long long size
    if frame_at(p, end - p, 1U << frame_type, limit, False, &size) != WHOLE or p[1] != channel[0] or p[2] != channel[1]:
        return 0
    return <size_t>size


cdef object frame_origin(object connection, int direction, const Position *position):
    """Where a frame was found, as `rows` takes it."""
    return FrameOrigin(connection, direction, or_none(position.packet), or_none(position.time_ns), position.offset)


# -- counts


@cython.final
cdef class Totals:
    """Counts of the frames of a connection; see `contents_py.Totals`."""

    def __init__(self):
        self.first_ns = self.last_ns = NO_NUMBER

    def see(self, int64_t time_ns):
        """Something came at this time, or at NO_TIME."""
        see(self, time_ns)

    def count(self, int direction, bint carries_content, int64_t time_ns):
        """A frame came."""
        count(self, direction, carries_content, time_ns)
