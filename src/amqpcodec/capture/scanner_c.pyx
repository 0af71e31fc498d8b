# cython: cdivision=True
"""From a capture file to ordered octets: the fast path, which the compiled build tries first.

It scans the records of pcap, the enhanced packet blocks of pcapng, and headers, of tunnels too. It passes on the octets
of segments that are next in order, and counts segments without new octets. It declines everything else, and the
slow path takes over: container.py reads the record, network.py the packet, streams_py.py the segment. Both paths
share all state, so the scanner may decline any single record, packet or segment.
"""

from libc.limits cimport LLONG_MAX
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, realloc

from .._kernel.octets cimport u16, u32
from .flowtable_c cimport Entry, FlowTable
from .constants cimport FOREIGN, TCP
from .headers cimport Headers
from .layers_c cimport Walk
from .read_headers cimport common_headers, tcp_header
from .readahead_c cimport ReadAhead
from .reassembly_c cimport Reassembler
from .streams_c cimport COMPARED, _NO_TIME, Flow, StreamTracker, _key

from .container import damage
from .model import CaptureError, Endpoint, Packet, Segment
from .network import tunnel_name
from .pcapng import BLOCK_OVERHEAD, PcapngReader
from .position import FilePosition

cdef enum:
    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    ACK = 0x10
    BLOCK_HEAD = 8
    ENHANCED_PACKET = 6
    ENHANCED_OVERHEAD = 32  # octets of an enhanced packet block beside its packet

cdef enum Verdict:
    SLOW  # the slow path decides
    NOTHING  # the segment brings no octets that are new
    OCTETS

cdef long long NS = 1_000_000_000
cdef long long LAST_OFFSET_NS = 1LL << 60
cdef long long LAST_TICKS_NS = (1LL << 62) - (1LL << 60)  # with the offset, never beyond 2**62
cdef long long ROOM = BLOCK_OVERHEAD


cdef inline uint32_t number_at(const unsigned char *p, bint little) noexcept nogil:
    if little:
        return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24
    return u32(p)


cdef inline long long ahead_of(Reassembler side, uint32_t seq) noexcept nogil:
    """`Reassembler.distance`."""
    cdef uint32_t ahead = seq - <uint32_t>(side._base + side._next)
    return <long long>ahead if ahead < 0x80000000U else <long long>ahead - 0x100000000LL


cdef inline bint within(Reassembler side, long long ahead) noexcept nogil:
    """`Reassembler.fits`, for a base that is known."""
    return -side._out_of_order_bytes <= ahead <= side._out_of_order_bytes


cdef inline Verdict judge(
    StreamTracker tracker,
    Flow flow,
    Reassembler own,
    Reassembler peer,
    const Headers *headers,
    long long time_ns,
) noexcept nogil:
    """Return what `StreamTracker.feed` would do with a segment of a known flow; SLOW unless it is certain."""
    cdef long long ahead
    if headers.flags & (SYN | FIN | RST) or time_ns > tracker._deadline:
        return SLOW
    if flow.compared < COMPARED:
        return SLOW
    if not flow.selected:
        return NOTHING
    if flow.time_ns != _NO_TIME and time_ns - flow.time_ns > tracker._timeout_ns:
        return SLOW
    if own.finished or own.ending or peer.ending or own.waiting_octets or peer.waiting_octets:
        return SLOW
    if not headers.length:
        return NOTHING
    if own._base < 0 or own.stray is not None:
        return SLOW
    ahead = ahead_of(own, headers.seq)
    if not within(own, ahead):
        return SLOW
    if ahead == 0:
        return OCTETS if headers.recorded == headers.length else SLOW
    if ahead + headers.length > 0 or own._next + ahead < 0:  # or before the first octet of a stream joined midway
        return SLOW
    return NOTHING


