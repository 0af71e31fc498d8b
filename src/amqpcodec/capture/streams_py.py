"""TCP connections: which segments belong together, who is the client, where one ends and the next begins.

One text for both builds: streams_c is this file, compiled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush, heapreplace

from amqpcodec._kernel.slots.constructors_py import describe

from .._state import Fields, Note, damaged
from .._typing import Any
from ..options import AMQP_PORT, FLOW_TIMEOUT, KEEP, OUT_OF_ORDER_BYTES, OUT_OF_ORDER_SEGMENTS
from .copies import COMPARED, ENOUGH, Copies
from .elsewhere import Elsewhere
from .model import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Aside,
    Close,
    Connection,
    Data,
    Endpoint,
    Event,
    Fault,
    Gap,
    LocatedSegment,
    Segment,
)
from .network import ACK, FIN, RST, SYN
from .reassembly_py import Chunk, Reassembler

__all__ = ["StreamTracker", "read_streams"]

MAX_WAITING_BYTES = 256 * 1024 * 1024
MAX_CONNECTIONS = 65536
# A jump ahead of the window is a gap up to this size; beyond it, the 4-tuple has been used anew.
_LARGEST_JUMP = 1 << 30
_CLOSING_NS = 2_000_000_000  # how long late segments of a closed connection are awaited
_HELD_NS = 200_000_000  # how long the first segment of a connection joined midway waits for the one before it
_NO_TIME = -(1 << 62)  # below every time
_NEVER = 1 << 62
_LATE = "octets before the first of the recording, which came too late"
_MOST_ALIKE = 64  # connections of the same ends in different tunnels that may wait for their first answer

_Key = tuple[Endpoint, Endpoint]


class Flow:
    """A connection and the state of its two directions."""

    __slots__ = (
        "alike",
        "client",
        "compared",
        "connection",
        "current",
        "directions",
        "packet",
        "seen",
        "selected",
        "time_ns",
        "touched",
        "waiting",
    )

    def __init__(
        self, connection: Connection, client: Endpoint, selected: bool, window: tuple[int, int]
    ) -> None:
        self.connection = connection
        self.client = client
        self.selected = selected
        self.current = True  # later segments of its endpoints belong to it
        self.directions = (Reassembler(*window), Reassembler(*window))
        self.seen = 0  # a bit for each direction of which a segment has come
        self.packet = 0
        self.time_ns = _NO_TIME
        self.touched = 0  # counts segments, over all connections
        self.waiting = 0
        self.compared = self.alike = 0  # of its first segments with those of other connections

    def note(self, packet: int, time_ns: int | None) -> None:
        """Record when the last segment came."""
        self.packet = packet
        self.time_ns = _NO_TIME if time_ns is None else time_ns

    def direction(self, source: Endpoint) -> int:
        """The direction in which a sender's octets go."""
        return CLIENT_TO_SERVER if source == self.client else SERVER_TO_CLIENT

    def may_be_answered_by(self, segment: Segment) -> bool:
        """Return whether a segment may be the first of the direction of which none has come yet."""
        direction = self.direction(segment.source)
        own, peer = self.directions[direction], self.directions[1 - direction]
        alone = self.current and self.seen == 2 - direction  # the bit of the other one
        return alone and own.expects(segment.seq) and peer.expects(segment.ack)

    def abandoned(self, segment: Segment, timeout_ns: int) -> bool:
        """Return whether a segment after this silence opens another connection, since it does not continue
        exactly where its direction stands."""
        time_ns = segment.time_ns
        if time_ns is None or self.time_ns == _NO_TIME or time_ns - self.time_ns <= timeout_ns:
            return False
        own = self.directions[self.direction(segment.source)]
        return not own.continues(segment.seq)

    def emit(self, direction: int, chunks: list[Chunk], events: list[Event]) -> None:
        """Append the events of chunks in order."""
        for chunk in chunks:
            packet, time_ns = chunk.packet, chunk.time_ns
            if not packet:
                packet, time_ns = self.packet, self._last_time()
            if chunk.octets is None:
                gap = chunk.position, chunk.length
                events.append(Gap(self.connection, direction, *gap, packet, time_ns, chunk.snapped))
            else:
                octets = chunk.octets
                events.append(Data(self.connection, direction, chunk.position, octets, packet, time_ns))

    def close(self, direction: int, events: list[Event]) -> None:
        """Flush a direction and append its `Close`, once."""
        reassembler = self.directions[direction]
        if reassembler.finished:
            return
        stray = reassembler.stray
        if stray is not None and 0 < reassembler.distance(stray.seq) <= _LARGEST_JUMP:
            self.emit(direction, reassembler.jump(stray.seq), events)
            self.add(direction, stray, events)
        reassembler.stray = None
        chunks = reassembler.flush(self.directions[1 - direction].ending)
        self.emit(direction, chunks, events)
        if chunks and chunks[-1].octets is None and not chunks[-1].position:
            last, missing = events.pop(), chunks[-1].length
            events.append(Gap(self.connection, direction, 0, missing, last.packet, last.time_ns, whole=True))
        events.append(Close(self.connection, direction, reassembler.position, self.packet, self._last_time()))

    def add(self, direction: int, segment: Segment, events: list[Event]) -> None:
        """Add a segment's payload."""
        seq = segment.seq + 1 if segment.flags & SYN else segment.seq
        own = self.directions[direction]
        chunks = own.add(seq, segment.data, segment.length, segment.packet, segment.time_ns)
        self.emit(direction, chunks, events)

    @property
    def positions(self) -> tuple[int, int]:
        """Octets emitted so far in each direction, gaps included."""
        one, other = self.directions
        return one.position, other.position

    def state(self, note: Note) -> list[Any]:
        """The state that `restored` takes; calls `note` with each packet number that an event may need."""
        client, server = self.client, self.connection.server
        assert server is not None
        one, other = self.directions
        if self.selected and not (one.finished and other.finished):
            note(self.packet)
        ends = [client.address, client.port, server.address, server.port]
        last = [self.packet, self._last_time(), self.touched]
        compared = [self.compared, self.alike, self.connection.copy_of]
        tunnel = [client.tunnel, self.seen] if client.tunnel else []
        fields = [*ends, self.connection.number, *last, one.state(note), other.state(note), *compared]
        return [*fields, *tunnel]

    def _last_time(self) -> int | None:
        return None if self.time_ns == _NO_TIME else self.time_ns


