# cython: boundscheck=False, wraparound=False, cdivision=True
"""From captures and the events of connections to column sinks. The twin of feeder_py.py.

Each direction stands where its `DirectionState` says, and nowhere else. While it follows frames, they are cut here
and become rows without the GIL; whatever the functions for that decline is one call of Python: of the decoder of the
direction, which searches for frames and reads damaged ones, or of the sink, which makes a row.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcmp

from .._kernel.framing cimport MORE, UNKNOWN_TYPE, WHOLE, WRONG_END, FrameStatus, frame_at
from .._kernel.octets cimport u16, u32
from .._kernel.wire cimport BODY, ENVELOPE_SIZE, METHOD, OVERHEAD
from ..capture.direction_state_c cimport NO_NUMBER, DirectionState, Mark
from ..capture.scanner_c cimport TAKEN, OctetConsumer, Scanner
from ..capture.streams_c cimport StreamTracker
from .buffers_c cimport NO_MEMORY, Columns, Table, put_int64, put_octets
from .cells_c cimport (
    LEAST_HEADER, LEAST_METHOD, Layout, Origin, Plan, Position, Shape, Targets, add_frame, add_message, add_method,
    aim, is_valid, name_file, name_origin, put_outcome, put_queue, put_wait, shape_of_method,
)
from .contents_c cimport (
    COMPLETED, DECLINED, OUT_OF_MEMORY, Channel, OpenContents, Totals, count, frame_origin, octets_at, or_none,
    whole_content,
)

from .following_c cimport Followed, Message, Settler

from ..capture.container import MAX_RECORD
from ..capture.frames import CHUNK_BYTES, ConnectionDecoder
from ..capture.model import Close, Data, Fault
from .feeder_py import dispatch
from .steps import ANSWER, DELIVER, GET_OK, PUBLISH, REQUEST
from .sinks import flow_of
from .waits_c cimport digest

cdef enum:  # the tables
    FRAMES = 1
    METHODS = 2
    MESSAGES = 3
    CONNECTIONS = 4
    ERRORS = 5
    DELIVERIES = 6

cdef enum:
    # Octets worth a release of the global lock. Fewer take less time than a thread that waits for the lock needs to
    # wake up: two threads with chunks of 16 KiB do less than one, for twice the CPU time.
    _LEAST_UNLOCKED = 32768

cdef int _PUBLISH = PUBLISH, _DELIVER = DELIVER, _GET_OK = GET_OK, _ANSWER = ANSWER, _REQUEST = REQUEST
cdef Py_ssize_t _CHUNK_BYTES = CHUNK_BYTES
cdef dict _TABLES = {
    "frames": FRAMES, "methods": METHODS, "messages": MESSAGES, "connections": CONNECTIONS, "errors": ERRORS,
    "deliveries": DELIVERIES,
}


cdef struct Chunk:  # octets that came at once
    const unsigned char *begin
    const unsigned char *at  # up to where they were taken
    const unsigned char *end
    int64_t packet
    int64_t time_ns


@cython.final
@cython.no_gc  # no cycle can run through it
cdef class Direction:
    """A direction of a connection: where it stands, and what its rows have in common."""

    cdef readonly object connection
    cdef object decoder  # of the connection
    cdef object follower  # of this direction, in that decoder
    cdef DirectionState state  # where that stands
    cdef OpenContents contents  # of the sink; None before the first frame, and but for messages
    cdef Followed followed  # of the sink's follower, once there are contents
    cdef bytes source  # channel and consumer tag of the last delivery, as they are in its frame
    cdef bytes queue  # and the queue that it came from; None if that is not known
    cdef const unsigned char *source_at  # where those octets lie; NULL if they are to be asked for again
    cdef int forgotten  # of `followed` at that time
    cdef const char *queue_at
    cdef size_t queue_size
    cdef Totals totals  # of the sink; None but for connections
    cdef Plan plan
    cdef bint alternate  # whether another dialect has methods that this one lacks
    cdef Origin origin
    cdef tuple _names


@cython.final
cdef class _Settler(Settler):
    """Takes the messages of a feeder's follower."""

    cdef PyObject *feeder  # borrowed, so that no cycle runs through it; NULL once that is gone

    cpdef object settle(self, Message message, object outcome, long long packet, long long time_ns):
        """Add the row of a message."""
        if self.feeder is not NULL:
            (<Feeder>self.feeder).add_settled(message, outcome, packet, time_ns)


