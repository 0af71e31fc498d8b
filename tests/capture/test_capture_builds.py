"""The compiled reader against the pure one: the same events in the same order, whatever is in the file."""

from __future__ import annotations

import io
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import make_capture as make
from support import make_chaos as chaos
from support.campaign import share
from support.captures import TIGHT, comparable, events
from support.implementation import Implementation
from support.tiers import few

from amqpcodec import rabbitmq
from amqpcodec.capture import (
    ByteSource,
    CapturedFrame,
    CaptureError,
    Data,
    Fault,
    Gap,
    Packet,
    Segment,
    read_frames,
    read_raw_frames,
)
from amqpcodec.capture.envelopes import FrameReader
from amqpcodec.capture.frames import LIMITS
from amqpcodec.capture.network import SegmentReader

Both = tuple[Implementation, Implementation]

ROOT = Path(__file__).parents[2]
CAPTURES = [
    *sorted((ROOT / "examples").glob("*.pcap")),
    *sorted((ROOT.parent / "shared/captures").glob("*.pcap")),
]
SEEDS = range(int(os.environ.get("AMQPCODEC_CHAOS_SEEDS", "10")))


@pytest.fixture(scope="module")
def build() -> None:
    """Both builds take part in each test, which names them."""


def _assert_same(both: Both, octets: bytes, **options: Any) -> list[Any]:
    compiled, pure = (events(impl, octets, **options) for impl in both)
    for index, (one, other) in enumerate(zip(compiled, pure, strict=False)):
        assert one == other, index
    assert len(compiled) == len(pure)
    return pure


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_recorded_captures(both: Both, path: Path) -> None:
    for options in TIGHT:
        assert _assert_same(both, path.read_bytes(), **options)


@pytest.mark.parametrize("seed", few(SEEDS, 5, "further seeds"))
def test_captures_in_which_everything_happens(both: Both, seed: int) -> None:
    octets = chaos.capture(seed)
    for options in TIGHT:
        _assert_same(both, octets, **options)


def test_everything_does_happen(both: Both) -> None:
    kinds: set[Any] = set()
    for seed in range(40):
        for event in events(both[1], chaos.capture(seed)):
            kinds.add(event[0] if event[0] is not Fault else event[2].rpartition(": ")[2])
    assert {Data, Gap} <= kinds
    assert len(kinds) >= 12


@settings(max_examples=share(30))
@given(data=st.data())
def test_damaged_captures(both: Both, data: st.DataObject) -> None:
    octets = bytearray(chaos.capture(data.draw(st.integers(0, 30)), 60))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 40))
    if cut:
        position = data.draw(st.integers(0, len(octets)))
        del octets[position : position + cut]
    _assert_same(both, bytes(octets), **data.draw(st.sampled_from(TIGHT)))


@pytest.mark.parametrize("form", [make.pcap, make.pcapng])
def test_a_record_larger_than_any_buffer(both: Both, form: Any) -> None:
    big = make.Recorded(make.START_NS, bytes(3_000_000))
    truth = make.conversations(1, count=2, bursts=4)
    found = _assert_same(both, form([*truth.packets[:20], big, *truth.packets[20:]]))
    assert sum(event[0] is Data for event in found) > 20


class Trickle(io.RawIOBase):
    """A pipe: returns a few bytes at a time, whatever size is requested."""

    def __init__(self, octets: bytes, seed: int, most: int = 400) -> None:
        self._octets = io.BytesIO(octets)
        self._rng = random.Random(seed)
        self._most = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        octets = self._octets.read(min(len(buffer), self._rng.randrange(self._most) + 1))
        buffer[: len(octets)] = octets
        return len(octets)


@pytest.mark.parametrize("seed", range(6))
def test_a_pipe_that_gives_a_few_octets_at_a_time(impl: Implementation, seed: int) -> None:
    octets = chaos.capture(seed)
    source = ByteSource(Trickle(octets, seed))  # type: ignore[arg-type]
    found = impl.capture("events").read_events(source, impl.capture("streams").StreamTracker())
    assert list(comparable(found)) == events(impl, octets)


@pytest.mark.parametrize("library", ["gzip", "zstandard"])
def test_a_pipe_that_gives_one_octet_at_a_time_may_be_compressed(impl: Implementation, library: str) -> None:
    compress = pytest.importorskip(library).compress
    octets = make.pcap(make.conversations(5, count=1, bursts=3).packets)
    source = ByteSource(Trickle(compress(octets), 0, most=1))  # type: ignore[arg-type]
    found = impl.capture("events").read_events(source, impl.capture("streams").StreamTracker())
    assert list(comparable(found)) == events(impl, octets)