class StreamTracker:
    """Turns segments into the ordered octets of both directions of every connection.

    Args:
        port, out_of_order_bytes, out_of_order_segments, flow_timeout, copies: see
            `amqpcodec.options.TrackingOptions`.
        max_waiting_bytes: bytes of memory for segments that wait for earlier ones, over all connections.
            Beyond it, the connections longest silent emit theirs with gaps.
        max_connections: connections remembered; the one longest silent is closed first.

    Attributes:
        recorded_twice: connections that are copies of others.
        heard: whether there was anything on the ports asked for.
        elsewhere: what is on others.

    A SYN with a new initial sequence number opens a new connection on a known pair of endpoints, and so
    do two segments in a row that cannot belong to the old one. Connections in different tunnels are
    different ones. Labels may differ by direction, though: a connection of which one direction alone has come
    goes on in another tunnel, or outside of any, with a segment whose numbers answer it.
    """

    def __init__(
        self,
        port: int | Iterable[int] | None = AMQP_PORT,
        *,
        out_of_order_bytes: int = OUT_OF_ORDER_BYTES,
        out_of_order_segments: int = OUT_OF_ORDER_SEGMENTS,
        flow_timeout: float = FLOW_TIMEOUT,
        copies: str = KEEP,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._ports = None if port is None else frozenset((port,) if isinstance(port, int) else port)
        self._window = (out_of_order_bytes, out_of_order_segments)
        self._timeout_ns = int(min(flow_timeout * 1e9, _NEVER))
        self._max_waiting = max_waiting_bytes
        self._max_connections = max_connections
        self._flows: dict[_Key, Flow] = {}
        # Of connections in tunnels: those of which one direction has come, by their ends without the tunnel,
        # and the tunnels of senders and receivers whose other direction is in another one.
        self._unanswered: dict[_Key, list[Flow]] = {}
        self._other_tunnels: dict[_Key, str] = {}
        # One entry a connection, the one longest silent first; its count of segments may be out of date.
        self._silent: list[tuple[int, _Key]] = []
        self._closing: OrderedDict[Flow, int] = OrderedDict()  # -> its deadline
        # Those joined midway whose first segment waits, as `stray` -> until when.
        self._held: OrderedDict[Flow, int] = OrderedDict()
        self._deadline = _NEVER  # of the first one closing or held
        self._fed = 0
        self._count = 0
        self._waiting = 0
        self._copies = Copies()
        self._drops_copies = copies != KEEP
        self.recorded_twice = 0
        self.heard = False
        self.elsewhere = Elsewhere()

    def feed(self, segment: Segment) -> list[Event]:
        """Add one segment; returns the events that are now in order."""
        events: list[Event] = []
        segment = self._placed(segment)
        self._fed += 1
        time_ns = segment.time_ns
        if time_ns is not None and self._deadline < time_ns:
            self._settle(time_ns, events)
        flow = self._flow_of(segment, events)
        flow.touched = self._fed
        direction = flow.direction(segment.source)
        if not flow.seen >> direction & 1:
            flow.seen |= 1 << direction
            if flow.seen == 3 and flow.client.tunnel:
                self._note_answered(flow, segment)
        if flow.compared < COMPARED:
            self._compare(flow, segment, events)
        if flow.selected:
            flow.note(segment.packet, time_ns)
            if flow.compared > 2 or not self._joins(flow, direction, segment, events):
                self._advance(flow, direction, segment, events)
            self._recount(flow)
            if self._waiting > self._max_waiting:
                self._make_room(events)
        return events

    def locate(self, segment: Segment) -> LocatedSegment | None:
        """The position of the segment that was fed last; None if its connection is not tracked."""
        segment = self._placed(segment)
        flow = self._flows.get(_key(segment))
        if flow is None or not flow.selected:
            return None
        direction = flow.direction(segment.source)
        own = flow.directions[direction]
        seq = segment.seq + 1 if segment.flags & SYN else segment.seq
        return LocatedSegment(flow.connection, direction, own.position_of(seq, segment.length), segment)

    def _placed(self, segment: Segment) -> Segment:
        """A segment in the tunnel of its connection, which may be another one in that direction."""
        source, destination = segment.source, segment.destination
        if not (source.tunnel or self._unanswered or self._other_tunnels):
            return segment
        ways = source, destination
        tunnel = self._other_tunnels.get(ways)
        if tunnel is None:
            answered = None if _key(segment) in self._flows else self._answered(segment)
            if answered is None:
                return segment
            tunnel = answered.client.tunnel
            self._other_tunnels[ways] = tunnel
            self._bound(self._other_tunnels)
        return _in_tunnel(segment, tunnel)

    def _answered(self, segment: Segment) -> Flow | None:
        """The connection in another tunnel that a segment is the first answer of."""
        plain = _in_tunnel(segment, "")
        key = _key(plain)
        known = self._flows.get(key)
        if known is not None and known.may_be_answered_by(plain):
            return known
        for flow in self._unanswered.get(key, ()):
            if flow.may_be_answered_by(_in_tunnel(segment, flow.client.tunnel)):
                return flow
        return None

    def _note_unanswered(self, flow: Flow, segment: Segment) -> None:
        """Record a new connection in a tunnel."""
        key = _key(_in_tunnel(segment, ""))
        flows = [each for each in self._unanswered.pop(key, []) if each.current]
        self._unanswered[key] = [*flows[-_MOST_ALIKE:], flow]
        self._bound(self._unanswered)

    def _note_answered(self, flow: Flow, segment: Segment) -> None:
        """Record that the second direction of a connection in a tunnel has come."""
        key = _key(_in_tunnel(segment, ""))
        left = [each for each in self._unanswered.pop(key, []) if each is not flow]
        if left:
            self._unanswered[key] = left

    def _bound(self, table: dict[_Key, Any]) -> None:
        if len(table) > self._max_connections:
            del table[next(iter(table))]

    def finish(self) -> list[Event]:
        """The recording is over: emit everything that waits."""
        events: list[Event] = []
        for flow in self._by_silence():
            self._finish_flow(flow, events)
            flow.current = False
        self._flows.clear()
        self._silent.clear()
        return events

    def state(self, note: Note) -> list[Any]:
        """The state that `restore` takes; calls `note` with each packet number that an event may need."""
        flows = self._by_silence()
        numbers = {flow: number for number, flow in enumerate(flows)}
        closing = [[numbers[flow], deadline] for flow, deadline in self._closing.items()]
        others = [[*one, *other, tunnel] for (one, other), tunnel in self._other_tunnels.items()]
        tunnels = [others] if others else []
        copies = [self.recorded_twice, self._copies.state()]
        flow_states = [flow.state(note) for flow in flows]
        return [self._fed, self._count, flow_states, closing, *copies, *tunnels]

    def restore(self, state: Fields) -> dict[int, Flow]:
        """Continue from a state, before anything is fed; returns the connections by their numbers."""
        self._fed, self._count = state.number(0), state.number(0)
        flows = [self._restored(fields) for fields in state.items()]
        for flow in flows:
            if flow.selected and any(each.stray and not each.begun for each in flow.directions):
                self._hold(flow)
        self._silent.sort()
        for fields in state.items():
            flow = flows[fields.number(0, len(flows) - 1)]
            if not flow.selected:
                raise damaged("a connection of no interest waits for its end")
            self._closing[flow] = fields.number(-_NEVER, _NEVER + _CLOSING_NS)
            fields.end()
        self._set_deadline()
        self.recorded_twice = state.number(0)
        self._copies.restore(state)
        for fields in state.items() if state.is_next(list) else ():
            ways = _endpoint(fields, True), _endpoint(fields, True)
            self._other_tunnels[ways] = fields.text()
            fields.end()
        state.end()
        known = {flow.connection.number: flow for flow in flows}
        if len(known) < len(flows):
            raise damaged("two connections have the same number")
        return known

    def _restored(self, state: Fields) -> Flow:
        """The flow in part of a state."""
        client, server = _endpoint(state), _endpoint(state)
        number, packet, time_ns = state.number(0, self._count - 1), state.number(1), state.time()
        touched, one, other = state.number(0, self._fed), state.fields(), state.fields()
        compared, alike = state.number(0, COMPARED), state.number(0, 2 * COMPARED)
        copy_of = state.perhaps(0)
        seen = 3
        if state.is_next(str):
            tunnel, seen = state.text(), state.number(0, 3)
            client, server = client._replace(tunnel=tunnel), server._replace(tunnel=tunnel)
        state.end()
        connection = Connection(number, client, server)
        key = (client, server) if client < server else (server, client)
        flow = Flow(connection, client, self._selects(key), self._window)
        flow.note(packet, time_ns)
        flow.touched, flow.seen = touched, seen
        flow.directions[CLIENT_TO_SERVER].restore(one, client, server)
        flow.directions[SERVER_TO_CLIENT].restore(other, server, client)
        connection.opened = any(each.opened for each in flow.directions)
        flow.compared, flow.alike, connection.copy_of = compared, alike, copy_of
        if connection.copy_of is not None and self._drops_copies:
            flow.selected = False
        if key in self._flows:
            raise damaged("two connections have the same endpoints")
        self._flows[key] = flow
        if seen != 3:
            self._note_unanswered(flow, Segment(packet, time_ns, client, server, 0, 0, 0, b"", 0))
        self._silent.append((flow.touched, key))
        self._recount(flow)
        return flow

    def _selects(self, key: _Key) -> bool:
        return self._ports is None or not self._ports.isdisjoint((key[0].port, key[1].port))

    def _flow_of(self, segment: Segment, events: list[Event]) -> Flow:
        """The connection that a segment belongs to; another one than before, if it cannot be that."""
        key = _key(segment)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._new_flow(key, segment)
            heappush(self._silent, (self._fed, key))
            flow.touched = self._fed
            self._forget_oldest(events)
        elif flow.selected and flow.abandoned(segment, self._timeout_ns):
            self._finish_flow(flow, events)
            flow = self._new_flow(key, segment)
        if segment.flags & SYN:
            own = flow.directions[flow.direction(segment.source)]
            if not own.open(segment.seq):
                self._finish_flow(flow, events)
                flow = self._new_flow(key, segment)
                own = flow.directions[flow.direction(segment.source)]
                own.open(segment.seq)
            flow.connection.opened = True
        return flow

    def _compare(self, flow: Flow, segment: Segment, events: list[Event]) -> None:
        """Look at one of the first segments: whether another connection had it, or what it carries."""
        flow.compared += 1
        connection = flow.connection
        if not flow.selected:
            client = flow.client
            server = segment.source if client == segment.destination else segment.destination
            self.elsewhere.see(server.port, segment)
        else:
            self.heard = self.heard or segment.length > 0
            original = self._copies.original(connection.number, segment)
            if original is not None and connection.copy_of is None:
                flow.alike += 1 + (segment.length > 0)
                if flow.alike >= ENOUGH:
                    self._mark_copy(flow, original, events)

    def _mark_copy(self, flow: Flow, original: int, events: list[Event]) -> None:
        flow.connection.copy_of = original
        self.recorded_twice += 1
        if self._drops_copies:
            self._finish_flow(flow, events)
            flow.selected = False
            flow.compared = COMPARED

    def _joins(self, flow: Flow, direction: int, segment: Segment, events: list[Event]) -> bool:
        """Take one of the first two segments of a connection joined midway, which may have been swapped.

        The first one waits for the second. Returns whether nothing is left to do with this one.
        """
        own = flow.directions[direction]
        if flow.compared == 1:
            if own.begun or not segment.length or segment.flags & (SYN | FIN | RST):
                return False
            self._advance(flow, direction, segment._replace(data=b"", length=0), events)
            own.stray = segment
            self._hold(flow)
            self._set_deadline()
            return True
        if flow not in self._held:
            return False
        first = own.stray
        if not segment.length or not own.precedes(segment.seq, segment.length):
            self._let_go(flow, events)
            return False
        own.stray = None
        self._advance(flow, direction, segment, events)
        own.stray = first
        self._let_go(flow, events)
        return True

    def _hold(self, flow: Flow) -> None:
        last = _NEVER if flow.time_ns == _NO_TIME else flow.time_ns + min(_HELD_NS, self._timeout_ns)
        self._held[flow] = last

    def _let_go(self, flow: Flow, events: list[Event]) -> None:
        """Take the first segment of a connection, which has waited."""
        del self._held[flow]
        self._set_deadline()
        for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT):
            own = flow.directions[direction]
            first, own.stray = own.stray, None
            if first is not None:
                flow.add(direction, first, events)

    def _advance(self, flow: Flow, direction: int, segment: Segment, events: list[Event]) -> None:
        own, peer = flow.directions[direction], flow.directions[1 - direction]
        flags, length = segment.flags, segment.length
        if flags & ACK and not flags & RST and peer.fits(segment.ack):
            acknowledged = peer.acknowledge(segment.ack, segment.time_ns)
            flow.emit(1 - direction, acknowledged, events)
        if length and flags & RST:  # which says why (RFC 9293, 3.5.2), and is no part of the stream
            said = segment.data.decode("ascii", "backslashreplace")
            message = f"the connection was reset, with the reason {said!r}"
            events.append(_aside(flow, direction, own.position, len(segment.data), message, segment))
            length = 0
        if length and not own.fits(segment.seq):
            self._far_away(flow, direction, segment, events)
            return
        if length:
            own.stray = None
            offset, late = own.take_before(segment.seq, len(segment.data))
            if late:
                events.append(_aside(flow, direction, offset, late, _LATE, segment))
            flow.add(direction, segment, events)
        if flags & FIN and own.fits(segment.seq):
            own.finish_at(segment.seq + length)
        if flags & RST or (flags & FIN and peer.ending):
            self._expect_close(flow)
        if own.ending and own.complete:
            flow.close(direction, events)
        if peer.ending and peer.complete:
            flow.close(1 - direction, events)

    def _far_away(self, flow: Flow, direction: int, segment: Segment, events: list[Event]) -> None:
        """A segment far outside the window. One alone may be damaged or ancient; two that agree are not."""
        own = flow.directions[direction]
        stray = own.stray
        if stray is None or stray.seq == segment.seq or abs(segment.seq - stray.seq) > self._window[0]:
            own.stray = segment
            return
        own.stray = None
        first = min(stray, segment, key=_seq)
        if not own.finished and 0 < own.distance(first.seq) <= _LARGEST_JUMP:
            flow.emit(direction, own.jump(first.seq), events)
        else:
            self._finish_flow(flow, events)
            flow = self._new_flow(_key(stray), stray)
            flow.touched = self._fed
            direction = flow.direction(stray.source)
        flow.add(direction, stray, events)
        flow.add(direction, segment, events)
        self._recount(flow)

    def _new_flow(self, key: _Key, segment: Segment) -> Flow:
        former = self._flows.get(key)
        if former is not None:
            former.current = False
        client = self._client(segment)
        server = segment.destination if client == segment.source else segment.source
        flow = Flow(Connection(self._count, client, server), client, self._selects(key), self._window)
        flow.note(segment.packet, segment.time_ns)
        self._count += 1
        self._flows[key] = flow
        if client.tunnel:
            self._note_unanswered(flow, segment)
        return flow

    def _client(self, segment: Segment) -> Endpoint:
        """Who opened a connection: by the SYN, else by the server port, else the higher port."""
        source, destination = segment.source, segment.destination
        if segment.flags & SYN:
            return destination if segment.flags & ACK else source
        if self._ports is not None and (source.port in self._ports) != (destination.port in self._ports):
            return source if destination.port in self._ports else destination
        return source if source.port >= destination.port else destination

    def _expect_close(self, flow: Flow) -> None:
        one, other = flow.directions
        if flow.time_ns != _NO_TIME and not (one.finished and other.finished):
            self._closing.setdefault(flow, flow.time_ns + _CLOSING_NS)
            self._set_deadline()

    def _settle(self, time_ns: int, events: list[Event]) -> None:
        """Close connections that FIN or RST ended a while ago: missing octets will not come any more. Nor do
        those before a first segment that has waited."""
        while self._deadline < time_ns:
            if next(iter(self._held.values()), _NEVER) < time_ns:
                flow = next(iter(self._held))
                self._let_go(flow, events)
                self._recount(flow)
            else:
                self._finish_flow(next(iter(self._closing)), events)

    def _set_deadline(self) -> None:
        closing, held = next(iter(self._closing.values()), _NEVER), next(iter(self._held.values()), _NEVER)
        self._deadline = min(closing, held)

    def _finish_flow(self, flow: Flow, events: list[Event]) -> None:
        if flow.selected:
            if flow in self._held:
                self._let_go(flow, events)
            flow.close(CLIENT_TO_SERVER, events)
            flow.close(SERVER_TO_CLIENT, events)
            self._recount(flow)
            if self._closing.pop(flow, None) is not None:
                self._set_deadline()

    def _recount(self, flow: Flow) -> None:
        one, other = flow.directions
        waiting = one.kept() + other.kept()
        self._waiting += waiting - flow.waiting
        flow.waiting = waiting

    def _forget_oldest(self, events: list[Event]) -> None:
        while len(self._flows) > self._max_connections:
            touched, key = self._silent[0]
            flow = self._flows[key]
            if flow.touched != touched:
                heapreplace(self._silent, (flow.touched, key))
                continue
            heappop(self._silent)
            del self._flows[key]
            flow.current = False
            self._finish_flow(flow, events)

    def _by_silence(self) -> list[Flow]:
        return sorted(self._flows.values(), key=_touched)

    def _make_room(self, events: list[Event]) -> None:
        """Skip missing octets, of the connections longest silent first. It frees half of the memory, so
        it does not run for every segment."""
        for flow in self._by_silence():
            if flow in self._held:
                self._let_go(flow, events)
            for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT):
                own = flow.directions[direction]
                own.stray = None
                flow.emit(direction, own.skip_holes(), events)
            self._recount(flow)
            if self._waiting <= self._max_waiting // 2:
                return