@cython.final
cdef class Feeder(OctetConsumer):
    """Passes the frames of connections to a sink; see `feeder_py.Feeder`. A scanner calls it itself."""

    cdef object _sink
    cdef int _table
    cdef object _reading
    cdef bint _payloads  # whether damaged payloads are faults
    cdef int64_t _size_limit
    cdef Py_ssize_t _open_limit
    cdef unsigned long long _body_limit
    cdef Py_ssize_t _most_rows
    cdef size_t _most_octets
    cdef Targets _targets
    cdef bytes _file
    cdef dict _plans
    cdef dict _directions
    cdef _Settler _settler  # None but for deliveries
    cdef Direction _latest  # that brought what was followed last; None at first

    def __cinit__(self, sink):
        cdef Columns columns = sink.store
        decoding = sink.decoding
        self._sink = sink
        self._size_limit = decoding.frame_max - OVERHEAD
        self._body_limit = decoding.limits.body_size
        self._open_limit = min(decoding.limits.open_messages, 65536)  # there are no more channels
        self._most_rows = min(decoding.batch_rows, 2**31 - 1)
        self._most_octets = min(decoding.batch_bytes, INT64_MAX)
        self._table = _TABLES[sink.table]
        self._payloads = sink.payloads
        self._reading = decoding.reading(sink.payloads)
        aim(&self._targets, columns)
        self._targets.bare = self._targets.table.count == 0 and not sink.make.checks
        self._targets.files = <PyObject *>sink.make.files
        self._file = name_file(&self._targets)
        self._plans = {}
        self._directions = {}
        if self._table == DELIVERIES:
            self.locked = True
            self._settler = _Settler()
            self._settler.feeder = <PyObject *>self
            sink.follower.settler = self._settler

    def __dealloc__(self):
        if self._settler is not None:
            self._settler.feeder = NULL

    def feed(self, event):
        """Take what comes next in a direction of a connection, or a fault of the file; see `feeder_py`."""
        self.event(event)

    cdef int event(self, object event) except -1:
        cdef Direction direction
        cdef bytes octets
        cdef const unsigned char *p
        cdef Py_ssize_t size
        cdef int64_t packet, time_ns
        if isinstance(event, Fault):
            self._sink.fault(event)
            return 0
        direction = self.direction(event.connection, event.direction)
        if isinstance(event, Data):
            octets = event.octets
            p, size = <const unsigned char *>PyBytes_AS_STRING(octets), PyBytes_GET_SIZE(octets)
            packet = NO_NUMBER if event.packet is None else event.packet
            time_ns = NO_NUMBER if event.time_ns is None else event.time_ns
            if size < _LEAST_UNLOCKED or self.locked:
                self._feed(direction, p, size, packet, time_ns)
                return 0
            with nogil:
                self._feed(direction, p, size, packet, time_ns)
            return 0
        for item in direction.decoder.feed(event):
            self._dispatch(direction, item)
        if isinstance(event, Close):
            self._sink.close(event)
            if direction.decoder.ended:
                del self._directions[event.connection]
        return 0

    def begin_file(self, before, name):
        """Packets behind the first `before` ones of the recording are of the file of this name."""
        self._sink.make.files.begin(before, name)
        self._file = name_file(&self._targets)

    def snapshot(self, note):
        """Return the state for `restore`, see `feeder_py`."""
        cdef Direction each
        decoders = [[each.connection.number, each.decoder.snapshot(note)] for each, _ in self._directions.values()]
        return [decoders, self._sink.snapshot(note)]

    def restore(self, state, known):
        """Go on from a state, with nothing fed so far; see `feeder_py`."""
        cdef Direction each
        for fields in state.items():
            flow = flow_of(known, fields)
            each = self.direction(flow.connection, 0)
            each.decoder.restore(fields.fields(), flow.positions)
            self._read_as(each)
            fields.end()
        self._sink.restore(state.items(), known)
        state.end()
        self._file = name_file(&self._targets)

    cdef Direction direction(self, object connection, int direction):
        """A direction of a connection, which may be new."""
        cdef tuple directions = self._directions.get(connection)
        cdef Direction first, second
        if directions is None:
            decoder = ConnectionDecoder(connection, self._reading)
            first = self._direction(connection, decoder, 0)
            first._names = name_origin(&self._targets, &first.origin, self._sink.make.origin(connection))
            second = self._direction(connection, decoder, 1)
            second.origin, second._names = first.origin, first._names
            second.origin.direction = 1
            directions = self._directions[connection] = first, second
            self._read_as(first)
        return directions[direction]

    cdef Direction _direction(self, object connection, object decoder, int direction):
        """A direction of which nothing has come."""
        cdef Direction made = Direction()
        made.connection, made.decoder = connection, decoder
        made.follower = decoder.directions[direction]
        made.state = made.follower.state
        if self._table == CONNECTIONS:
            made.totals = self._sink.totals(connection)
        return made

    cdef void *state_of(self, object connection, int direction) except? NULL:
        cdef Direction found = self.direction(connection, direction)
        return <void *>found  # `_directions` keeps it until it is closed

    cdef int octets(
        self, void *state, const unsigned char *octets, Py_ssize_t size, long long offset, long long packet,
        long long time_ns,
    ) except -1 nogil:
        self._feed(<Direction>state, octets, size, packet, time_ns)
        return TAKEN

    cdef int _feed(
        self, Direction direction, const unsigned char *p, Py_ssize_t size, int64_t packet, int64_t time_ns
    ) except -1 nogil:
        """Take octets that come next in a direction, brought by a packet at a time (or NO_NUMBER).

        Raises what a sink raises; the octets are needed until this returns, and no longer.
        """
        cdef Chunk chunk = Chunk(p, p, p + size, packet, time_ns)
        direction.state.last_packet, direction.state.last_time_ns = packet, time_ns
        while chunk.at < chunk.end and not self._targets.table.trouble:
            if not direction.state.following:
                with gil:
                    self._decide(direction, &chunk, chunk.at)
            elif direction.state.size():
                self._complete(direction, direction.state, &chunk)
            else:
                self._in_place(direction, direction.state, &chunk)
        if self._targets.table.trouble:
            with gil:
                (<Columns>self._sink.store).check()
        return 0

    # -- following frames

    cdef int _in_place(self, Direction direction, DirectionState state, Chunk *chunk) except -1 nogil:
        """Take the frames that are whole where they lie, and keep what is left."""
        cdef Position position = Position(0, chunk.packet, chunk.time_ns)
        cdef const unsigned char *p = chunk.at
        cdef const unsigned char *end = chunk.end
        cdef const Table *table = self._targets.table
        cdef Py_ssize_t size
        cdef FrameStatus status = WHOLE
        while not table.trouble:
            status = self._next(direction, p, end - p, &size)
            if status != WHOLE:
                break
            position.offset = state.start
            size = <Py_ssize_t>self._take(direction, p, end, <size_t>size, &position)
            state.start += size
            p += size
            self._cut_if_full()
        chunk.at = p
        if status == WHOLE:
            return 0
        if status != MORE:
            with gil:
                self._decide(direction, chunk, chunk.at)
            return 0
        if not state.keep(p, <size_t>(end - p), chunk.packet, chunk.time_ns):
            self._targets.table.trouble = NO_MEMORY
        chunk.at = end
        return 0

    cdef int _complete(self, Direction direction, DirectionState state, Chunk *chunk) except -1 nogil:
        """Add to a frame that is not whole what it lacks, and take it."""
        cdef Py_ssize_t size
        cdef const unsigned char *begin = chunk.at
        cdef FrameStatus status = self._next(direction, state.first(), <Py_ssize_t>state.size(), &size)
        if status == MORE:
            size = min(size - <Py_ssize_t>state.size(), chunk.end - chunk.at)
            if not state.keep(chunk.at, <size_t>size, chunk.packet, chunk.time_ns):
                self._targets.table.trouble = NO_MEMORY
            if size > 0:
                chunk.at += size
                begin = chunk.at - 1
            status = self._kept_frames(direction, state)
        if status != MORE:
            with gil:
                self._decide(direction, chunk, begin)
        return 0

    cdef FrameStatus _kept_frames(self, Direction direction, DirectionState state) except? WRONG_END nogil:
        """Take the whole frames among the octets kept; why there are no more."""
        cdef const unsigned char *p
        cdef const unsigned char *end
        cdef Py_ssize_t size
        cdef FrameStatus status
        cdef Mark mark
        cdef Position position
        while not self._targets.table.trouble:
            p = state.first()
            status = self._next(direction, p, <Py_ssize_t>state.size(), &size)
            if status != WHOLE:
                return status
            mark = state.latest(state.start + size)
            position = Position(state.start, mark.packet, mark.time_ns)
            # What one packet has brought may be looked at as a whole.
            end = p + (state.size() if state.is_of_one_packet() else <size_t>size)
            state.skip(state.start + <int64_t>self._take(direction, p, end, <size_t>size, &position))
            self._cut_if_full()
        return MORE

    cdef inline FrameStatus _next(
        self, Direction direction, const unsigned char *p, Py_ssize_t left, Py_ssize_t *size
    ) noexcept nogil:
        """Return whether a frame begins at `p` where frames are followed, and how many octets it has."""
        cdef long long whole
        cdef unsigned int types = direction.origin.layout.frame_types
        cdef FrameStatus status = frame_at(p, left, types, self._size_limit, False, &whole)
        size[0] = <Py_ssize_t>whole
        return status

    cdef int _decide(self, Direction direction, Chunk *chunk, const unsigned char *begin) except -1:
        """Have the decoder look at what comes next, from `begin` on: there is no frame, or none to follow from."""
        # Both builds cut in these places, since it may depend on what is at hand where a frame is found.
        cdef const unsigned char *cut = begin + (_CHUNK_BYTES - (begin - chunk.begin) % _CHUNK_BYTES)
        cdef Py_ssize_t size = max(min(cut, chunk.end) - chunk.at, 0)
        cdef FrameStatus status = WRONG_END
        octets = octets_at(chunk.at, <size_t>size)
        chunk.at += size
        direction.follower.take(octets, or_none(chunk.packet), or_none(chunk.time_ns))
        while status != MORE:
            item = direction.follower.next()
            if item is not None:
                self._dispatch(direction, item)
            for found in direction.follower.find():
                self._dispatch(direction, found)
            if not direction.state.following or (item is None and status == UNKNOWN_TYPE):
                return 0  # a frame is searched for, or what comes first may be a protocol header
            with nogil:
                status = self._kept_frames(direction, direction.state)
        return 0

    cdef int _dispatch(self, Direction direction, object item) except -1:
        """Pass the sink what the decoder has found."""
        dispatch(item, direction.decoder, self._sink)
        return self._read_as(direction)

    cdef int _read_as(self, Direction direction) except -1:
        """Read both directions of a connection as its decoder does now."""
        cdef Direction each
        module, alternate = direction.decoder.module, direction.decoder.alternate is not None
        if direction.plan is not None and direction.plan.module is module and direction.alternate == alternate:
            return 0
        plan = self._plans.get(module)
        if plan is None:
            make = self._sink.make
            plan = self._plans[module] = Plan(
                self._sink.store, module, make, make.checks or self._payloads, self._sink.is_counted_only
            )
        for each in self._directions[direction.connection]:
            each.plan, each.alternate = plan, alternate
            each.origin.layout = &each.plan.layout
        return 0

    # -- frames to rows

    cdef inline int _cut_if_full(self) except -1 nogil:
        """The rows so far are a batch, if there are enough of them."""
        if self._targets.table.rows >= self._most_rows or self._targets.table.octets >= self._most_octets:
            with gil:
                self._sink.cut()
        return 0

    cdef size_t _take(
        self, Direction direction, const unsigned char *p, const unsigned char *end, size_t size,
        const Position *position,
    ) except 0 nogil:
        """Add the row of a frame, or of a content that begins with it; octets of that."""
        if self._payloads and not is_valid(direction.origin.layout, p, size):
            with gil:
                self._read(direction, p, size, position)
        elif self._is_declined(direction, p, size):
            with gil:
                self._negotiate(direction, p, size, position)
        elif self._table == MESSAGES or self._table == DELIVERIES:
            return self._add_to_content(direction, p, end, size, position)
        elif self._table == FRAMES:
            if direction.alternate and p[0] == METHOD and _method_of(direction, p, size) is NULL:
                self._make_row(direction, p, size, position)
            else:
                add_frame(&self._targets, &direction.origin, p, size, position)
        elif self._table == CONNECTIONS:
            self._count(direction, p, size, position)
        elif self._table == METHODS and p[0] == METHOD:
            if not add_method(&self._targets, &direction.origin, p, size, position):
                self._make_row(direction, p, size, position)
        return size

    cdef inline bint _is_declined(self, Direction direction, const unsigned char *p, size_t size) noexcept nogil:
        """Return whether a frame has a method that may negotiate how to read on, or has something to hide."""
        cdef const Shape *method
        if p[0] != METHOD or size < LEAST_METHOD or u16(p + 7) != direction.origin.layout.connection_class:
            return False
        method = shape_of_method(direction.origin.layout, u32(p + 7))
        return method is NULL or method.declined

    cdef void _count(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) noexcept nogil:
        """Count a valid frame."""
        cdef const Shape *method = _method_of(direction, p, size) if p[0] == METHOD else NULL
        cdef bint carries_content = method is not NULL and method.carries_content
        count(direction.totals, direction.origin.direction, carries_content, position.time_ns)

    cdef size_t _add_to_content(
        self, Direction direction, const unsigned char *p, const unsigned char *end, size_t size,
        const Position *position,
    ) except 0 nogil:
        """Add a frame to its content, or the row of a content that lies there whole; how many octets that were."""
        cdef Channel *channel
        cdef size_t whole
        cdef int done
        cdef Origin origin
        if p[0] < METHOD or p[0] > BODY:
            return size
        if direction.contents is None:
            with gil:
                direction.contents = self._sink.contents(direction.connection, direction.origin.direction)
                direction.contents.plans = self._plans
                direction.followed = self._sink.follower.connection(direction.connection)
        channel = direction.contents.channel(u16(p + 1))
        if channel is NULL:
            self._targets.table.trouble = NO_MEMORY
            return size
        cdef bint is_free = not channel.kept and channel.method is NULL
        cdef const Shape *method = _method_of(direction, p, size) if p[0] == METHOD else NULL
        if method is NULL and p[0] == METHOD and direction.alternate:
            self._make_row(direction, p, size, position)
            return size
        if method is not NULL and method.step >= _ANSWER:
            if method.step == _REQUEST or not is_free:
                self._make_row(direction, p, size, position)
                return size
            if self._table == DELIVERIES:
                channel.known = True
                self._answer(direction, p, size, position)
                return size
        if p[0] == METHOD and is_free and direction.contents.open < self._open_limit:
            whole = whole_content(direction.origin.layout, p, end, self._body_limit, self._size_limit)
            if whole:
                channel.known = True
                if self._table == DELIVERIES:
                    self._follow(
                        direction, direction.origin.layout, p, whole, position, position.offset + <int64_t>size
                    )
                elif add_message(&self._targets, &direction.origin, p, whole, position, position.time_ns):
                    self._name_queue(direction, method, p, size)
                else:
                    self._make_rows(direction, p, whole, position)
                return whole
        done = direction.contents.add(
            channel, direction.origin.layout, p, size, position, self._open_limit, self._body_limit
        )
        if done == DECLINED:
            self._make_row(direction, p, size, position)
        elif done == OUT_OF_MEMORY:
            self._targets.table.trouble = NO_MEMORY
        elif done == COMPLETED:
            origin = direction.origin
            origin.layout = channel.layout
            if self._table == DELIVERIES:
                self._follow(
                    direction, channel.layout, channel.frames.start, channel.frames.used, &channel.first,
                    channel.header_offset,
                )
                direction.contents.end(channel)
            elif add_message(
                &self._targets, &origin, channel.frames.start, channel.frames.used, &channel.first, channel.last_ns
            ):
                self._name_queue(direction, channel.method, channel.frames.start, channel.header_at)
                direction.contents.end(channel)
            else:
                with gil:
                    self._emit(direction, channel.number)
        return size

    # -- queues, and what became of messages

    cdef int _name_queue(
        self, Direction direction, const Shape *method, const unsigned char *p, size_t size
    ) except -1 nogil:
        """Set the cell for the queue of the message in the last row, which begins with a method."""
        cdef Py_ssize_t row = self._targets.table.rows - 1
        cdef bint known
        if method.step == _DELIVER:
            if self._targets.queue is NULL:
                return 0
            known = direction.source_at is not NULL and direction.forgotten == direction.followed.forgotten
            if known and _is_source(direction.source_at, p, size):
                if direction.queue_at is not NULL:
                    put_octets(self._targets.queue, row, direction.queue_at, direction.queue_size)
                return 0
        elif method.step != _GET_OK:
            return 0
        with gil:
            queue = direction.followed.queue_of(method.step, u16(p + 1), octets_at(p, size))
            put_queue(&self._targets, row, queue)
            if method.step == _DELIVER and size > <size_t>LEAST_METHOD + p[11]:
                direction.source = octets_at(p + 1, 2) + octets_at(p + 11, 1 + p[11])
                direction.queue = None if queue is None else queue.encode()
                direction.source_at = <const unsigned char *>PyBytes_AS_STRING(direction.source)
                direction.queue_at = NULL
                direction.forgotten = direction.followed.forgotten
                if queue is not None:
                    direction.queue_at = PyBytes_AS_STRING(direction.queue)
                    direction.queue_size = <size_t>PyBytes_GET_SIZE(direction.queue)
        return 0

    cdef int _follow(
        self, Direction direction, const Layout *layout, const unsigned char *p, size_t size, const Position *first,
        int64_t header_offset,
    ) except -1 with gil:
        """Have a whole content followed, in frames that lie one behind the other."""
        cdef Message message = Message.__new__(Message)
        cdef const unsigned char *header = p + OVERHEAD + u32(p + 3)
        message.connection, message.dialect = direction.connection, <object>layout.module
        message.direction, message.channel = direction.origin.direction, u16(p + 1)
        message.packet, message.time_ns, message.offset = first.packet, first.time_ns, first.offset
        message.header_offset, message.size, message.complete = header_offset, <long long>size, True
        message.step = shape_of_method(layout, u32(p + 7)).step
        message.frames = octets_at(p, <size_t>(header - p) + OVERHEAD + u32(header + 3))
        message.culprit, message.tag, message.content, message.wait_ns = b"", 0, b"", NO_NUMBER
        if direction.followed.follower.waits is not None:
            message.content = digest(message.header, _parts(header + OVERHEAD + u32(header + 3), p + size))
        self._latest = direction
        direction.followed.take(message)
        return 0

    cdef int _answer(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) except -1 with gil:
        """Pass an acknowledgement or refusal."""
        self._latest = direction
        direction.followed.answer(
            direction.origin.direction, octets_at(p, size), position.packet, position.time_ns
        )
        return 0

    cdef int add_settled(self, Message message, object outcome, int64_t packet, int64_t time_ns) except -1:
        """Add the row of a message; see `following_py.Settler`."""
        cdef Plan plan
        cdef Direction direction = self._latest
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(message.frames)
        cdef size_t size = <size_t>PyBytes_GET_SIZE(message.frames)
        cdef Py_ssize_t row = self._targets.table.rows
        cdef Position position = Position(message.offset, message.packet, message.time_ns)
        cdef Origin origin
        if direction is None or direction.connection is not message.connection:
            direction = self.direction(message.connection, message.direction)
        plan = direction.plan if direction.plan.module is message.dialect else self._plans.get(message.dialect)
        if plan is None or message.error is not None or not message.complete or not _is_plain(&plan.layout, p, size):
            self._sink.settle(message, outcome, packet, time_ns)
            return 0
        origin = direction.origin
        origin.direction, origin.layout = message.direction, &plan.layout
        if not add_message(&self._targets, &origin, p, size, &position, NO_NUMBER):
            self._sink.settle(message, outcome, packet, time_ns)
            return 0
        self._targets.table.octets += <size_t>message.size - size
        if not self._targets.bare:
            put_queue(&self._targets, row, message.queue)
            if message.step == _PUBLISH and message.tag and self._targets.delivery_tag is not NULL:
                put_int64(self._targets.delivery_tag, row, message.tag)
            put_outcome(&self._targets, row, message.time_ns, outcome, packet, time_ns)
            if message.found is not None:
                put_wait(
                    &self._targets, row, message.found, message.wait_ns, message.publish_flow, message.publish_offset
                )
        if self._targets.table.trouble:
            (<Columns>self._sink.store).check()
        self._cut_if_full()
        return 0

    # -- what cells decline

    cdef int _make_row(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) except -1 with gil:
        """Leave the row of a frame, or what becomes of its content, to the sink."""
        octets = octets_at(p, size)
        return self._frame(direction, octets, position, direction.decoder.reader.of(octets).module)

    cdef int _frame(self, Direction direction, bytes octets, const Position *position, object module) except -1:
        """Pass a frame to the sink."""
        cdef Direction each
        for each in self._directions[direction.connection]:
            each.source_at = NULL  # it may say which queue a consumer has
        self._sink.frame(frame_origin(direction.connection, direction.origin.direction, position), octets, module)
        return 0

    cdef int _make_rows(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) except -1 nogil:
        """Make the rows of frames that lie one behind the other."""
        cdef const unsigned char *end = p + size
        cdef Position each = position[0]
        while p < end:
            size = u32(p + 3) + OVERHEAD
            self._make_row(direction, p, size, &each)
            each.offset += <int64_t>size
            p += size
        return 0

    cdef int _read(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) except -1:
        """Have the decoder say what is wrong with a frame, if anything is."""
        item = direction.follower.read(
            octets_at(p, size), position.offset, or_none(position.packet), or_none(position.time_ns)
        )
        return self._dispatch(direction, item)

    cdef int _negotiate(
        self, Direction direction, const unsigned char *p, size_t size, const Position *position
    ) except -1:
        """Add the row of a method that may say how to read the frames behind it, or has something to hide."""
        octets = octets_at(p, size)
        module = direction.decoder.reader.of(octets).module
        direction.decoder.negotiate(octets)
        self._frame(direction, octets, position, module)
        return self._read_as(direction)

    cdef int _emit(self, Direction direction, int channel) except -1:
        """Leave the row of a content that is whole to the sink."""
        content = direction.contents.take(channel)
        content.complete = True
        self._sink.emit(content)
        return 0


