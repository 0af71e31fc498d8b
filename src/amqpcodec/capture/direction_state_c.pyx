# cython: boundscheck=False, wraparound=False, cdivision=True
"""Where a direction of a connection stands, for who follows frames without the GIL.

The twin of direction_state_py.py.
"""

cimport cython

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from .._kernel.framing cimport WHOLE, frame_at
from .._kernel.octets cimport u16
from .._kernel.wire cimport ENVELOPE_SIZE, METHOD, OVERHEAD

from ..errors import DecodeError
from .model import CapturedFrame

__all__ = ["DirectionState"]

cdef enum:
    _FEW_MARKS = 2

    _LEAST_METHOD = OVERHEAD + 4

cdef char _NOTHING = 0
cdef object _new = tuple.__new__


cdef inline object _or_none(int64_t number):
    return None if number == NO_NUMBER else number


cdef inline int64_t _or_no_number(object number) except? -1:
    return NO_NUMBER if number is None else number


@cython.final
cdef class DirectionState:
    """The octets of a direction that belong to no frame so far; see `direction_state_py.DirectionState`.

    A view of the octets is of use until octets are added or passed.
    """

    def __init__(self):  # a __cinit__ without arguments is undefined behaviour in Cython's own code: NULL + 0
        self.last_packet = self.last_time_ns = NO_NUMBER

    def __dealloc__(self):
        free(self._memory)
        free(self._marks)

    def __getbuffer__(self, Py_buffer *view, int flags):
        place = self._memory + self._begin if self.size() else <unsigned char *>&_NOTHING
        PyBuffer_FillInfo(view, self, place, <Py_ssize_t>self.size(), 1, flags)

    @property
    def octets(self):
        """The octets; an index into them is one into the stream less `start`."""
        return memoryview(self)

    @property
    def packet(self):
        """Number of the packet that came last, None if it has none."""
        return _or_none(self.last_packet)

    @packet.setter
    def packet(self, number):
        self.last_packet = _or_no_number(number)

    @property
    def time_ns(self):
        """Its time."""
        return _or_none(self.last_time_ns)

    @time_ns.setter
    def time_ns(self, time_ns):
        self.last_time_ns = _or_no_number(time_ns)

    @property
    def end(self):
        """Offset behind all octets that have come."""
        return self.start + <int64_t>self.size()

    @property
    def marks(self):
        """Which packet brought the octets before which offset, in order."""
        cdef Py_ssize_t index
        cdef list marks = []
        for index in range(self._first_mark, self._last_mark):
            mark = self._marks[index]
            marks.append((mark.end, _or_none(mark.packet), _or_none(mark.time_ns)))
        return marks

    def append(self, bytes octets not None, packet, time_ns):
        """Take the octets that come next."""
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(octets)
        if not self.keep(p, <size_t>PyBytes_GET_SIZE(octets), _or_no_number(packet), _or_no_number(time_ns)):
            raise MemoryError

    def pass_to(self, int64_t offset):
        """Forget the octets before an offset; none of them need have come."""
        if offset < self.start:
            raise ValueError(f"offset {offset} lies before {self.start}, where the octets begin")
        self.skip(offset)

    def brought_by(self, int64_t end):
        """Packet and time of the latest packet among those that brought the octets from `start` to `end`."""
        cdef Mark mark = self.latest(end)
        return _or_none(mark.packet), _or_none(mark.time_ns)

    def frames(self, reader, connection, direction):
        """The whole frames that come next, as far as they are common; see `direction_state_py`."""
        cdef list found = []
        if not self.following or reader.common is None:
            return found
        decoder, dialect = reader.common[:2]
        cdef unsigned int types = reader.common[2]
        cdef long long size_limit = reader.common[3]
        cdef int negotiating = reader.common[4]
        cdef long long size = 0
        cdef const unsigned char *p
        cdef bytes octets
        while frame_at(self.first(), <Py_ssize_t>self.size(), types, size_limit, False, &size) == WHOLE:
            p = self.first()
            if p[0] == METHOD and (size < _LEAST_METHOD or u16(p + ENVELOPE_SIZE) == negotiating):
                break
            octets = PyBytes_FromStringAndSize(<const char *>p, <Py_ssize_t>size)
            try:
                frame = next(decoder.feed(octets))
            except DecodeError:
                decoder.reset()
                break
            except BaseException:
                decoder.reset()
                raise
            packet, time_ns = self.brought_by(self.start + size)
            row = connection, direction, packet, time_ns, self.start, size - OVERHEAD, octets, frame, dialect
            found.append(_new(CapturedFrame, row))
            self.skip(self.start + size)
        return found

    cdef bint keep(self, const unsigned char *p, size_t size, int64_t packet, int64_t time_ns) noexcept nogil:
        """Take the octets that come next; False if there is no memory for them."""
        self.last_packet, self.last_time_ns = packet, time_ns
        if size == 0:
            return True
        if size > self._room - self._end and not self._make_room(size):
            return False
        if not self._mark(self.start + <int64_t>(self.size() + size), packet, time_ns):
            return False
        memcpy(self._memory + self._end, p, size)
        self._end += size
        return True

    cdef void skip(self, int64_t offset) noexcept nogil:
        """Forget the octets before an offset."""
        cdef int64_t size = offset - self.start
        self.start = offset
        if size < <int64_t>self.size():
            self._begin += <size_t>size
            while self._marks[self._first_mark].end <= offset:
                self._first_mark += 1
            return
        # Memory is not kept for later: thousands of connections may be open, each with a few octets now and then.
        free(self._memory)
        free(self._marks)
        self._memory, self._marks = NULL, NULL
        self._begin = self._end = self._room = 0
        self._first_mark = self._last_mark = self._mark_room = 0

    cdef Mark latest(self, int64_t end) noexcept nogil:
        """The latest of the packets that brought the octets from `start` to `end`."""
        cdef Mark found = Mark(end, self.last_packet, self.last_time_ns)
        cdef Py_ssize_t index = self._first_mark
        if index == self._last_mark:
            return found
        found = self._marks[index]
        while self._marks[index].end < end and index + 1 < self._last_mark:
            index += 1
            if self._marks[index].packet > found.packet != NO_NUMBER:
                found = self._marks[index]
        return found

    cdef bint _make_room(self, size_t size) noexcept nogil:
        """Have memory for further octets behind those that are there."""
        cdef size_t used = self.size(), room
        cdef void *moved
        if self._begin:
            memmove(self._memory, self._memory + self._begin, used)
            self._begin, self._end = 0, used
            if size <= self._room - used and used <= self._room // 2:  # else it would be moved too often
                return True
        room = max(used + size, 2 * self._room)
        moved = realloc(self._memory, room)
        if moved is NULL:
            return False
        self._memory, self._room = <unsigned char *>moved, room
        return True

    cdef bint _mark(self, int64_t end, int64_t packet, int64_t time_ns) noexcept nogil:
        """Note which packet brought the octets before an offset; False if there is no memory for it."""
        cdef Py_ssize_t count = self._last_mark - self._first_mark, room
        cdef Mark *last
        cdef void *moved
        if count:
            last = self._marks + self._last_mark - 1
            if last.packet == packet and last.time_ns == time_ns:
                last.end = end  # one for all that a packet, or a stream without packets, has brought
                return True
        if self._last_mark == self._mark_room:
            if self._first_mark:
                memmove(self._marks, self._marks + self._first_mark, <size_t>count * sizeof(Mark))
                self._first_mark, self._last_mark = 0, count
            if count > self._mark_room // 2 or count == 0:
                room = max(2 * self._mark_room, <Py_ssize_t>_FEW_MARKS)
                moved = realloc(self._marks, <size_t>room * sizeof(Mark))
                if moved is NULL:
                    return False
                self._marks, self._mark_room = <Mark *>moved, room
        self._marks[self._last_mark] = Mark(end, packet, time_ns)
        self._last_mark += 1
        return True
