"""Frames of whole captures against the truth: disturbed, cut, damaged, foreign."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterable
from typing import Any

import pytest
from support import make_capture as make
from support.campaign import in_full

from amqpcodec import amqp08, rabbitmq
from amqpcodec.capture import (
    CapturedFrame,
    Connection,
    Data,
    Fault,
    Item,
    read_frames,
    read_items,
    read_raw_frames,
)
from amqpcodec.capture.direction import DirectionDecoder
from amqpcodec.capture.frames import CHUNK_BYTES

Found = set[tuple[int, int, int, bytes]]


def items(packets: Iterable[make.Recorded], form=make.pcap, **options) -> list[Item]:  # type: ignore[no-untyped-def]
    return list(read_frames(io.BytesIO(form(packets)), **options))


def found(items: Iterable[Item]) -> Found:
    return {
        (item.connection.number, item.direction, item.offset, item.octets)
        for item in items
        if isinstance(item, CapturedFrame)
    }


def faults(items: Iterable[Item], kind: str | None = None) -> list[Fault]:
    return [item for item in items if isinstance(item, Fault) and kind in (None, item.kind)]


@pytest.mark.parametrize("form", [make.pcap, make.pcapng])
def test_an_orderly_capture_gives_every_frame_and_no_fault(form) -> None:  # type: ignore[no-untyped-def]
    truth = make.conversations(1)
    result = items(truth.packets, form)
    assert found(result) == truth.frames
    assert not faults(result)


@pytest.mark.parametrize("seed", range(4))
def test_reordering_and_duplication_lose_nothing(seed: int) -> None:
    truth = make.conversations(seed)
    packets, _ = make.disturb(truth.packets, seed, reorder=0.1, duplicate=0.1)
    result = items(packets)
    assert found(result) == truth.frames
    assert not faults(result)


@pytest.mark.parametrize("seed", range(4))
def test_loss_costs_only_the_frames_it_touches(seed: int) -> None:
    truth = make.conversations(seed, bursts=60)
    packets, lost = make.disturb(truth.packets, seed, reorder=0.02, duplicate=0.02, loss=0.02)
    result = items(packets)
    untouched = truth.untouched(lost)
    assert len(lost) > 5
    assert found(result) <= truth.frames
    assert len(found(result) & untouched) >= 0.99 * len(untouched)
    holes = {
        (fault.connection.number, fault.direction, fault.offset, fault.length)
        for fault in faults(result, "gap")
    }
    assert sum(length for *_, length in holes) == sum(packet.end - packet.begin for packet in lost)


@pytest.mark.parametrize("seed", range(4))
def test_every_lost_octet_is_reported_with_its_offset(seed: int) -> None:
    truth = make.conversations(seed, bursts=60)
    packets, _ = make.disturb(truth.packets, seed, loss=0.03)
    accounted: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for item in items(packets):
        length = len(item.octets) if isinstance(item, CapturedFrame) else item.length
        accounted.setdefault((item.connection.number, item.direction), []).append((item.offset, length))
    for stretches in accounted.values():
        end = 0
        for offset, length in sorted(stretches):
            assert offset == end
            end += length


@pytest.mark.parametrize("seed", range(4))
def test_a_capture_that_begins_inside_frames_misses_only_those(seed: int) -> None:
    truth = make.conversations(seed, count=6, bursts=60)
    start = len(truth.packets) // 3
    lost = [packet for packet in truth.packets[:start] if packet.end > packet.begin]
    result = items(truth.packets[start:])
    untouched = {frame[3] for frame in truth.untouched(lost)}
    got = {frame[3] for frame in found(result)}
    assert len(got & untouched) >= 0.999 * len(untouched)
    assert all("begins inside a frame" in fault.message for fault in faults(result))


def test_snapped_packets_give_the_frames_that_are_whole() -> None:
    truth = make.conversations(2)
    result = list(read_frames(io.BytesIO(make.pcap(truth.packets, snap=300))))
    assert found(result) <= truth.frames
    assert len(found(result)) > 0.3 * len(truth.frames)
    assert faults(result, "gap")


def test_the_packet_that_completed_a_frame_is_the_last_one_to_bring_a_part_of_it() -> None:
    truth = make.Truth()
    talk = make.Talk(truth, 0, (0, 0), mss=100)
    talk.open()
    make.open_channel(talk)
    before = len(truth.packets)
    talk.send(make.CLIENT, rabbitmq.encode_body(1, bytes(242)), rabbitmq.encode_body(1, bytes(20)))
    packets = truth.packets
    packets[before], packets[before + 1] = packets[before + 1], packets[before]
    first, second = [item for item in items(packets) if isinstance(item, CapturedFrame)][-2:]
    assert (first.packet, second.packet) == (before + 3, before + 3)
    packets[before + 1], packets[before + 2] = packets[before + 2], packets[before + 1]
    first, second = [item for item in items(packets) if isinstance(item, CapturedFrame)][-2:]
    assert (first.packet, second.packet) == (before + 3, before + 2)
    assert first.time_ns == packets[before + 2].time_ns // 1000 * 1000


def _raw(octets: bytes, **options) -> list[Item]:  # type: ignore[no-untyped-def]
    return list(read_raw_frames(io.BytesIO(octets), **options))


def _publishes(count: int, seed: int = 5) -> list[bytes]:
    rng = random.Random(seed)
    return [frame for _ in range(count) for frame in make.publish(rng, 1, rng.randbytes(rng.randrange(300)))]


def test_a_raw_stream_with_and_without_its_header() -> None:
    frames = _publishes(10)
    for header in (b"", rabbitmq.protocol_header()):
        result = _raw(header + b"".join(frames))
        assert [item.octets for item in result if isinstance(item, CapturedFrame)] == [
            *filter(None, [header]),
            *frames,
        ]
        assert all(item.time_ns is None and item.packet is None for item in result)


@pytest.mark.parametrize("cut", [1, 3, 8, 20, 33])
def test_a_raw_stream_that_begins_inside_a_frame(cut: int) -> None:
    frames = _publishes(10)
    result = _raw(b"".join(frames)[cut:])
    [fault] = faults(result)
    assert fault.kind == "lost"
    assert fault.offset == 0
    assert [item.octets for item in result[1:]] == frames[-len(result) + 1 :]


def test_a_frame_with_bad_fields_is_reported_and_skipped() -> None:
    good = _publishes(2)
    unknown = struct.pack("!BHIHHB", 1, 1, 4, 60, 999, 0xCE)
    cut = struct.pack("!BHIHHHB", 1, 1, 6, 60, 40, 0, 0xCE)
    result = _raw(rabbitmq.protocol_header() + good[0] + unknown + cut + good[1])
    first, second = faults(result)
    assert (first.kind, first.length, first.offset) == ("error", 12, 8 + len(good[0]))
    assert first.octets == unknown
    assert first.message == "no method 999 in class 60"
    assert second.message == "basic.publish.exchange: length of a shortstr needs 1 octets, 0 left"
    assert len(found(result)) == 3


@pytest.mark.parametrize("damaged", ["type", "end"])
def test_behind_a_damaged_frame_reading_continues(damaged: str) -> None:
    frames = _publishes(6)
    bad = bytearray(frames[7])
    bad[0 if damaged == "type" else -1] ^= 0x40
    result = _raw(rabbitmq.protocol_header() + b"".join([*frames[:7], bytes(bad), *frames[8:]]))
    [error, lost] = faults(result)
    assert (error.kind, error.reply_code, lost.kind, lost.length) == ("error", 501, "lost", len(bad))
    assert [item.octets for item in result if isinstance(item, CapturedFrame)][1:] == frames[:7] + frames[8:]


@pytest.mark.parametrize("size", [0, 5, 3000, 100_000, 10_000_000, 2**32 - 1])
def test_a_damaged_size_costs_one_frame(size: int) -> None:
    frames = _publishes(100)
    bad = frames[7][:3] + struct.pack("!I", size) + frames[7][7:]
    if bad == frames[7]:
        pytest.skip("not damaged at all")
    result = _raw(rabbitmq.protocol_header() + b"".join([*frames[:7], bad, *frames[8:]]))
    got = [item.octets for item in result if isinstance(item, CapturedFrame)][1:]
    # A size that could be true and leads behind the end cannot be distinguished from a stream that was cut.
    assert got == frames[:7] + (frames[8:] if size != 100_000 else [])
    assert faults(result, "lost")


def test_frames_inside_a_body_are_not_taken_for_the_stream() -> None:
    """A body that itself is a recorded stream, cut by a gap right before it and right behind it."""
    inner = b"".join(_publishes(30))
    outer = rabbitmq.encode_body(1, inner)
    after = _publishes(3)
    truth = make.Truth()
    talk = make.Talk(truth, 0, (0, 0), mss=700)
    talk.open()
    make.open_channel(talk)
    before = len(truth.packets)
    talk.send(make.CLIENT, outer, *after)
    result = items(truth.packets[: before + 1] + truth.packets[before + 2 :])
    assert found(result) == {frame for frame in truth.frames if frame[3] != outer}


def test_the_dialect_is_taken_from_the_header_and_from_connection_start() -> None:
    start = amqp08.Connection.Start(8, 0, {}, b"PLAIN", b"en_US")
    consume = amqp08.Access.Request(realm="/data", read=True)
    truth = make.Truth()
    talk = make.Talk(truth, 0, (0, 0))
    talk.open()
    talk.send(make.CLIENT, amqp08.protocol_header())
    talk.send(make.SERVER, amqp08.encode_method(0, start))
    talk.send(make.CLIENT, amqp08.encode_method(1, consume))
    for packets in (
        truth.packets,
        [packet for packet in truth.packets if packet.stream[1] != 0 or packet.begin],
    ):
        result = items(packets)
        assert {item.dialect for item in result if isinstance(item, CapturedFrame)} >= {"amqp-0-8"}
        assert [item for item in result if isinstance(item, CapturedFrame)][-1].frame.payload == consume
    asked = items(truth.packets, dialect="qpid-0-8")
    assert {item.dialect for item in asked if isinstance(item, CapturedFrame)} == {"qpid-0-8"}


def test_a_broker_may_answer_with_its_own_header() -> None:
    truth = make.Truth()
    talk = make.Talk(truth, 0, (0, 0))
    talk.open()
    talk.send(make.CLIENT, b"AMQP\0\0\x09\x07")
    talk.send(make.SERVER, rabbitmq.protocol_header())
    talk.close()
    result = items(truth.packets)
    assert found(result) == truth.frames


@pytest.mark.parametrize(
    ("octets", "guess"),
    [(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"), (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
     (b"SSH-2.0-OpenSSH_9.2\r\n", "no protocol header and no frame")],
)  # fmt: skip
def test_a_connection_that_is_not_amqp_gets_one_line(octets: bytes, guess: str) -> None:
    truth = make.Truth()
    talk = make.Talk(truth, 0, (0, 0))
    talk.open()
    talk.send(make.CLIENT, octets)
    talk.send(make.SERVER, random.Random(1).randbytes(3000))
    [fault] = items(truth.packets)
    assert guess in fault.message
    assert (fault.kind, fault.offset, fault.length) == ("lost", 0, len(octets) + 3000)
    assert items(truth.packets, port=None) == []


def test_any_port_finds_amqp_by_its_contents() -> None:
    truth = make.conversations(3, count=2, bursts=6)
    moved = [
        make.Recorded(
            packet.time_ns, packet.octets.replace(struct.pack("!H", 5672), struct.pack("!H", 9999), 1)
        )
        for packet in truth.packets
    ]
    assert items(moved) == []
    assert found(items(moved, port=None)) == truth.frames


def test_a_frame_larger_than_usual_is_read() -> None:
    big = rabbitmq.encode_body(1, bytes(1_000_000))
    after = _publishes(1)
    result = _raw(rabbitmq.protocol_header() + big + b"".join(after))
    assert [item.octets for item in result[1:]] == [big, *after]


def test_hostile_streams_end_in_bounded_time() -> None:
    rng = random.Random(9)
    heads = b"".join(struct.pack("!BHI", 3, 1, rng.randrange(131064)) for _ in range(in_full(40_000, 16_000)))
    for octets in (heads, b"\x01" * 120_000, b"\x03\0\x01\0\0" * 24_000, b"\x08\0\0\0\0\0\0\xce" * 8_000):
        for front in (b"", rabbitmq.protocol_header()):
            assert _raw(front + octets)


def test_octets_that_come_at_once_are_not_searched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame that is found again may cost a copy of all that is at hand."""
    given = []
    take = DirectionDecoder.take

    def watched(self: DirectionDecoder, octets: bytes, *position: Any) -> None:
        given.append(len(octets))
        take(self, octets, *position)

    monkeypatch.setattr(DirectionDecoder, "take", watched)
    frames = rabbitmq.encode_heartbeat() * 100_000
    connection = Connection(0, None, None)
    found = list(read_items([Data(connection, 0, 0, frames, 1, 1)], dialect="auto"))
    assert [item.offset for item in found] == list(range(0, len(frames), 8))
    assert max(given) <= CHUNK_BYTES < sum(given) == len(frames)


def test_another_protocol_version_is_named_where_its_octets_are_reported_as_lost() -> None:
    result = _raw(b"AMQP\x03\x01\0\0" + b"\0\0\0\x20\x02\x01\0\0" + bytes(24))
    header, fault = result
    assert isinstance(header, CapturedFrame)
    assert (fault.kind, fault.offset, fault.length) == ("lost", 8, 32)
    assert "AMQP 1.0" in fault.message