cdef inline void acknowledge(Reassembler peer, uint32_t ack) noexcept nogil:
    """`Reassembler.acknowledge` for a direction in which nothing waits, if the number fits."""
    cdef long long ahead
    if peer._base < 0:
        if peer._early_ack >= 0:
            ahead = <uint32_t>(ack - <uint32_t>peer._early_ack)
            peer._unheard += ahead if ahead < 0x80000000U else ahead - 0x100000000LL
        peer._early_ack = ack
        return
    ahead = ahead_of(peer, ack)
    if within(peer, ahead):
        peer._acknowledged = max(peer._acknowledged, peer._next + ahead)


cdef inline void note(
    StreamTracker tracker,
    Flow flow,
    Reassembler peer,
    const Headers *headers,
    long long packet,
    long long time_ns,
) noexcept nogil:
    """Record a segment as `StreamTracker.feed` does."""
    tracker._fed += 1
    flow.touched = tracker._fed
    if not flow.selected:
        return
    flow.packet = packet
    flow.time_ns = time_ns
    if headers.flags & ACK:
        acknowledge(peer, headers.ack)


cdef inline long long position(Reassembler own) noexcept nogil:
    return own._next


cdef inline long long position_of(Reassembler own, const Headers *headers) noexcept nogil:
    """`Reassembler.position_of`."""
    cdef long long ahead
    if own._base < 0 or own._leading:
        return NOWHERE
    ahead = ahead_of(own, headers.seq)
    if ahead > own._out_of_order_bytes or ahead + headers.length < -own._out_of_order_bytes:
        return NOWHERE
    return own._next + ahead


cdef inline void advance(Reassembler own, long long length) noexcept nogil:
    """`Reassembler.add` for octets that are next in order, where nothing waits."""
    own._next += length
    own._leading = False


cdef class OctetConsumer:
    """Receives what a scanner finds; the order of all calls is that of the recording.

    `state_of` returns the consumer's state of a direction, or NULL if its octets are to come as events only. It
    returns the same state for each call. The state is used until `event` has received the `Close` of that
    direction.

    `octets` receives the next octets of a direction: `offset` is their offset in its stream, `packet` and
    `time_ns` are those of their packet. They stay valid until `settle` has returned. It returns TAKEN, PAUSE
    or REFUSED.

    With `every_segment`, `segment` receives each segment of a direction in place of octets: its headers where
    they lie, and the offset of its payload in the stream, or NOWHERE. It returns TAKEN or PAUSE.

    With `locked`, both are called with the global lock: taking it for each would cost more than they do.

    `feed_segment` feeds the tracker with a segment that takes the slow path, and receives the events.

    `event` receives a `Data`, `Gap`, `Close` or `Fault`. `settle` is called whenever the octets received before
    become invalid, and at the end.
    """

    cdef void *state_of(self, object connection, int direction) except? NULL:
        return NULL

    cdef int octets(
        self,
        void *state,
        const unsigned char *octets,
        Py_ssize_t size,
        long long offset,
        long long packet,
        long long time_ns,
    ) except -1 nogil:
        return REFUSED

    cdef int segment(
        self, void *state, const Headers *headers, long long offset, long long packet, long long time_ns
    ) except -1 nogil:
        return TAKEN

    cdef int feed_segment(self, object segment, StreamTracker tracker) except -1:
        for event in tracker.feed(segment):
            self.event(event)
        return 0

    cdef int event(self, object event) except -1:
        raise NotImplementedError

    cdef int settle(self) except -1:
        return 0


