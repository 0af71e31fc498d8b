# cython: boundscheck=False, wraparound=False
"""From the ordered octets of connections to a column sink, without the GIL. The twin of feeder_py.py.

As long as a direction is plainly a row of frames, they are followed here, and rows are added by `rows_c`. All
else is left to `exact_c`.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from amqpcodec.capture.model import Close, Data, Fault

from .._kernel.octets cimport u16, u32, u64
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, FRAME_END, HEADER, METHOD, OVERHEAD
from .buffers_c cimport NO_MEMORY, Columns
from .exact_c cimport CONNECTIONS, ERRORS, FRAMES, MESSAGES, METHODS, Chunk, ExactWay, Flow, piece_of
from .lane_c cimport NO_NUMBER, Channel, Lane, Mark, add, carry, channel_of, drop_carry, end_content, latest
from .plan_c cimport Shape, is_sound, shape_of_content, shape_of_method
from .rows_c cimport Place, Targets, add_frame, add_message, add_method, aim, name_file

from .sink_base import flow_of

cdef enum:
    _LEAST_METHOD = 12  # octets of a frame with the ids of a method
    _LEAST_HEADER = 20  # and with the fixed part of a content header

cdef enum:  # why the following of frames stopped
    _MORE = 0  # the next is not whole
    _ODD = 1  # the next is for the exact decoder
    _LOST = 2  # there is none that could be trusted

cdef dict _TABLES = {
    "frames": FRAMES, "methods": METHODS, "messages": MESSAGES, "connections": CONNECTIONS, "errors": ERRORS,
}


@cython.final
cdef class Feeder(ExactWay):
    """Finds the frames in the events of connections and gives them to a sink; see `feeder_py.Feeder`."""

    def __cinit__(self, sink):
        cdef Columns columns = sink.store
        decoding = sink.decoding
        self._sink = sink
        self._size_limit = decoding.frame_max - OVERHEAD
        self._body_limit = decoding.limits.body_size
        self._open_limit = min(decoding.limits.open_messages, 65536)  # there are no more channels
        self._most_rows = min(decoding.batch_rows, 2**31 - 1)
        self._most_octets = min(decoding.batch_bytes, 2**63 - 1)
        self._table = _TABLES[sink.table]
        self._payloads = sink.payloads
        aim(&self._targets, columns)
        self._targets.bare = self._targets.table.count == 0 and not sink.make.checks
        self._targets.files = <PyObject *>sink.make.files
        self._file = name_file(&self._targets)
        self._plans = {}
        self._flows = {}

    def feed(self, event):
        """Take what comes next in a direction of a connection, or a fault of the file; see `feeder_py`."""
        cdef Flow flow
        cdef bytes octets
        cdef const unsigned char *p
        cdef Py_ssize_t size
        cdef int64_t packet, time_ns
        cdef int direction
        if isinstance(event, Fault):
            self._sink.fault(event)
            return
        flow = self.flow(event.connection)
        direction = event.direction
        if isinstance(event, Data):
            octets = event.octets
            p, size = <const unsigned char *>PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets)
            packet = NO_NUMBER if event.packet is None else event.packet
            time_ns = NO_NUMBER if event.time_ns is None else event.time_ns
            with nogil:
                self.octets(flow, direction, p, size, packet, time_ns)
            return
        self._exact_event(flow, direction, event)
        if isinstance(event, Close):
            self._sink.close(event)
            if flow.decoder.ended:
                del self._flows[event.connection]

    def begin_file(self, before, name):
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)
        self._file = name_file(&self._targets)

    def state(self, note):
        """What `restore` makes the same of, see `feeder_py`; the exact decoders and sink tell it."""
        cdef Flow flow
        cdef int direction
        for flow in self._flows.values():
            for direction in range(2):
                self._resume(flow, &flow.lanes[direction])
        decoders = [[flow.connection.number, flow.decoder.state(note)] for flow in self._flows.values()]
        kept = self._sink.state(note)
        for flow in self._flows.values():
            for direction in range(2):
                self._suspend(flow, &flow.lanes[direction])
        return [decoders, kept]

    def restore(self, state, known):
        """Go on from a state, with nothing fed so far; see `feeder_py`."""
        cdef Flow flow
        cdef int direction
        for fields in state.items():
            found = flow_of(known, fields)
            flow = self.flow(found.connection)
            flow.decoder.restore(fields.fields(), found.positions)
            fields.end()
        self._sink.restore(state.items(), known)
        state.end()
        for flow in self._flows.values():
            for direction in range(2):
                flow.lanes[direction].begun = flow.decoder.directions[direction].end > 0
                flow.lanes[direction].ended = known[flow.connection.number].directions[direction].finished
                self._suspend(flow, &flow.lanes[direction])
        self._file = name_file(&self._targets)

    cdef Flow flow(self, object connection):
        """What is known of a connection, which may be new."""
        cdef Flow flow = self._flows.get(connection)
        if flow is None:
            decoder = self._sink.decoding.decoder(connection, self._sink.payloads)
            flow = self._flows[connection] = Flow(connection, decoder)
            flow.name(self._sink.make.origin(connection))
        return flow

    cdef int octets(
        self, Flow flow, int direction, const unsigned char *p, Py_ssize_t size, int64_t packet, int64_t time_ns
    ) except -1 nogil:
        """Take octets that come next in a direction, brought by a packet at a time (or NO_NUMBER).

        Raises what a sink raises; the octets are needed until this returns, and no longer.
        """
        cdef Lane *lane = &flow.lanes[direction]
        cdef Chunk chunk = Chunk(p, p, p + size, packet, time_ns)
        while chunk.at < chunk.end and not self._targets.table.trouble:
            if not lane.following:
                with gil:
                    self._search(flow, lane, &chunk)
            elif lane.carry.used:
                self._carry_on(flow, lane, &chunk)
            else:
                self._follow(flow, lane, &chunk)
        lane.packet, lane.time_ns = packet, time_ns
        if self._targets.table.trouble:
            with gil:
                (<Columns>self._sink.store).check()
        return 0

    # -- following frames

    cdef int _follow(self, Flow flow, Lane *lane, Chunk *chunk) except -1 nogil:
        """Take the frames that are whole where they lie."""
        cdef Place place = Place(0, chunk.packet, chunk.time_ns)
        cdef Py_ssize_t left
        cdef int why = self._frames(flow, lane, &chunk.at, chunk.end, &place)
        if why == _MORE:
            left = chunk.end - chunk.at
            if left and not carry(lane, chunk.at, <size_t>left, chunk.packet, chunk.time_ns):
                self._targets.table.trouble = NO_MEMORY
            chunk.at = chunk.end
            return 0
        left = <Py_ssize_t>u32(chunk.at + 3) + OVERHEAD if why == _ODD else piece_of(chunk)
        with gil:
            self._exactly(flow, lane, chunk, left)
        return 0

    cdef int _carry_on(self, Flow flow, Lane *lane, Chunk *chunk) except -1 nogil:
        """Add to a frame that is not whole what it lacks, and take it."""
        cdef const unsigned char *at
        cdef const Mark *mark
        cdef Place place
        cdef Py_ssize_t need = ENVELOPE_SIZE, take
        cdef int why
        if lane.carry.used >= ENVELOPE_SIZE:
            if not self._is_head(lane, lane.carry.start):  # but of a protocol header, which has no size in it
                with gil:
                    self._exactly(flow, lane, chunk, piece_of(chunk))
                return 0
            need = <Py_ssize_t>u32(lane.carry.start + 3) + OVERHEAD
        take = min(need - <Py_ssize_t>lane.carry.used, chunk.end - chunk.at)
        if not carry(lane, chunk.at, <size_t>take, chunk.packet, chunk.time_ns):
            self._targets.table.trouble = NO_MEMORY
        chunk.at += take
        if <Py_ssize_t>lane.carry.used < need:
            return 0
        at = lane.carry.start
        mark = latest(lane)
        place = Place(0, mark.packet, mark.time_ns)
        why = self._frames(flow, lane, &at, at + lane.carry.used, &place)
        if at != lane.carry.start:
            drop_carry(lane)
        elif why != _MORE:
            take = 0 if why == _ODD else piece_of(chunk)
            with gil:
                self._exactly(flow, lane, chunk, take)
        return 0

    cdef int _frames(
        self, Flow flow, Lane *lane, const unsigned char **at, const unsigned char *end, Place *place
    ) except -1 nogil:
        """Take the whole frames up to `end`; why the one that is then at `at` was not taken."""
        cdef const unsigned char *p = at[0]
        cdef uint64_t size
        cdef size_t taken
        while end - p >= ENVELOPE_SIZE and not self._targets.table.trouble:
            size = u32(p + 3)
            if not self._is_head(lane, p):
                return _LOST
            if size + OVERHEAD > <uint64_t>(end - p):
                break
            if p[ENVELOPE_SIZE + size] != FRAME_END:
                return _LOST
            place.offset = lane.offset
            taken = self._take(flow, lane, p, end, <size_t>size + OVERHEAD, place)
            if not taken:
                return _ODD
            lane.offset += <int64_t>taken
            p += taken
            at[0] = p
            if self._targets.table.rows >= self._most_rows or self._targets.table.octets >= self._most_octets:
                with gil:
                    self._sink.cut()
        return _MORE

    cdef size_t _take(
        self, Flow flow, Lane *lane, const unsigned char *p, const unsigned char *end, size_t size, Place *place
    ) except? 0 nogil:
        """Add the row of a frame, or of a content that begins with it; octets of that, 0 if it is for the exact decoder."""
        cdef bint exact = self._is_exact(lane, p, size)
        if self._payloads and not is_sound(lane.layout, p, size):
            return 0
        if exact:
            with gil:
                if not self._exact_method(flow, lane, p, <Py_ssize_t>size, place):
                    return 0
        if self._table == MESSAGES:
            return self._piece_of_content(flow, lane, p, end, size, place)
        if exact:
            return size  # with its row
        if self._table == FRAMES:
            if flow.beside and self._is_unknown(lane, p, size):
                with gil:
                    self._exact_frame(flow, lane, p, <Py_ssize_t>size, place)
            else:
                add_frame(&self._targets, lane, p, size, place)
        elif self._table == CONNECTIONS:
            self._count(flow, lane, p, place.time_ns)
        elif self._table == METHODS and p[0] == METHOD and not add_method(&self._targets, lane, p, size, place):
            with gil:
                self._exact_frame(flow, lane, p, <Py_ssize_t>size, place)
        return size

    cdef inline bint _is_exact(self, const Lane *lane, const unsigned char *p, size_t size) noexcept nogil:
        """Whether a whole frame has a method that may teach how to read on, or has something to hide."""
        cdef const Shape *method
        if p[0] != METHOD or size < _LEAST_METHOD or u16(p + 7) != lane.layout.connection_class:
            return False
        method = shape_of_method(lane.layout, u32(p + 7))
        return method is NULL or method.exact

    cdef inline bint _is_unknown(self, const Lane *lane, const unsigned char *p, size_t size) noexcept nogil:
        """Whether a whole frame has a method that the dialect has not."""
        return p[0] == METHOD and size >= _LEAST_METHOD and shape_of_method(lane.layout, u32(p + 7)) is NULL

    cdef void _count(self, Flow flow, Lane *lane, const unsigned char *p, int64_t time_ns) noexcept nogil:
        """Count a sound frame, for the account of its connection."""
        lane.frames += 1
        lane.messages += p[0] == METHOD and shape_of_method(lane.layout, u32(p + 7)).carries_content
        if time_ns != NO_NUMBER:
            flow.last_ns = time_ns
            if flow.first_ns == NO_NUMBER:
                flow.first_ns = time_ns

    cdef inline bint _is_head(self, const Lane *lane, const unsigned char *p) noexcept nogil:
        """Whether the envelope at `p` may be that of a frame."""
        return p[0] <= 31 and lane.layout.frame_types >> p[0] & 1 and <int64_t>u32(p + 3) <= self._size_limit

    # -- contents

    cdef size_t _piece_of_content(
        self, Flow flow, Lane *lane, const unsigned char *p, const unsigned char *end, size_t size, Place *place
    ) except 0 nogil:
        """Take a frame, and if it begins a content those behind it that complete it; how many octets that were."""
        cdef Channel *channel
        cdef size_t whole
        cdef bint taken
        if p[0] < METHOD or p[0] > BODY:
            return size
        channel = channel_of(lane, u16(p + 1))
        if channel is NULL:
            self._targets.table.trouble = NO_MEMORY
            return size
        if channel.exact:
            taken = False
        elif p[0] == METHOD:
            if channel.method is NULL and lane.open < self._open_limit:
                whole = whole_content(lane, p, end, self._body_limit, self._size_limit)
                if whole:
                    channel.known = True
                    if not add_message(&self._targets, lane, p, whole, place, place.time_ns):
                        with gil:
                            self._exact_content(flow, lane, p, whole, place)
                    return whole
            taken = self._open_content(lane, channel, p, size, place)
        elif p[0] == HEADER:
            taken = self._announce(lane, channel, p, size, place)
        else:
            taken = channel.header_at and channel.method is not NULL and size - OVERHEAD <= channel.left
            if taken:
                channel.left -= size - OVERHEAD
        if not taken:
            with gil:
                self._out_of_order(flow, lane, channel, p, <Py_ssize_t>size, place)
        elif channel.method is not NULL:
            self._keep(flow, lane, channel, p, size, place)
        return size

    cdef bint _open_content(
        self, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) noexcept nogil:
        """Begin a content with the method that carries one."""
        cdef const Shape *shape
        if channel.method is not NULL:
            return False
        shape = shape_of_method(lane.layout, u32(p + 7)) if size >= _LEAST_METHOD else NULL
        if shape is not NULL and shape.carries_content:
            if lane.open >= self._open_limit:
                return False
            lane.open += 1
            channel.method = shape
            channel.offset, channel.packet, channel.time_ns = place.offset, place.packet, place.time_ns
            channel.header_at = 0
        channel.known = True
        return True

    cdef bint _announce(
        self, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) noexcept nogil:
        """Learn from a content header how large the body will be."""
        if channel.method is NULL or channel.header_at or size < _LEAST_HEADER:
            return False
        if not _fits(lane, channel.method, p) or u64(p + 11) > self._body_limit:
            return False
        channel.header_at = channel.frames.used
        channel.header_offset = place.offset
        channel.left = u64(p + 11)
        return True

    cdef int _keep(
        self, Flow flow, Lane *lane, Channel *channel, const unsigned char *p, size_t size, const Place *place
    ) except -1 nogil:
        """Add a frame to its content; if it completes it, add the row."""
        cdef Place first
        if not add(&channel.frames, p, size):
            self._targets.table.trouble = NO_MEMORY
            return 0
        channel.last_ns = place.time_ns
        if not channel.header_at or channel.left:
            return 0
        first = Place(channel.offset, channel.packet, channel.time_ns)
        if not add_message(
            &self._targets, lane, channel.frames.start, channel.frames.used, &first, channel.last_ns
        ):
            with gil:
                self._give_out(self._content(flow, lane, channel))
        end_content(lane, channel)
        return 0

    # -- the exact way


cdef inline bint _fits(const Lane *lane, const Shape *method, const unsigned char *header) noexcept nogil:
    """Whether a content header goes with a method; one of a class that nobody knows is in error, not out of order."""
    cdef uint64_t class_id = u16(header + 7)
    return method.key >> 16 == class_id or shape_of_content(lane.layout, class_id) is NULL


cdef size_t whole_content(
    const Lane *lane, const unsigned char *p, const unsigned char *end, uint64_t body_limit, int64_t size_limit
) noexcept nogil:
    """Octets of the content that begins with the method at `p`, if all its frames lie there one behind the other."""
    cdef const unsigned char *begin = p
    cdef const unsigned char *channel = p + 1
    cdef const Shape *method
    cdef uint64_t left
    cdef size_t size = <size_t>u32(p + 3) + OVERHEAD
    if size < _LEAST_METHOD:
        return 0
    method = shape_of_method(lane.layout, u32(p + 7))
    if method is NULL or not method.carries_content:
        return 0
    p += size
    size = _frame_at(p, end, HEADER, channel, size_limit)
    if size < _LEAST_HEADER or not _fits(lane, method, p):
        return 0
    left = u64(p + 11)
    p += size
    if left > body_limit:
        return 0
    while left:
        size = _frame_at(p, end, BODY, channel, size_limit)
        if size < OVERHEAD or size - OVERHEAD > left:
            return 0
        left -= size - OVERHEAD
        p += size
    return <size_t>(p - begin)


cdef inline size_t _frame_at(
    const unsigned char *p, const unsigned char *end, int frame_type, const unsigned char *channel, int64_t limit
) noexcept nogil:
    """Octets of the frame at `p` if it is whole, and of this type and channel; else 0."""
    cdef size_t size
    if end - p < OVERHEAD or p[0] != frame_type or p[1] != channel[0] or p[2] != channel[1]:
        return 0
    size = u32(p + 3)
    if <int64_t>size > limit or size > <size_t>(end - p - OVERHEAD) or p[ENVELOPE_SIZE + size] != FRAME_END:
        return 0
    return size + OVERHEAD
