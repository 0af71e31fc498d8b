"""One direction of TCP: segments come in any order, octets are emitted in the order sent."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.implementation import Implementation

from amqpcodec.capture.model import Endpoint, Segment
from amqpcodec.capture.reassembly_py import Chunk, Reassembler

WINDOW = 4 * 1024 * 1024
STREAM = random.Random(1).randbytes(2000)


class Receiver:
    """Collects what a reassembler emits and checks that it is contiguous."""

    reassembler = Reassembler

    def __init__(self, isn: int | None = None, octets: int = WINDOW, segments: int = 4096) -> None:
        self.tcp = self.reassembler(octets, segments)
        self.first = 0 if isn is None else isn + 1
        self.stream = bytearray()
        self.gaps: list[tuple[int, int]] = []
        if isn is not None:
            assert self.tcp.open(isn)

    def take(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            assert chunk.position == len(self.stream)
            if chunk.octets is None:
                self.gaps.append((chunk.position, chunk.length))
            self.stream += bytes(chunk.length) if chunk.octets is None else chunk.octets

    def add(self, start: int, end: int, recorded: int | None = None, time_ns: int = 0) -> None:
        data = STREAM[start:end][:recorded]
        self.take(self.tcp.add((self.first + start) % 2**32, data, end - start, 1, time_ns))


@pytest.fixture(autouse=True, scope="module")
def reassembler(build: Implementation) -> None:
    """Makes receivers use a build."""
    Receiver.reassembler = build.capture("reassembly").Reassembler


@st.composite
def covering_segments(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Segments that cover the stream, with overlaps and copies, in any order."""
    cuts = draw(st.lists(st.integers(1, len(STREAM) - 1), max_size=25, unique=True))
    edges = [0, *sorted(cuts), len(STREAM)]
    segments = list(pairwise(edges))
    extra = st.tuples(st.integers(0, len(STREAM)), st.integers(0, len(STREAM))).map(sorted).map(tuple)
    segments += draw(st.lists(extra, max_size=15))  # type: ignore[arg-type]
    return list(draw(st.permutations(segments)))


@settings(max_examples=share(30))
@given(segments=covering_segments(), isn=st.sampled_from([0, 1, 2**31 - 900, 2**32 - 1, 2**32 - 1000]))
def test_any_order_copies_and_overlaps_give_the_same_stream(
    segments: list[tuple[int, int]], isn: int
) -> None:
    receiver = Receiver(isn)
    for start, end in segments:
        receiver.add(start, end)
    assert bytes(receiver.stream) == STREAM
    assert not receiver.gaps
    assert receiver.tcp.waiting_octets == 0


@settings(max_examples=share(20))
@given(segments=covering_segments(), data=st.data())
def test_what_never_came_is_a_gap_of_exactly_that_size(
    segments: list[tuple[int, int]], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(segments), max_size=len(segments)))
    receiver = Receiver(7)
    covered = set()
    for start, end in kept:
        receiver.add(start, end)
        covered.update(range(start, end))
    receiver.take(receiver.tcp.flush(False))
    assert len(receiver.stream) == (max(covered) + 1 if covered else 0)
    missing = {position for start, size in receiver.gaps for position in range(start, start + size)}
    assert missing == set(range(len(receiver.stream))) - covered
    assert all(receiver.stream[position] == STREAM[position] for position in covered)


def test_the_first_copy_of_an_octet_counts() -> None:
    receiver = Receiver(0)
    receiver.take(receiver.tcp.add(4, b"BBB", 3, 1, 0))
    receiver.take(receiver.tcp.add(1, b"aaaaaaaa", 8, 2, 0))
    assert receiver.stream == b"aaaBBBaa"


def test_keep_alives_are_no_data() -> None:
    receiver = Receiver(0)
    receiver.add(0, 10)
    receiver.take(receiver.tcp.add(10, b"?", 1, 2, 0))  # the last octet once more, with whatever in it
    receiver.add(10, 20)
    assert receiver.stream == STREAM[:20]


def test_a_keep_alive_does_not_begin_a_stream() -> None:
    receiver = Receiver()
    receiver.tcp.acknowledge(100, 0)
    assert receiver.tcp.add(99, b"\0", 1, 1, 0) == []
    receiver.take(receiver.tcp.add(100, b"data", 4, 2, 0))
    assert receiver.stream == b"data"


def test_octets_cut_off_by_the_snap_length_are_a_gap() -> None:
    receiver = Receiver(0)
    receiver.add(0, 100, recorded=60)
    receiver.add(100, 150)
    assert receiver.gaps == [(60, 40)]
    assert receiver.stream[100:] == STREAM[100:150]


