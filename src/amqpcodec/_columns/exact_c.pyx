# cython: boundscheck=False, wraparound=False
"""What the following of frames leaves to the exact decoder and sink, with what was kept so far, and takes back.

That is all but frames that are plainly right: the search for a frame, methods of the connection class that tell how
to read on or carry login data, frames out of order, values that are not plain.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from amqpcodec.capture.dialects import HEADER_PREFIX, HEADER_SIZE
from amqpcodec.capture.direction import Held
from amqpcodec.capture.frames import PIECE
from amqpcodec.capture.model import CLIENT_TO_SERVER, Close, Data

from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport ENVELOPE_SIZE, OVERHEAD
from .lane_c cimport NO_NUMBER, Channel, Lane, Mark, carry, channel_of, drop_carry, end_content, forget_channels, free_lane
from .plan_c cimport Plan
from .rows_c cimport Place

from .feeder_py import hand_on
from .rows import Content
from .rows import Place as ExactPlace

cdef Py_ssize_t _PIECE = PIECE


cdef inline object _number(int64_t number):
    return None if number == NO_NUMBER else number


cdef inline bytes _octets(const unsigned char *p, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char *>p, size)


cdef object _exact_place(Flow flow, const Lane *lane, const Place *place):
    return ExactPlace(
        flow.connection, lane.direction, _number(place.packet), _number(place.time_ns), place.offset
    )


@cython.final
cdef class Flow:
    """A connection: its decoder, and its two directions as they are followed here."""

    def __cinit__(self, connection, decoder):
        self.connection = connection
        self.decoder = decoder
        self.lanes[1].direction = 1
        self.first_ns = self.last_ns = NO_NUMBER

    def __dealloc__(self):
        free_lane(&self.lanes[0])
        free_lane(&self.lanes[1])

    cdef int name(self, dict cells) except -1:
        """Keep what every row of the connection says of it."""
        cdef Lane *lane
        cdef bytes client = None, server = None
        if cells.get("client") is not None:
            client, server = cells["client"].encode(), cells["server"].encode()
        self._names = client, server
        for index in range(2):
            lane = &self.lanes[index]
            if client is not None:
                lane.client, lane.client_size = PyBytes_AS_STRING(client), <size_t>PyBytes_GET_SIZE(client)
                lane.server, lane.server_size = PyBytes_AS_STRING(server), <size_t>PyBytes_GET_SIZE(server)
                lane.flow = cells["flow"]
        return 0


cdef class ExactWay:
    """The part of a feeder that knows the exact decoder and sink."""

    cdef int _exact_frame(
        self, Flow flow, const Lane *lane, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1:
        if self._table == CONNECTIONS:
            self._account(flow)
        cdef bytes octets = _octets(p, size)
        self._sink.frame(_exact_place(flow, lane, place), octets, flow.decoder.reader.of(octets).module)
        return 0

    cdef bint _exact_method(
        self, Flow flow, const Lane *lane, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1:
        """Learn from a method, and leave its row to the exact sink, if that is not one of contents.

        False, with nothing done, if frames are to be read otherwise behind it.
        """
        if not flow.decoder.learn(_octets(p, size)):
            return False
        flow.beside = flow.decoder.beside is not None
        if self._table != MESSAGES:
            self._exact_frame(flow, lane, p, size, place)
        return True

    cdef int _exact_content(
        self, Flow flow, const Lane *lane, const unsigned char *p, size_t size, const Place *place
    ) except -1:
        """Add the row of a content whose frames lie one behind the other."""
        cdef Channel channel
        channel.frames.start, channel.frames.used = <unsigned char *>p, size
        channel.header_at = u32(p + 3) + OVERHEAD
        channel.header_offset = place.offset + <int64_t>channel.header_at
        channel.offset, channel.packet, channel.time_ns = place.offset, place.packet, place.time_ns
        channel.last_ns = place.time_ns
        channel.left = 0
        return self._give_out(self._content(flow, lane, &channel))

    cdef int _give_out(self, object content) except -1:
        """Add the row of a content that is whole. (A local object in a function without the GIL would cost it the GIL.)"""
        content.complete = True
        self._sink.give_out(content)
        return 0

    cdef object _content(self, Flow flow, const Lane *lane, const Channel *channel):
        """The frames kept of a content, as the exact sink has them."""
        cdef const unsigned char *p = channel.frames.start
        cdef const unsigned char *end = p + channel.frames.used
        cdef Place place = Place(channel.offset, channel.packet, channel.time_ns)
        cdef Py_ssize_t size
        content = Content(_exact_place(flow, lane, &place), flow.plan.module, u16(p + 1))
        while p < end:
            size = <Py_ssize_t>u32(p + 3) + OVERHEAD
            if content.method is None:
                content.method = _octets(p, size)
            elif content.header is None:
                content.header, content.header_offset = _octets(p, size), channel.header_offset
                content.body_size = u64(p + 11)
            else:
                content.pieces.append(_octets(p + ENVELOPE_SIZE, size - OVERHEAD))
            content.frames += 1
            p += size
        content.left = channel.left if channel.header_at else 0
        content.octets = channel.frames.used
        content.last_ns = _number(channel.last_ns)
        return content

    cdef int _out_of_order(
        self, Flow flow, Lane *lane, Channel *channel, const unsigned char *p, Py_ssize_t size, const Place *place
    ) except -1:
        """Leave a frame, and what is open in its channel, to the exact sink."""
        exact = self._sink.lane(flow.connection, lane.direction)
        self._leave(flow, lane, channel, exact)
        exact.elsewhere = lane.open - len(exact.open)
        lane.open -= channel.exact
        self._exact_frame(flow, lane, p, size, place)
        exact.elsewhere = 0
        channel.exact = channel.number in exact.open
        lane.open += channel.exact
        return 0

    cdef int _leave(self, Flow flow, Lane *lane, Channel *channel, object exact) except -1:
        """Tell the exact sink what is known of a channel."""
        if channel.known:
            exact.known.add(channel.number)
            channel.known = False
        if channel.method is not NULL:
            exact.open[channel.number] = self._content(flow, lane, channel)
            end_content(lane, channel)
            channel.exact = True
            lane.open += 1
        return 0

    cdef int _leave_all(self, Flow flow, Lane *lane) except -1:
        """Tell the exact sink what is known of a direction."""
        cdef size_t index
        if self._table != MESSAGES or lane.channels is NULL:
            return 0
        exact = self._sink.lane(flow.connection, lane.direction)
        for index in range(lane.channel_mask + 1):
            if lane.channels[index].number >= 0:
                self._leave(flow, lane, lane.channels + index, exact)
        return 0

    cdef int _take_back(self, Flow flow, Lane *lane) except -1:
        """Learn from the exact sink which contents it has open, which is all there is to know of channels then."""
        cdef Channel *channel
        if self._table != MESSAGES:
            return 0
        forget_channels(lane)  # so that the next time costs what comes until then, not what has ever come
        exact = self._sink.lane(flow.connection, lane.direction)
        lane.open = len(exact.open)
        for number in exact.open:
            channel = channel_of(lane, number)
            if channel is NULL:
                raise MemoryError
            channel.exact = True
        return 0

    cdef int _search(self, Flow flow, Lane *lane, Chunk *chunk) except -1:
        """Have the exact decoder look for a frame to follow from; but for the first octets of a direction, which
        mostly begin with one."""
        cdef Py_ssize_t size = piece_of(chunk)
        cdef Place place = Place(0, chunk.packet, chunk.time_ns)
        cdef bytes octets
        if not lane.begun:
            lane.begun = True
            octets = _octets(chunk.at, size)
            if octets.startswith(HEADER_PREFIX):
                size = min(size, <Py_ssize_t>HEADER_SIZE)
                if self._is_spoken(flow, lane, octets[:size]):
                    self._begin(flow, lane, chunk)
                    self._exact_frame(flow, lane, chunk.at, size, &place)
                    lane.offset = size
                    chunk.at += size
                    return 0
            elif flow.decoder.directions[lane.direction].begins_with_frames(octets):
                self._begin(flow, lane, chunk)
                return 0
        self._exactly(flow, lane, chunk, size)
        return 0

    cdef bint _is_spoken(self, Flow flow, const Lane *lane, bytes octets) except -1:
        """Whether octets are a whole protocol header, of a client, that asks for a dialect."""
        return len(octets) == HEADER_SIZE and lane.direction == CLIENT_TO_SERVER and flow.decoder.note_header(octets)

    cdef int _begin(self, Flow flow, Lane *lane, const Chunk *chunk) except -1:
        """Follow the frames of a direction from its first octet on."""
        flow.decoder.recognise()
        if flow.plan is None or flow.plan.module is not flow.decoder.module:
            self._learn(flow)
        lane.following, lane.offset = True, 0
        lane.packet, lane.time_ns = chunk.packet, chunk.time_ns
        return 0

    cdef int _exactly(self, Flow flow, Lane *lane, Chunk *chunk, Py_ssize_t size) except -1:
        """Give what is carried and further octets to the exact decoder."""
        cdef bytes octets = _octets(chunk.at, size)
        self._resume(flow, lane)
        event = Data(
            flow.connection, lane.direction, lane.offset, octets, _number(chunk.packet), _number(chunk.time_ns)
        )
        chunk.at += size
        self._give(flow, lane, event)
        return 0

    cdef int _exact_event(self, Flow flow, int direction, object event) except -1:
        """Give a gap or the end of a direction to the exact decoder."""
        cdef Lane *lane = &flow.lanes[direction]
        lane.begun = True
        self._resume(flow, lane)
        lane.ended = isinstance(event, Close)
        self._give(flow, lane, event)
        return 0

    cdef int _give(self, Flow flow, Lane *lane, object event) except -1:
        for item in flow.decoder.feed(event):
            hand_on(item, flow.decoder, self._sink)
        # No more than came now: a frame that waits for its end is not to be handed to and fro with every packet.
        self._suspend(flow, lane, len(event.octets) if isinstance(event, Data) else 0)
        return 0

    cdef int _account(self, Flow flow) except -1:
        """Tell the exact account what was counted here, before it looks at anything."""
        cdef Lane *lane
        cdef int index
        times = _number(flow.first_ns), _number(flow.last_ns)
        for index in range(2):
            lane = &flow.lanes[index]
            if lane.frames:
                self._sink.followed(flow.connection, index, lane.frames, lane.messages, *times)
                lane.frames = lane.messages = 0
        flow.first_ns = flow.last_ns = NO_NUMBER
        return 0

    cdef int _resume(self, Flow flow, Lane *lane) except -1:
        """Let the exact decoder follow the frames from here on, if they are being followed here."""
        cdef const Mark *mark
        cdef Py_ssize_t index
        if self._table == CONNECTIONS:
            self._account(flow)
        if not lane.following:
            return 0
        self._leave_all(flow, lane)
        marks = []
        for index in range(lane.marked):  # there is no array as long as nothing was carried
            mark = lane.marks + index
            marks.append((mark.end, _number(mark.packet), _number(mark.time_ns)))
        held = Held(
            lane.offset, _octets(lane.carry.start, <Py_ssize_t>lane.carry.used), marks, _number(lane.packet),
            _number(lane.time_ns),
        )
        flow.decoder.directions[lane.direction].resume(held)
        lane.offset += <int64_t>lane.carry.used
        lane.following = False
        drop_carry(lane)
        return 0

    cdef int _suspend(self, Flow flow, Lane *lane, object most=None) except -1:
        """Follow the frames here, if the exact decoder has found out where they are, and keeps no more than `most`
        octets of one that is not whole."""
        cdef const unsigned char *octets
        side = flow.decoder.directions[lane.direction]
        lane.offset = side.end
        flow.beside = flow.decoder.beside is not None
        if lane.ended:
            return 0
        if flow.plan is None or flow.plan.module is not flow.decoder.module:
            self._learn(flow)
        held = side.suspend(most)
        if held is None:
            return 0
        lane.following, lane.offset = True, held.start
        lane.packet = NO_NUMBER if held.packet is None else held.packet
        lane.time_ns = NO_NUMBER if held.time_ns is None else held.time_ns
        octets = <const unsigned char *>PyBytes_AS_STRING(held.octets)
        if held.octets:
            self._hold(lane, octets, held.marks)
        self._take_back(flow, lane)
        return 0

    cdef int _hold(self, Lane *lane, const unsigned char *octets, list marks) except -1:
        """Carry octets as they came."""
        cdef int64_t at = lane.offset
        for end, packet, time_ns in marks:
            packet = NO_NUMBER if packet is None else packet
            time_ns = NO_NUMBER if time_ns is None else time_ns
            if not carry(lane, octets + (at - lane.offset), <size_t>(end - at), packet, time_ns):
                raise MemoryError
            at = end
        return 0

    cdef int _learn(self, Flow flow) except -1:
        """Read both directions of a connection as its decoder has learnt to."""
        cdef Lane *lane
        cdef int index
        module = flow.decoder.module
        plan = self._plans.get(module)
        if plan is None:
            make = self._sink.make
            plan = self._plans[module] = Plan(
                self._sink.store, module, make, make.checks or self._payloads, self._sink.is_counted_only
            )
        for index in range(2):
            lane = &flow.lanes[index]
            if lane.following:
                self._leave_all(flow, lane)
        flow.plan = plan
        for index in range(2):
            flow.lanes[index].layout = &flow.plan.layout
        return 0


cdef Py_ssize_t piece_of(const Chunk *chunk) noexcept nogil:
    """Octets up to where both builds cut."""
    return min(chunk.end - chunk.at, _PIECE - (chunk.at - chunk.begin) % _PIECE)