cdef class Scanner:
    """Scans a capture file and passes what it finds to a consumer.

    Args:
        source: a `ByteSource`, at the start of the file.
        tracker: receives the segments.
        consumer: receives what is in order.
        max_record_bytes: see `read_packets`.
        position: the `FilePosition` of the source, if the recording continues in another file.
        before: packets of that recording before the file.
        end: only records that end by this byte of the file are read; None for all.
    """

    def __cinit__(
        self,
        source,
        StreamTracker tracker not None,
        OctetConsumer consumer not None,
        long long max_record_bytes,
        position=None,
        long long before=0,
        end=None,
    ):
        self._continues = position is not None
        self._position = FilePosition.start(source) if position is None else position
        self._before = before
        self._end = LLONG_MAX if end is None else min(end, LLONG_MAX)
        self._ahead = ReadAhead(source)
        self._tracker = tracker
        self._consumer = consumer
        self._table = FlowTable()
        self._walk = Walk()
        self._reader = self._position.reader(self._ahead, max_record_bytes)
        self._reader.end = end
        self._segments = self._position.segments
        self._number, self._last_read = self._reader.number, self._position.last_read
        self._max_record_bytes = max_record_bytes
        self._stopped = FULL
        self._blocks = isinstance(self._reader, PcapngReader)
        if not self._blocks:
            self._unit = self._reader.unit
            self._record_size = self._reader.record_size
            self._record.linktype = self._reader.linktype
        self._note_section()

    def __dealloc__(self):
        free(self._interfaces)

    cdef bint step(self) except -1:
        """Scan until the buffer is used up or the consumer is full; False at the end, and where no further record
        is to be read.

        Reading the file may block, so it comes first: by then the caller has taken what the last step found.
        """
        cdef int outcome = PACKET
        if self._stopped == MORE and not self._ahead.ended:
            self._ahead.fill(self._need)
        elif self._stopped == BEHIND or (self._stopped != FULL and not self._slow_record()):
            return False
        self._behind = self._ahead.index_of(self._end)
        while outcome == PACKET:
            if self._consumer.locked:
                outcome = self._run()
            else:
                with nogil:
                    outcome = self._run()
            if outcome == PACKET:
                self._slow_packet()
        self._consumer.settle()
        self._stopped = outcome
        return True

    cdef int save_position(self) except -1:
        """Record in the `FilePosition` where scanning has ended."""
        self._reader.number = self._number
        self._position.last_read = self._last_read
        self._position.update(self._reader, self._ahead.offset)
        return 0

    cdef int _note_section(self) except -1:
        """Copy byte order and interfaces from the container's reader."""
        self._little = self._reader.order == "<"
        if not self._blocks:
            return 0
        if self._described is not self._reader.interfaces:
            self._described = self._reader.interfaces
            self._interface_count = 0
        while self._interface_count < len(self._described):
            self._describe(self._described[self._interface_count])
        return 0

    cdef int _describe(self, object interface) except -1:
        cdef Interface *grown
        cdef Interface *described
        if self._interface_count == self._interface_room:
            grown = <Interface *>realloc(
                self._interfaces, <size_t>(2 * self._interface_room + 4) * sizeof(Interface)
            )
            if grown == NULL:
                raise MemoryError
            self._interfaces = grown
            self._interface_room = 2 * self._interface_room + 4
        described = self._interfaces + self._interface_count
        self._interface_count += 1
        described.linktype = interface.linktype
        described.multiplier, described.divisor, described.offset_ns = 0, 1, 0
        units = interface.units_per_second
        if abs(interface.offset_seconds) > LAST_OFFSET_NS // NS:
            return 0
        described.offset_ns = interface.offset_seconds * NS
        if NS % units == 0:
            described.multiplier = NS // units
        elif units % NS == 0 and units // NS < LAST_TICKS_NS:
            described.multiplier, described.divisor = 1, units // NS
        return 0

    cdef int _run(self) except -1 nogil:
        """Scan until something needs the global interpreter lock; which `Outcome` that is."""
        cdef int outcome = DONE
        cdef Entry *entry
        while outcome == DONE:
            outcome = self._next_block() if self._blocks else self._next_record()
            if outcome != DONE:
                break
            self._number += 1
            self._last_read = self._number
            if not self._read_headers():
                continue
            if not self._has_headers:
                return PACKET
            entry = self._table.find(&self._headers)
            outcome = PACKET if entry == NULL else self._fast_segment(entry)
        return outcome

    cdef bint _read_headers(self) noexcept nogil:
        """Read the headers of the current record; False if it carries no TCP. `_has_headers` is whether they were
        read; otherwise the slow path has to."""
        cdef Record *record = &self._record
        cdef Headers *headers = &self._headers
        cdef int outcome
        self._has_headers = common_headers(
            record.linktype, record.data, record.captured, record.original, headers
        )
        if self._has_headers:
            return True
        outcome = self._walk.run(record.linktype, record.data, record.captured, record.original)
        if outcome != TCP:
            return outcome != FOREIGN
        headers.addresses = record.data + self._walk.addresses
        headers.address_size = self._walk.address_size
        headers.numbers, headers.depth = self._walk.numbers, self._walk.depth
        self._has_headers = tcp_header(
            record.data, record.captured, self._walk.at, self._walk.end, headers
        )
        return True

    cdef Outcome _next_record(self) noexcept nogil:
        """The next record of pcap."""
        cdef const unsigned char *head = self._ahead.octets + self._ahead.at
        cdef Py_ssize_t there = self._ahead.end - self._ahead.at
        cdef long long captured
        cdef Record *record = &self._record
        self._need = self._record_size
        if self._ahead.at + self._need > self._behind:
            return BEHIND
        if there < self._need:
            return MORE
        captured = number_at(head + 8, self._little)
        if captured > self._max_record_bytes or not captured:  # which may be no record
            return RECORD
        self._need += <Py_ssize_t>captured
        if self._ahead.at + self._need > self._behind:
            return BEHIND
        if there < self._need:
            return MORE
        record.data = head + self._record_size
        record.captured = <Py_ssize_t>captured
        record.original = max(<long long>number_at(head + 12, self._little), captured)
        record.time_ns = number_at(head, self._little) * NS + number_at(head + 4, self._little) * self._unit
        self._ahead.at += self._need
        return DONE

    cdef Outcome _next_block(self) noexcept nogil:
        """The next block of pcapng, if it is an enhanced packet block."""
        cdef const unsigned char *head = self._ahead.octets + self._ahead.at
        cdef Py_ssize_t there = self._ahead.end - self._ahead.at
        cdef long long total, captured
        cdef uint32_t which
        cdef bint little = self._little
        cdef Record *record = &self._record
        self._need = BLOCK_HEAD
        if self._ahead.at + self._need > self._behind:
            return BEHIND
        if there < self._need:
            return MORE
        total = number_at(head + 4, little)
        if (
            number_at(head, little) != ENHANCED_PACKET
            or total < ENHANCED_OVERHEAD
            or total % 4
            or total > self._max_record_bytes + ROOM
        ):
            return RECORD
        self._need = <Py_ssize_t>total
        if self._ahead.at + self._need > self._behind:
            return BEHIND
        if there < self._need:
            return MORE
        which = number_at(head + 8, little)
        captured = number_at(head + 20, little)
        if (
            number_at(head + total - 4, little) != total
            or which >= self._interface_count
            or captured > total - ENHANCED_OVERHEAD
            or not self._set_time(
                self._interfaces + which,
                <unsigned long long>number_at(head + 12, little) << 32 | number_at(head + 16, little),
            )
        ):
            return RECORD
        record.linktype = self._interfaces[which].linktype
        record.data = head + 28
        record.captured = <Py_ssize_t>captured
        record.original = max(<long long>number_at(head + 24, little), captured)
        self._ahead.at += self._need
        return DONE

    cdef bint _set_time(self, const Interface *interface, unsigned long long ticks) noexcept nogil:
        """Set the time of a record; False if the slow path has to."""
        if not interface.multiplier or ticks // <unsigned long long>interface.divisor >= (
            <unsigned long long>(LAST_TICKS_NS // interface.multiplier)
        ):
            return False
        ticks = ticks // <unsigned long long>interface.divisor * <unsigned long long>interface.multiplier
        self._record.time_ns = <long long>ticks + interface.offset_ns
        return True

    cdef int _fast_segment(self, Entry *entry) except -1 nogil:
        """Do with a segment what the slow path would do; PACKET if this path declines."""
        cdef Headers *headers = &self._headers
        cdef long long time_ns = self._record.time_ns
        cdef long long packet = self._before + self._number
        cdef int answer = TAKEN
        cdef bint every_segment = self._consumer.every_segment
        cdef Verdict verdict = judge(
            self._tracker, <Flow>entry.flow, <Reassembler>entry.own, <Reassembler>entry.peer, headers, time_ns
        )
        if verdict == SLOW or (verdict == OCTETS and entry.consumer_state == NULL):
            return PACKET
        if verdict == OCTETS and not every_segment:
            answer = self._consumer.octets(
                entry.consumer_state,
                headers.payload,
                headers.recorded,
                position(<Reassembler>entry.own),
                packet,
                time_ns,
            )
            if answer == REFUSED:
                return PACKET
        note(self._tracker, <Flow>entry.flow, <Reassembler>entry.peer, headers, packet, time_ns)
        if verdict == OCTETS:
            advance(<Reassembler>entry.own, headers.length)
        # The consumer has no state any more of a connection that was left out.
        if every_segment and entry.consumer_state != NULL and (<Flow>entry.flow).selected:
            answer = self._consumer.segment(
                entry.consumer_state, headers, position_of(<Reassembler>entry.own, headers), packet, time_ns
            )
        return FULL if answer == PAUSE else DONE

    cdef bint _slow_record(self) except -1:
        """Have the container's reader read the next record; False where none is to be read any more."""
        self._reader.number = self._number
        found = None
        try:
            found = self._reader.read()
        except CaptureError as error:
            self._consumer.event(damage(error, self._last_read))
            self._reader.ended = True
        self._number = self._reader.number
        self._note_section()
        if found is None:
            if self._reader.ended:
                self._finish()
            return False
        if isinstance(found, Packet):
            self._last_read = self._number
            self._feed(self._segments.segment(found))
        else:
            self._consumer.event(found)
        return True

    cdef int _slow_packet(self) except -1:
        """Pass the current packet to the slow path."""
        cdef Record *record = &self._record
        cdef Headers *headers = &self._headers
        cdef Py_ssize_t size = headers.address_size
        if not self._has_headers:
            packet = Packet(
                self._number, record.time_ns, record.linktype, record.data[:record.captured], record.original
            )
            self._feed(self._segments.segment(packet))
            return 0
        tunnel = ""
        if headers.depth:
            tunnel = tunnel_name(tuple([headers.numbers[at] for at in range(headers.depth)]))
        segment = Segment(
            self._number,
            record.time_ns,
            Endpoint(headers.addresses[:size], u16(headers.ports), tunnel),
            Endpoint(headers.addresses[size:2 * size], u16(headers.ports + 2), tunnel),
            headers.seq,
            headers.ack,
            headers.flags,
            headers.payload[:headers.recorded],
            headers.length,
        )
        self._feed(segment)
        if self._table.find(headers) == NULL:
            self._remember(segment)
        return 0

    cdef int _remember(self, object segment) except -1:
        """Record which flow the current segment belongs to."""
        cdef Flow flow
        cdef Entry *entry
        cdef int direction
        segment = self._tracker._placed(segment)
        flow = self._tracker._flows.get(_key(segment))
        if flow is None:
            return 0
        direction = flow.direction(segment.source)
        entry = self._table.put(&self._headers, flow, direction)
        if flow.selected and not (<Reassembler>entry.own).finished:
            entry.consumer_state = self._consumer.state_of(flow.connection, direction)
        return 0

    cdef int _feed(self, object segment) except -1:
        if segment is None:
            return 0
        if self._before:
            segment = segment._replace(packet=self._before + segment.packet)
        self._consumer.feed_segment(segment, self._tracker)
        return 0

    cdef int _finish(self) except -1:
        """The file has ended. If the recording ends with it, report what was skipped and emit everything that
        waits."""
        self._position.ended = True
        if self._continues:
            return 0
        for fault in self._segments.faults():
            self._consumer.event(fault)
        for event in self._tracker.finish():
            self._consumer.event(event)
        return 0