@pytest.mark.parametrize("form", [make.pcap, make.pcapng])
def test_what_was_found_is_given_out_before_more_is_waited_for(impl: Implementation, form: Any) -> None:
    packets = make.conversations(6, count=1, bursts=6).packets
    half = form(packets[: len(packets) // 2])
    rest = form(packets)[len(half) :]
    if form is make.pcapng:
        half += make.block(5, bytes(12))  # statistics
    given: list[int] = []
    seen: list[Any] = []

    class Live(io.RawIOBase):
        chunks = iter((half, rest))

        def readinto(self, buffer: Any) -> int:
            given.append(len(seen))
            chunk = next(self.chunks, b"")
            buffer[: len(chunk)] = chunk
            return len(chunk)

    source = ByteSource(Live())  # type: ignore[arg-type]
    for event in impl.capture("events").read_events(source, impl.capture("streams").StreamTracker()):
        seen.append(event)
    first = len(events(impl, half)) - 2  # without those that close open connections
    assert given[:3] == [0, first, len(seen)]


def test_an_interrupt_is_not_kept_back(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    packets = make.conversations(7, count=1, bursts=2).packets
    packets[-1].octets = packets[-1].octets[:40]

    def interrupted(reader: object, packet: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SegmentReader, "segment", interrupted)
    source, tracker = ByteSource(io.BytesIO(make.pcap(packets))), both[0].capture("streams").StreamTracker()
    found = both[0].capture("events").read_events(source, tracker)
    with pytest.raises(KeyboardInterrupt):
        next(found)


def test_an_error_of_the_file_comes_behind_the_events_before_it(impl: Implementation) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(size) or self.fail()

        def readinto1(self, buffer: Any) -> int:
            return super().readinto(buffer) or len(self.fail())

        def fail(self) -> bytes:
            raise OSError(5, "Input/output error")

    truth = make.conversations(2, count=2, bursts=4)
    source = ByteSource(Failing(make.pcap(truth.packets)))
    found = impl.capture("events").read_events(source, impl.capture("streams").StreamTracker())
    seen: list[Any] = []
    with pytest.raises(OSError, match="Input/output error"):
        seen.extend(found)
    assert sum(isinstance(event, Data) for event in seen) > 20


def fast_path(impl: Implementation, octets: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Data]:
    """The data of packets that did not take the slow path."""
    slow = set()
    segment = SegmentReader.segment

    def noted(reader: SegmentReader, packet: Packet) -> Segment | None:
        slow.add(packet.number)
        return segment(reader, packet)

    monkeypatch.setattr(SegmentReader, "segment", noted)
    found = list(
        impl.capture("events").read_events(
            ByteSource(io.BytesIO(octets)), impl.capture("streams").StreamTracker()
        )
    )
    monkeypatch.undo()
    return [event for event in found if isinstance(event, Data) and event.packet not in slow]


def test_most_packets_take_the_fast_path(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = make.conversations(3)
    fast = fast_path(both[0], make.pcap(truth.packets), monkeypatch)
    sent = sum(packet.end - packet.begin for packet in truth.packets)
    assert sum(len(event.octets) for event in fast) > 0.95 * sent
    assert len(fast) > 100
    assert not fast_path(both[1], make.pcap(truth.packets), monkeypatch)


def test_ordinary_segments_of_unusual_layers_take_the_fast_path(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast: Counter[int] = Counter()
    for seed in range(60):
        linktype, packets = chaos.packets(seed, 100)
        fast[linktype] += len(fast_path(both[0], make.pcap(packets, linktype=linktype), monkeypatch))
    assert len(fast) == 6
    assert min(fast.values()) > 5


def test_octets_of_events_are_objects_of_their_own(both: Both) -> None:
    """Nothing refers to the buffer that they were read into."""
    truth = make.conversations(4, count=1, bursts=3)
    for impl in both:
        for event in events(impl, make.pcap(truth.packets)):
            assert event[0] is not Data or type(event[4]) is bytes


def _frames(impl: Implementation, octets: bytes, stream: bool = False) -> list[Any]:
    """The frames and faults of a capture or stream, where frames are followed by the state of a build."""
    with pytest.MonkeyPatch.context() as patch:
        state = impl.capture("direction_state").DirectionState
        patch.setattr("amqpcodec.capture.frames.DirectionState", state)
        file = io.BytesIO(octets)
        try:
            return list(comparable(read_raw_frames(file) if stream else read_frames(file, port=None)))
        except CaptureError as error:
            return [str(error)]


def _assert_same_frames(both: Both, octets: bytes, stream: bool = False) -> set[Any]:
    """Both builds, and one without its fast path, find the same."""
    compiled, pure = (_frames(impl, octets, stream) for impl in both)
    with pytest.MonkeyPatch.context() as patch:
        state = both[1].capture("direction_state").DirectionState
        patch.setattr(state, "frames", lambda *_: ())
        slow = _frames(both[1], octets, stream)
    for index, (one, other, each) in enumerate(zip(compiled, pure, slow, strict=False)):
        assert one == other == each, index
    assert len(compiled) == len(pure) == len(slow)
    return {item[0] for item in pure}


def _damaged(rng: random.Random, octets: bytes, places: int) -> bytes:
    """Octets with a bit changed in some places, and some cut out."""
    damaged = bytearray(octets)
    for place in rng.sample(range(24, len(octets)), places):
        damaged[place] ^= 1 << rng.randrange(8)
    cut = rng.randrange(len(octets))
    del damaged[cut : cut + rng.randrange(20)]
    return bytes(damaged)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_frames_are_those_of_the_decoder_of_a_direction(both: Both, path: Path) -> None:
    octets, rng = path.read_bytes(), random.Random(path.stem)
    _assert_same_frames(both, octets)
    items = [item for item in read_frames(path, port=None) if isinstance(item, CapturedFrame)]
    for direction in (0, 1):
        stream = b"".join(item.octets for item in items if item.direction == direction)
        for places in (0, 1, 5, 20) if len(stream) > 50 else ():
            assert CapturedFrame in _assert_same_frames(both, _damaged(rng, stream, places), stream=True)
    for _ in range(4):
        _assert_same_frames(both, _damaged(rng, octets, 3))


def test_frames_are_the_same_where_everything_happens(both: Both) -> None:
    kinds = set().union(*(_assert_same_frames(both, chaos.capture(seed)) for seed in range(8)))
    assert {CapturedFrame, Fault} <= kinds


@pytest.mark.parametrize("build", [0, 1], ids=["compiled", "pure"])
def test_a_state_takes_common_frames_and_leaves_the_others(both: Both, build: int) -> None:
    common = [rabbitmq.encode_method(1, rabbitmq.Tx.Select()), rabbitmq.encode_body(1, b"x")]
    left = [
        rabbitmq.encode_method(0, rabbitmq.Connection.TuneOk()),  # it negotiates
        rabbitmq.encode_method(1, rabbitmq.Tx.Select())[:-1],
        b"\x01\x00\x01\x00\x00\x00\x04\x00\x5a\x03\xe7\xce",  # a method that nobody knows
        rabbitmq.DIALECT.protocol_header,
        b"\x09" * 20,
    ]
    reader = FrameReader(rabbitmq, None, LIMITS, payloads=True)
    for rest in left:
        state = both[build].capture("direction_state").DirectionState()
        state.append(b"".join(common) + rest, 7, 11)
        assert not state.frames(reader, None, 0)  # a frame is searched for
        state.following = True
        found = state.frames(reader, None, 1)
        assert [item.octets for item in found] == common
        assert [(item.offset, item.packet, item.time_ns, item.direction) for item in found] == [
            (0, 7, 11, 1), (len(common[0]), 7, 11, 1),
        ]  # fmt: skip
        assert bytes(state.octets) == rest
        assert not state.frames(reader, None, 1)


@pytest.mark.parametrize("build", [0, 1], ids=["compiled", "pure"])
def test_a_frame_is_of_the_latest_packet_that_brought_some_of_it(both: Both, build: int) -> None:
    """Wherever packets cut the octets, and whichever of them was recorded first."""
    frames = [rabbitmq.encode_body(1, bytes(size)) for size in (0, 1, 5, 30, 2, 0, 9)]
    octets, reader = b"".join(frames), FrameReader(rabbitmq, None, LIMITS, payloads=True)
    for seed in range(60):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(1, len(octets)), rng.randrange(12)))
        packets = rng.sample(range(1, 99), len(cuts) + 1)
        parts = list(zip([0, *cuts], [*cuts, len(octets)], packets, strict=True))
        state = both[build].capture("direction_state").DirectionState()
        state.following = True
        for start, end, packet in parts:
            state.append(octets[start:end], packet, 10 * packet)
        found = state.frames(reader, None, 0)
        assert [item.octets for item in found] == frames
        for item in found:
            start, end = item.offset, item.offset + len(item.octets)
            latest = max(packet for first, last, packet in parts if first < end and last > start)
            assert (item.packet, item.time_ns) == (latest, 10 * latest)