def _key(segment: Segment) -> _Key:
    source, destination = segment.source, segment.destination
    return (source, destination) if source < destination else (destination, source)


def _in_tunnel(segment: Segment, tunnel: str) -> Segment:
    """Return a segment as one in another tunnel."""
    source, destination = segment.source, segment.destination
    return segment._replace(
        source=source._replace(tunnel=tunnel), destination=destination._replace(tunnel=tunnel)
    )


def _endpoint(state: Fields, in_tunnel: bool = False) -> Endpoint:
    """The end of a connection that comes next in a state, with its tunnel if that follows."""
    address = state.octets()
    if len(address) not in (4, 16):
        raise damaged("an address is not as long as it should be")
    return Endpoint(address, state.number(0, 0xFFFF), state.text() if in_tunnel else "")


def _aside(flow: Flow, direction: int, offset: int, length: int, message: str, segment: Segment) -> Aside:
    """Octets of a segment that are no part of the stream."""
    return Aside(flow.connection, direction, offset, length, message, segment.packet, segment.time_ns)


def _seq(segment: Segment) -> int:
    return segment.seq


def _touched(flow: Flow) -> int:
    return flow.touched


def read_streams(segments: Iterable[Segment | Fault], tracker: StreamTracker) -> Iterator[Event | Fault]:
    """The ordered octets of every connection that a tracker selects.

    Faults from the layer below are passed on in order.
    """
    for segment in segments:
        if isinstance(segment, Fault):
            yield segment
        else:
            yield from tracker.feed(segment)
    yield from tracker.finish()


describe([StreamTracker])
