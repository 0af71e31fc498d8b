"""Connections: where one ends and the next begins, and who is the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support import make_capture as make
from support.memory import traced

from amqpcodec import capture
from amqpcodec._state import Fields
from amqpcodec.capture import Close, Data, Endpoint, Event, Gap, Segment

A, B = Endpoint(b"\x0a\0\0\1", 40000), Endpoint(b"\x0a\0\0\2", 5672)
SYN, ACK, FIN, RST = make.SYN, make.ACK, make.FIN, make.RST


class Wire:
    """Numbers segments as they are recorded."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []

    def put(
        self, source: Endpoint, seq: int, flags: int = ACK, data: bytes = b"", ack: int = 0, ms: int = 1
    ) -> Wire:
        packet = len(self.segments) + 1
        destination = B if source == A else A
        time_ns = (self.segments[-1].time_ns or 0 if self.segments else 0) + ms * 1_000_000
        self.segments.append(
            Segment(packet, time_ns, source, destination, seq % 2**32, ack, flags, data, len(data))
        )
        return self

    def events(self, **options) -> list[Event]:  # type: ignore[no-untyped-def]
        tracker = capture.StreamTracker(**options)
        return [item for item in capture.read_streams(self.segments, tracker) if isinstance(item, Event)]

    def streams(self, **options) -> dict[tuple[int, int], bytes]:  # type: ignore[no-untyped-def]
        streams: dict[tuple[int, int], bytes] = {}
        for event in self.events(**options):
            key = event.connection.number, event.direction
            assert event.offset == len(streams.get(key, b""))
            if isinstance(event, Data):
                streams[key] = streams.get(key, b"") + event.octets
            elif isinstance(event, Gap):
                streams[key] = streams.get(key, b"") + b"?" * event.length
        return streams


def opened(wire: Wire, client_isn: int = 100, server_isn: int = 900) -> Wire:
    wire.put(A, client_isn, SYN)
    wire.put(B, server_isn, SYN | ACK, ack=client_isn + 1)
    return wire.put(A, client_isn + 1, ACK, ack=server_isn + 1)


def test_both_directions_of_one_connection() -> None:
    wire = opened(Wire()).put(A, 101, data=b"hello").put(B, 901, data=b"world", ack=106)
    assert wire.streams() == {(0, 0): b"hello", (0, 1): b"world"}
    [event, *_] = wire.events()
    assert (event.connection.client, event.connection.server) == (A, B)


def test_every_direction_is_closed_once() -> None:
    wire = opened(Wire()).put(A, 101, FIN | ACK, b"bye").put(B, 901, FIN | ACK, ack=105).put(A, 105, ack=902)
    closes = [event for event in wire.events() if isinstance(event, Close)]
    assert [(event.direction, event.offset) for event in closes] == [(0, 3), (1, 0)]


@pytest.mark.parametrize("flags", [SYN, SYN | ACK])
def test_a_syn_shows_who_is_the_client_whatever_the_ports(flags: int) -> None:
    wire = Wire().put(B if flags == SYN else A, 5, flags).put(A, 50, data=b"x")
    [event, *_] = wire.events()
    assert event.connection.client == B


def test_without_a_syn_the_port_asked_for_or_the_lower_one_is_the_server() -> None:
    wire = Wire().put(B, 50, data=b"x")
    for ports in ((5672,), None):
        [event, *_] = wire.events(port=ports)
        assert event.connection.server == B
    [event, *_] = wire.events(port=(40000,))
    assert event.connection.server == A


def test_ports_not_asked_for_are_passed_over_but_numbered() -> None:
    other = Endpoint(A.address, 80)
    wire = Wire().put(A, 1, data=b"web")
    wire.segments[0] = wire.segments[0]._replace(destination=other)
    wire.put(A, 1, data=b"amqp")
    assert wire.streams() == {(1, 0): b"amqp"}
    assert wire.streams(port=None) == {(0, 0): b"web", (1, 0): b"amqp"}


def test_a_syn_with_a_new_number_opens_a_new_connection() -> None:
    wire = opened(Wire()).put(A, 101, data=b"one")
    opened(wire, 7_000, 8_000).put(A, 7_001, data=b"two")
    assert wire.streams() == {(0, 0): b"one", (1, 0): b"two"}


