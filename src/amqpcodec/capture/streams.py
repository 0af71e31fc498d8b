"""TCP connections: which segments belong together, who is the client, where one ends and the next begins."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from .model import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Close,
    Connection,
    Data,
    Endpoint,
    Event,
    Fault,
    Gap,
    Segment,
)
from .network import ACK, FIN, RST, SYN
from .reassembly import Piece, Reassembler

AMQP_PORT = 5672
WINDOW_OCTETS = 4 * 1024 * 1024
WINDOW_SEGMENTS = 4096
MAX_WAITING_OCTETS = 256 * 1024 * 1024
MAX_CONNECTIONS = 65536
# A jump ahead of the window is a gap up to this size; beyond it, the 4-tuple has been used anew.
_LARGEST_JUMP = 1 << 30
_CLOSING_NS = 2_000_000_000  # how long stragglers of a closed connection are waited for

_Key = tuple[Endpoint, Endpoint]


class _Flow:
    """A connection and the state of its two directions."""

    __slots__ = (
        "client",
        "closed",
        "connection",
        "directions",
        "packet",
        "selected",
        "strays",
        "time_ns",
        "waiting",
    )

    def __init__(
        self, connection: Connection, client: Endpoint, selected: bool, window: tuple[int, int]
    ) -> None:
        self.connection = connection
        self.client = client
        self.selected = selected
        self.directions = (Reassembler(*window), Reassembler(*window))
        self.strays: list[Segment | None] = [None, None]
        self.closed = [False, False]
        self.packet: int | None = None
        self.time_ns: int | None = None
        self.waiting = 0

    def events(self, direction: int, pieces: Iterable[Piece]) -> Iterator[Event]:
        for position, length, octets, packet, time_ns in pieces:
            if not packet:
                packet, time_ns = self.packet or 0, self.time_ns
            if octets is None:
                yield Gap(self.connection, direction, position, length, packet, time_ns)
            else:
                yield Data(self.connection, direction, position, octets, packet, time_ns)

    def close(self, direction: int) -> Iterator[Event]:
        """Flush a direction and say that it ended, once."""
        if self.closed[direction]:
            return
        self.closed[direction] = True
        reassembler, stray = self.directions[direction], self.strays[direction]
        if stray is not None and 0 < reassembler.distance(stray.seq) <= _LARGEST_JUMP:
            yield from self.events(direction, reassembler.jump(stray.seq))
            yield from self.take(direction, stray)
        yield from self.events(direction, reassembler.flush())
        yield Close(self.connection, direction, reassembler.position, self.packet, self.time_ns)

    def take(self, direction: int, segment: Segment) -> Iterator[Event]:
        """Put a segment's payload in its place."""
        seq = segment.seq + 1 if segment.flags & SYN else segment.seq
        pieces = self.directions[direction].add(
            seq, segment.data, segment.length, segment.packet, segment.time_ns
        )
        return self.events(direction, pieces)


