"""Frames that nobody looks into are found where those are that are decoded."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable
from typing import Any

import pytest
from support import make_capture as make
from support.tiers import few

from amqpcodec import amqp08, capture, rabbitmq
from amqpcodec.capture import CapturedFrame, Close, Connection, Data, Event
from amqpcodec.capture.frames import ConnectionDecoder, Reading

HEARTBEAT = rabbitmq.encode_heartbeat()


def found(events: Iterable[Event], payloads: bool, dialect: str = "auto") -> list[tuple[Any, ...]]:
    """Place and octets of everything found; a frame with a damaged payload is a frame like any other."""
    decoders: dict[Connection, ConnectionDecoder] = {}
    items = []
    for event in events:
        decoder = decoders.get(event.connection)
        if decoder is None:
            decoder = ConnectionDecoder(event.connection, Reading(dialect, payloads=payloads))
            decoders[event.connection] = decoder
        for item in decoder.feed(event):
            position = item.connection and item.connection.number, item.direction, item.offset, item.packet
            known = isinstance(item, CapturedFrame) or bool(item.octets)
            items.append(
                (*position, item.octets) if known else (*position, item.kind, item.length, item.message)
            )
    return items


def stream(octets: bytes, size: int = 2**30, direction: int = 0) -> list[Event]:
    connection = Connection(0, None, None)
    events: list[Event] = [
        Data(connection, direction, at, octets[at : at + size], at, None)
        for at in range(0, len(octets), size)
    ]
    end, other = len(octets), 1 - direction
    return [*events, Close(connection, direction, end, None, None), Close(connection, other, 0, None, None)]


def both(events: list[Event], dialect: str = "auto") -> list[tuple[Any, ...]]:
    frames = found(events, False, dialect)
    assert frames == found(events, True, dialect)
    return frames


def test_in_whole_captures() -> None:
    packets, _ = make.disturb(make.conversations(4, count=3, bursts=20).packets, 4, reorder=0.1, loss=0.05)
    with capture.ByteSource(io.BytesIO(make.pcapng(packets))) as source:
        segments = capture.read_segments(capture.read_packets(source))
        events = list(capture.read_streams(segments, capture.StreamTracker()))
    assert len(both(events)) > 100  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", few(range(30), 10, "further seeds"))
def test_in_damaged_streams(seed: int) -> None:
    source = random.Random(seed)
    frames = [frame for _ in range(30) for frame in make.publish(source, 1, source.randbytes(300))]
    octets = bytearray(b"".join(frames))
    for _ in range(source.randrange(12)):
        octets[source.randrange(len(octets))] = source.choice((0, 1, 3, 0xCE, source.randrange(256)))
    assert both(stream(bytes(octets), source.choice((1, 50, 5000))))


@pytest.mark.parametrize("header", [rabbitmq.protocol_header(), amqp08.protocol_header(), b"AMQP\0\0\0\0"])
def test_behind_protocol_headers(header: bytes) -> None:
    assert both(stream(header + HEARTBEAT))
    assert both(stream(header + header + HEARTBEAT * 2))
    assert both(stream(HEARTBEAT + header + HEARTBEAT * 2))


@pytest.mark.parametrize("chunk", [1, 2**30])
@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("payloads", [False, True])
def test_only_the_first_octets_of_a_direction_may_be_a_protocol_header(
    payloads: bool, direction: int, chunk: int
) -> None:
    header = rabbitmq.protocol_header()
    start = amqp08.encode_method(0, amqp08.Connection.Start(8, 0, {}, b"PLAIN", b"en"))
    for before in (header, HEARTBEAT * 2, HEARTBEAT + b"lost" + HEARTBEAT * 2, header + start):
        octets = before + header + HEARTBEAT * 2
        items = found(stream(octets, chunk, direction), payloads)
        assert [item[2] for item in items if item[4:] == (header,)] == [0] * before.startswith(header)
        faults = [item[4:] for item in items if item[2] == len(before) and item[-1] != header]
        assert faults == [
            ("error", 0, "frame type 65 is not known"), ("lost", 8, "octets that cannot be decoded"),
        ]  # fmt: skip


def test_the_dialect_is_learned_from_a_method_that_is_not_decoded() -> None:
    start = amqp08.encode_method(0, amqp08.Connection.Start(8, 0, {}, b"PLAIN", b"en"))
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto", payloads=False))
    for event in stream(start + HEARTBEAT):
        list(decoder.feed(event))
    assert decoder.dialect == decoder.connection.dialect == "amqp-0-8"


def test_nothing_is_learned_from_one_that_is_damaged() -> None:
    start = bytearray(amqp08.encode_method(0, amqp08.Connection.Start(8, 0, {}, b"PLAIN", b"en")))
    start[-2] ^= 0xFF
    start[16] = 200  # a table longer than its frame
    decoder = ConnectionDecoder(Connection(0, None, None), Reading("auto", payloads=False))
    for event in stream(HEARTBEAT + bytes(start)):
        list(decoder.feed(event))
    assert decoder.dialect == "rabbitmq-0-9-1"