def test_a_syn_sent_again_does_not() -> None:
    wire = opened(Wire()).put(A, 100, SYN).put(A, 101, data=b"one").put(A, 100, SYN).put(A, 104, data=b"two")
    assert wire.streams() == {(0, 0): b"onetwo"}


def test_a_syn_recorded_behind_the_first_data_does_not() -> None:
    wire = Wire().put(A, 101, data=b"one").put(A, 100, SYN).put(A, 104, data=b"two")
    assert wire.streams() == {(0, 0): b"onetwo"}


def test_data_may_come_with_the_syn() -> None:
    wire = Wire().put(A, 100, SYN, b"early").put(A, 106, data=b"late")
    assert wire.streams() == {(0, 0): b"earlylate"}


def test_sequence_numbers_wrap() -> None:
    wire = opened(Wire(), 2**32 - 3).put(A, 2**32 + 2, data=b"defg").put(A, 2**32 - 2, data=b"--bc")
    assert wire.streams() == {(0, 0): b"--bcdefg"}


def test_one_stray_far_away_is_dropped_and_two_in_a_row_are_a_gap() -> None:
    wire = opened(Wire()).put(A, 101, data=b"one")
    wire.put(A, 101 + 50_000_000, data=b"stray").put(A, 104, data=b"two")
    assert wire.streams() == {(0, 0): b"onetwo"}
    far = 107 + 30_000_000
    wire.put(A, far, data=b"three").put(A, far + 5, data=b"four")
    stream = wire.streams()[0, 0]
    assert stream.startswith(b"onetwo")
    assert stream.endswith(b"?threefour")
    assert len(stream) == 30_000_000 + 15


def test_two_that_cannot_belong_to_the_old_connection_are_a_new_one() -> None:
    wire = opened(Wire(), 2**31).put(A, 2**31 + 1, data=b"old")
    wire.put(A, 1_000, data=b"new").put(A, 1_003, data=b"er")
    assert wire.streams() == {(0, 0): b"old", (1, 0): b"newer"}


HOUR = 3_600_000


def test_after_long_silence_other_numbers_are_a_new_connection() -> None:
    wire = opened(Wire()).put(A, 101, data=b"old").put(A, 1_000, data=b"new", ms=HOUR + 1)
    assert wire.streams() == {(0, 0): b"old", (1, 0): b"new"}
    assert wire.streams(flow_timeout=3601) != wire.streams()
    wire = opened(Wire()).put(A, 101, data=b"old").put(A, 1_000, data=b"new", ms=HOUR - 1)
    assert wire.streams()[0, 0] == b"old" + b"?" * 896 + b"new"


def test_a_connection_that_continues_where_it_stands_may_have_been_silent_for_long() -> None:
    wire = opened(Wire()).put(A, 101, data=b"one").put(A, 103, data=b"\0", ms=2 * HOUR)
    wire.put(B, 901, ack=104, ms=2 * HOUR).put(A, 104, data=b"two", ms=2 * HOUR)
    assert wire.streams() == {(0, 0): b"onetwo"}


def test_a_direction_never_seen_before_long_silence_is_a_new_connection() -> None:
    wire = Wire().put(A, 101, data=b"one").put(B, 901, data=b"two", ms=HOUR + 1)
    assert wire.streams() == {(0, 0): b"one", (1, 1): b"two"}


def test_octets_lost_before_a_reset_are_reported_soon_after_it() -> None:
    wire = opened(Wire()).put(A, 111, data=b"end").put(A, 114, RST)
    other = Endpoint(A.address, 41000)
    wire.put(A, 1, data=b"x", ms=5_000)
    wire.segments[-1] = wire.segments[-1]._replace(source=other)
    events = wire.events()
    gap = next(index for index, event in enumerate(events) if isinstance(event, Gap))
    later = next(index for index, event in enumerate(events) if event.connection.number == 1)
    assert gap < later
    assert events[gap].offset == 0