class StreamTracker:
    """Segments in, ordered octets of both directions of every connection out.

    Args:
        ports: server ports of interest; None for every connection.
        window_octets: reordering window of one direction, see `Reassembler`.
        window_segments: the same in segments.
        max_waiting: octets that may wait for earlier ones, over all connections.
        max_connections: connections remembered; the one longest silent is closed first.

    A SYN with a new initial sequence number opens a new connection on a known pair of endpoints, and so
    do two segments in a row that cannot belong to the old one.
    """

    def __init__(
        self,
        ports: Iterable[int] | None = (AMQP_PORT,),
        *,
        window_octets: int = WINDOW_OCTETS,
        window_segments: int = WINDOW_SEGMENTS,
        max_waiting: int = MAX_WAITING_OCTETS,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        self._ports = None if ports is None else frozenset(ports)
        self._window = (window_octets, window_segments)
        self._max_waiting = max_waiting
        self._max_connections = max_connections
        self._flows: OrderedDict[_Key, _Flow] = OrderedDict()  # the one longest silent first
        self._closing: deque[tuple[int, _Flow]] = deque()
        self._count = 0
        self._waiting = 0

    def feed(self, segment: Segment) -> Iterator[Event]:
        """Take one segment and give what is in order now. Exhaust the iterator before the next call."""
        yield from self._settle(segment.time_ns)
        source, destination = segment.source, segment.destination
        key = (source, destination) if source < destination else (destination, source)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._new_flow(key, segment)
            yield from self._forget_oldest()
        else:
            self._flows.move_to_end(key)
        direction = CLIENT_TO_SERVER if source == flow.client else SERVER_TO_CLIENT
        if segment.flags & SYN and not flow.directions[direction].open(segment.seq):
            yield from self._finish_flow(flow)
            flow = self._new_flow(key, segment)
            direction = CLIENT_TO_SERVER if source == flow.client else SERVER_TO_CLIENT
            flow.directions[direction].open(segment.seq)
        if not flow.selected:
            return
        flow.packet, flow.time_ns = segment.packet, segment.time_ns
        yield from self._advance(key, flow, direction, segment)
        self._recount(flow)
        if self._waiting > self._max_waiting:
            yield from self._make_room()

    def finish(self) -> Iterator[Event]:
        """The recording is over: give out everything that waits."""
        for flow in self._flows.values():
            yield from self._finish_flow(flow)
        self._flows.clear()

    def _advance(self, key: _Key, flow: _Flow, direction: int, segment: Segment) -> Iterator[Event]:
        own, peer = flow.directions[direction], flow.directions[1 - direction]
        if segment.flags & ACK and not segment.flags & RST and peer.fits(segment.ack):
            acknowledged = peer.acknowledge(segment.ack, segment.time_ns)
            yield from flow.events(1 - direction, acknowledged)
        if segment.length and not own.fits(segment.seq):
            yield from self._far_away(key, flow, direction, segment)
            return
        if segment.length:
            flow.strays[direction] = None
            yield from flow.take(direction, segment)
        if segment.flags & FIN and own.fits(segment.seq):
            own.finish_at(segment.seq + segment.length)
        if segment.flags & RST or (segment.flags & FIN and peer.ending):
            self._expect_close(flow)
        if own.complete:
            yield from flow.close(direction)
        if peer.complete:
            yield from flow.close(1 - direction)

    def _far_away(self, key: _Key, flow: _Flow, direction: int, segment: Segment) -> Iterator[Event]:
        """A segment far outside the window. One alone may be damaged or ancient; two that agree are not."""
        stray, own = flow.strays[direction], flow.directions[direction]
        if stray is None or stray.seq == segment.seq or abs(segment.seq - stray.seq) > self._window[0]:
            flow.strays[direction] = segment
            return
        flow.strays[direction] = None
        first = min(stray, segment, key=lambda each: each.seq)
        if not own.finished and 0 < own.distance(first.seq) <= _LARGEST_JUMP:
            yield from flow.events(direction, own.jump(first.seq))
        else:
            yield from self._finish_flow(flow)
            flow = self._new_flow(key, stray)
            direction = CLIENT_TO_SERVER if stray.source == flow.client else SERVER_TO_CLIENT
        yield from flow.take(direction, stray)
        yield from flow.take(direction, segment)
        self._recount(flow)

    def _new_flow(self, key: _Key, segment: Segment) -> _Flow:
        selected = self._ports is None or not self._ports.isdisjoint((key[0].port, key[1].port))
        client = self._client(segment)
        server = segment.destination if client == segment.source else segment.source
        flow = _Flow(Connection(self._count, client, server), client, selected, self._window)
        flow.packet, flow.time_ns = segment.packet, segment.time_ns
        self._count += 1
        self._flows[key] = flow
        self._flows.move_to_end(key)
        return flow

    def _client(self, segment: Segment) -> Endpoint:
        """Who opened a connection: the SYN tells, else the port asked for, else the higher port."""
        source, destination = segment.source, segment.destination
        if segment.flags & SYN:
            return destination if segment.flags & ACK else source
        if self._ports is not None and (source.port in self._ports) != (destination.port in self._ports):
            return source if destination.port in self._ports else destination
        return source if source.port >= destination.port else destination

    def _expect_close(self, flow: _Flow) -> None:
        if flow.time_ns is not None and not all(flow.closed):
            self._closing.append((flow.time_ns + _CLOSING_NS, flow))

    def _settle(self, time_ns: int | None) -> Iterator[Event]:
        """Close what was closed by FIN or RST a while ago: its missing octets will not come any more."""
        while time_ns is not None and self._closing and self._closing[0][0] < time_ns:
            yield from self._finish_flow(self._closing.popleft()[1])

    def _finish_flow(self, flow: _Flow) -> Iterator[Event]:
        if flow.selected:
            yield from flow.close(CLIENT_TO_SERVER)
            yield from flow.close(SERVER_TO_CLIENT)
            self._recount(flow)

    def _recount(self, flow: _Flow) -> None:
        waiting = flow.directions[0].waiting_octets + flow.directions[1].waiting_octets
        self._waiting += waiting - flow.waiting
        flow.waiting = waiting

    def _forget_oldest(self) -> Iterator[Event]:
        if len(self._flows) > self._max_connections:
            _, oldest = self._flows.popitem(last=False)
            yield from self._finish_flow(oldest)

    def _make_room(self) -> Iterator[Event]:
        for flow in self._flows.values():
            for direction, reassembler in enumerate(flow.directions):
                yield from flow.events(direction, reassembler.give_up())
            self._recount(flow)
            if self._waiting <= self._max_waiting:
                return


def read_streams(segments: Iterable[Segment | Fault], tracker: StreamTracker) -> Iterator[Event | Fault]:
    """The ordered octets of every connection that a tracker is interested in.

    Faults from below are passed on in their place.
    """
    for segment in segments:
        if isinstance(segment, Fault):
            yield segment
        else:
            yield from tracker.feed(segment)
    yield from tracker.finish()