def test_a_full_window_ends_the_wait_for_what_is_missing() -> None:
    for limits in ({"octets": 500}, {"segments": 5}):
        receiver = Receiver(0, **limits)
        for start in range(100, 1000, 50):
            receiver.add(start, start + 50)
            assert receiver.tcp.waiting_octets <= 500
        assert receiver.gaps == [(0, 100)]


def test_acknowledged_octets_are_given_up_once_recording_has_moved_on() -> None:
    receiver = Receiver(0)
    receiver.add(0, 100)
    receiver.add(200, 300, time_ns=1)
    receiver.take(receiver.tcp.acknowledge(301, 2))
    assert not receiver.gaps
    receiver.add(300, 400, time_ns=2_000_000_000)
    assert receiver.gaps == [(100, 100)]
    assert len(receiver.stream) == 400


def test_unacknowledged_octets_are_waited_for() -> None:
    receiver = Receiver(0)
    receiver.add(200, 300, time_ns=1)
    receiver.add(300, 400, time_ns=9_000_000_000)
    assert not receiver.stream


def test_joined_midway_the_stream_begins_with_the_first_octet_seen() -> None:
    receiver = Receiver()
    receiver.add(500, 600)
    receiver.first = 500
    assert bytes(receiver.stream) == STREAM[500:600]


def test_joined_midway_an_acknowledgement_reveals_a_segment_recorded_late() -> None:
    receiver = Receiver()
    receiver.take(receiver.tcp.acknowledge(400, 0))
    receiver.add(500, 600)
    assert not receiver.stream
    receiver.add(400, 500)
    assert bytes(receiver.stream) == STREAM[400:600]


def test_joined_midway_what_was_sent_before_is_no_gap() -> None:
    receiver = Receiver()
    receiver.take(receiver.tcp.acknowledge(400, 0))
    receiver.add(500, 600)
    receiver.add(700, 800)
    receiver.take(receiver.tcp.flush(False))
    assert receiver.gaps == [(100, 100)]
    assert bytes(receiver.stream[:100]) == STREAM[500:600]


def test_a_fin_ends_the_stream_and_shows_what_is_missing_before_it() -> None:
    receiver = Receiver(0)
    receiver.add(0, 100)
    receiver.tcp.finish_at(151)
    assert not receiver.tcp.complete
    receiver.take(receiver.tcp.flush(False))
    assert receiver.gaps == [(100, 50)]
    assert receiver.tcp.complete


@pytest.mark.parametrize("first", [0, 1, 2**31, 2**32 - 2, 2**32 - 1])
def test_every_sequence_number_may_be_the_first(first: int) -> None:
    tcp = Receiver.reassembler(WINDOW, 4096)
    assert not tcp.continues(first)  # nothing is known yet, so nothing goes on
    assert tcp.fits(first)
    isn = (first - 1) % 2**32
    assert tcp.open(isn)
    assert [tcp.open((isn + ahead) % 2**32) for ahead in (0, 1, -1)] == [True, False, False]

    def seen(ahead: int) -> tuple[bool, bool, int | None]:
        seq = (first + ahead) % 2**32
        return tcp.continues(seq), tcp.fits(seq), tcp.position_of(seq, 1)

    ahead = (-2, -1, 0, 1, WINDOW, WINDOW + 1)
    assert list(map(seen, ahead)) == [
        (False, True, -2),
        (True, True, -1),  # a keep-alive
        (True, True, 0),
        (False, True, 1),
        (False, True, WINDOW),
        (False, False, None),
    ]
    [chunk] = tcp.add(first, b"x", 1, 1, None)
    assert (chunk.position, chunk.octets, tcp.position) == (0, b"x", 1)
    assert [tcp.continues((first + each) % 2**32) for each in (-1, 0, 1, 2)] == [False, True, True, False]


@pytest.mark.parametrize("first", [0, 2**32 - 1])
def test_a_connection_may_go_on_at_every_sequence_number_after_a_long_silence(
    build: Implementation, first: int
) -> None:
    tracker = build.capture("streams").StreamTracker(flow_timeout=1)
    client, server = Endpoint(b"\x0a\0\0\1", 40000), Endpoint(b"\x0a\0\0\2", 5672)
    isn = (first - 1) % 2**32
    tracker.feed(Segment(1, 0, client, server, isn, 0, 2, b"", 0))
    [data] = tracker.feed(Segment(2, 60 * 10**9, client, server, first, 0, 16, b"late", 4))
    assert (data.connection.number, data.offset, data.octets) == (0, 0, b"late")