@pytest.mark.parametrize(
    ("flags", "missed"), [(ACK, 3), (FIN | ACK, 3), (SYN | ACK, 3), (RST | ACK, 0), (FIN, 0)]
)
def test_what_is_no_reset_and_has_ack_acknowledges_what_the_recording_missed(flags: int, missed: int) -> None:
    wire = opened(Wire()).put(A, 104, data=b"end")
    wire.put(B, 900 if flags & SYN else 901, flags, ack=107, ms=10_000)
    tracker = capture.StreamTracker()
    events = [event for segment in wire.segments for event in tracker.feed(segment)]
    assert sum(event.length for event in events if isinstance(event, Gap)) == missed


def test_a_direction_is_closed_by_its_fin_as_soon_as_all_before_it_is_there() -> None:
    wire = opened(Wire()).put(A, 104, FIN | ACK, b"end").put(A, 101, data=b"the").put(B, 901, FIN | ACK)
    tracker = capture.StreamTracker()
    closed = [[each.direction for each in tracker.feed(segment) if isinstance(each, Close)]
              for segment in wire.segments]  # fmt: skip
    assert closed == [[], [], [], [], [0], [1]]


def test_one_direction_goes_on_after_the_other_ended() -> None:
    wire = (
        opened(Wire())
        .put(B, 901, FIN | ACK)
        .put(A, 101, data=b"still", ms=60_000)
        .put(A, 106, data=b"here", ms=60_000)
    )
    assert wire.streams() == {(0, 0): b"stillhere"}


def test_memory_is_bounded_over_all_connections() -> None:
    wire = Wire()
    for number in range(20):
        wire.put(A, 100, SYN).put(A, 111, data=bytes(1000))
        for index in (-1, -2):
            wire.segments[index] = wire.segments[index]._replace(source=Endpoint(A.address, 41000 + number))
    tracker = capture.StreamTracker(max_waiting_bytes=5_000)
    early = [event for segment in wire.segments for event in tracker.feed(segment)]
    assert sum(isinstance(event, Gap) for event in early) >= 15
    assert tracker.finish()  # what came last still waits
    few = capture.StreamTracker(max_connections=5)
    early = [event for segment in wire.segments for event in few.feed(segment)]
    assert len({event.connection.number for event in early if isinstance(event, Close)}) == 15


def kept(segments: Iterable[Segment], **options: int) -> int:
    """Octets of memory that a tracker still has behind all these segments."""
    tracker = capture.StreamTracker(**options)
    with traced() as memory:
        for segment in segments:
            tracker.feed(segment)
        return memory()[0]