cdef inline const Shape *_method_of(Direction direction, const unsigned char *p, size_t size) noexcept nogil:
    """The method in a frame of that type; NULL if the dialect has none of its ids."""
    return shape_of_method(direction.origin.layout, u32(p + 7)) if size >= LEAST_METHOD else NULL


cdef inline bint _is_source(const unsigned char *source, const unsigned char *p, size_t size) noexcept nogil:
    """Return whether basic.deliver at `p` has a channel and consumer tag."""
    return (
        size > <size_t>LEAST_METHOD + p[11] and source[0] == p[1] and source[1] == p[2]
        and memcmp(source + 2, p + 11, 1 + p[11]) == 0
    )


cdef list _parts(const unsigned char *p, const unsigned char *end):
    """The payloads of frames that lie one behind the other."""
    cdef list parts = []
    while p < end:
        parts.append(octets_at(p + ENVELOPE_SIZE, u32(p + 3)))
        p += OVERHEAD + u32(p + 3)
    return parts


cdef bint _is_plain(const Layout *layout, const unsigned char *p, size_t size) noexcept nogil:
    """Return whether octets are the frames of a known method with content and of a content header."""
    cdef const Shape *method
    cdef size_t header
    if size < LEAST_METHOD + LEAST_HEADER or p[0] != METHOD:
        return False
    header = <size_t>u32(p + 3) + OVERHEAD
    if header < LEAST_METHOD or size < header + LEAST_HEADER or size != header + u32(p + header + 3) + OVERHEAD:
        return False
    method = shape_of_method(layout, u32(p + 7))
    return method is not NULL and method.carries_content


# -- captures


def feed_capture(source, feeder, **options):
    """Read a capture and feed all that is in it; see `feeder_py.feed_capture`."""
    cdef Scanner scanner = Scanner(source, StreamTracker(**options), feeder, MAX_RECORD)
    while scanner.step():
        yield


def feed_part(source, feeder, tracker, position, before, end):
    """Read a part of a recording and feed all that is in it; see `feeder_py.feed_part`."""
    cdef Scanner scanner
    if not position.ended:
        scanner = Scanner(source, tracker, feeder, MAX_RECORD, position, before, end)
        while scanner.step():
            yield
        scanner.save_position()
    if end is None:
        for fault in position.segments.faults():
            feeder.feed(fault)
        yield