def test_connections_reset_at_once_are_not_kept_until_time_goes_on() -> None:
    flood = (
        Segment(1, 0, A, B, number // 2 + number % 2, 0, RST if number % 2 else SYN, b"", 0)
        for number in range(10_000)
    )
    assert kept(flood) < 50_000


def test_segments_far_away_count_as_waiting() -> None:
    def flood() -> Iterable[Segment]:
        for port in range(100):
            client = Endpoint(A.address, port)
            yield Segment(1, 0, client, B, 0, 0, SYN, b"", 0)
            yield Segment(1, 0, client, B, 2**31, 0, ACK, bytes(20_000), 20_000)

    assert kept(flood(), max_waiting_bytes=100_000) < 400_000


def test_segments_that_wait_count_with_what_it_takes_to_keep_them() -> None:
    def flood() -> Iterable[Segment]:
        for number in range(10_000):
            client = Endpoint(A.address, number // 100)
            flags = ACK if number % 100 else SYN
            yield Segment(1, 0, client, B, 2 * (number % 100), 0, flags, b"x", 1)

    assert kept(flood(), max_waiting_bytes=100_000) < 400_000


def with_number(tree: list[Any], path: tuple[int, ...], number: int) -> list[Any]:
    """A copy of a state with another number at a place."""
    at, *deeper = path
    return [*tree[:at], with_number(tree[at], (*deeper,), number) if deeper else number, *tree[at + 1 :]]


FLOW = (2, 0)
CLIENT = (*FLOW, 8)  # its direction
UNKNOWN = -(1 << 62)


@pytest.mark.parametrize(
    ("path", "least", "most"),
    [
        ((*FLOW, 1), 0, 65535), ((*FLOW, 3), 0, 65535), ((*FLOW, 4), 0, 0), ((*FLOW, 5), 1, None),
        ((*FLOW, 6), 1 + UNKNOWN, -UNKNOWN - 1), ((*FLOW, 7), 0, 6), ((*CLIENT, 0), -1, 2**32 - 1),
        ((*CLIENT, 2), 2 * UNKNOWN, None), ((*CLIENT, 3), -1, 2**32 - 1), ((*CLIENT, 4), -1, 2**32 - 1),
        ((*CLIENT, 5), 2 * UNKNOWN, None), ((*CLIENT, 9, 0, 0), 5, None), ((*CLIENT, 9, 0, 3), 1, None),
        ((3, 0, 0), 0, 0), ((3, 0, 1), UNKNOWN, -UNKNOWN + 2_000_000_000),
    ],
)  # fmt: skip
def test_numbers_of_a_state_are_in_their_ranges(path: tuple[int, ...], least: int, most: int | None) -> None:
    wire = opened(Wire()).put(A, 101, data=b"hello").put(A, 120, data=b"late").put(B, 901, RST | ACK, ack=106)
    tracker = capture.StreamTracker()
    for segment in wire.segments:
        list(tracker.feed(segment))
    tree = tracker.state(lambda number: number)
    for number in (least, most or least):
        capture.StreamTracker(port=None).restore(Fields(with_number(tree, path, number)))
    for number in (least - 1, least - 1 if most is None else most + 1):
        with pytest.raises(ValueError, match="the state is damaged"):
            capture.StreamTracker(port=None).restore(Fields(with_number(tree, path, number)))


def test_a_state_counts_segments_and_connections_from_none() -> None:
    assert capture.StreamTracker().restore(Fields([0, 0, [], [], 0, []])) == {}
    for counts in ([-1, 0], [0, -1]):
        with pytest.raises(ValueError, match="the state is damaged: -1 is out of range"):
            capture.StreamTracker().restore(Fields([*counts, [], [], 0, []]))


def test_a_connection_of_a_state_is_forgotten_as_the_one_that_was_silent_longest() -> None:
    ends = [Endpoint(bytes((10, 0, 0, number)), 40000) for number in range(3)]
    first = capture.StreamTracker(max_connections=2)
    packets = [Segment(at, at, end, B, 100, 0, SYN, b"", 0) for at, end in enumerate((*ends[:2], ends[0]), 1)]
    for segment in packets:
        list(first.feed(segment))
    state = first.state(lambda number: number)
    events = []
    second = capture.StreamTracker(max_connections=2)
    second.restore(Fields(state))
    for tracker in (first, second):
        closed = [
            event
            for event in tracker.feed(Segment(4, 4, ends[2], B, 100, 0, SYN, b"", 0))
            if isinstance(event, Close)
        ]
        events.append([(event.connection.client, event.connection.number) for event in closed])
    assert events[0] == events[1] != []
    assert {client for client, _ in events[0]} == {ends[1]}


@pytest.mark.parametrize("path", [(), FLOW, CLIENT, (*CLIENT, 9, 0), (*FLOW, 9, 10), (3, 0)])
def test_a_state_with_a_value_too_many_is_refused(path: tuple[int, ...]) -> None:
    wire = opened(Wire()).put(A, 120, data=b"late").put(B, 901 + 2**29, data=b"far").put(A, 101, RST | ACK)
    tracker = capture.StreamTracker(port=None)
    for segment in wire.segments:
        list(tracker.feed(segment))
    tree = tracker.state(lambda number: number)
    capture.StreamTracker(port=None).restore(Fields(tree))
    part: Any = tree
    for at in path:
        part = part[at]
    assert len(part) > 1
    part.append(None)
    with pytest.raises(ValueError, match="there are values too many"):
        capture.StreamTracker(port=None).restore(Fields(tree))


def test_one_stray_that_nothing_follows_ends_its_stream_behind_a_gap() -> None:
    wire = opened(Wire()).put(A, 101, data=b"one").put(A, 104 + 20_000_000, data=b"stray")
    stream = wire.streams()[0, 0]
    assert stream.startswith(b"one?")
    assert stream.endswith(b"?stray")
    assert len(stream) == 20_000_000 + 8
    behind = opened(Wire()).put(A, 101, data=b"one").put(A, 104 + 2**30 + 1, data=b"stray")
    assert behind.streams() == {(0, 0): b"one"}
