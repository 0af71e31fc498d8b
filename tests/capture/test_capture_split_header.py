"""Protocol headers that arrive in chunks."""

from __future__ import annotations

import io

import pytest
from support import make_capture as make

from amqpcodec import ProtocolHeader, amqp08, rabbitmq
from amqpcodec.capture import CapturedFrame, Fault, Item, read_frames

HEADER = amqp08.protocol_header()
# Of a class that the dialect assumed without a header does not have: a wrong guess shows.
REQUEST = amqp08.Access.Request(realm="/data", read=True)
CUTS = range(1, len(HEADER) + 1)


def _talk() -> make.Talk:
    talk = make.Talk(make.Truth(), 0, (0, 0))
    talk.open()
    return talk


def _send_in_chunks(talk: make.Talk, side: int, frames: list[bytes], *sizes: int) -> None:
    """Frames in segments of these sizes, and the rest in a last one."""
    offset, octets = talk.sent[side], b"".join(frames)
    for frame in frames:
        talk.truth.frames.add((talk.number, side, offset, frame))
        offset += len(frame)
    for size in sizes:
        talk.packet(side, make.ACK | make.PSH, octets[:size])
        octets = octets[size:]
    if octets:
        talk.packet(side, make.ACK | make.PSH, octets)


def _items(talk: make.Talk) -> list[Item]:
    return list(read_frames(io.BytesIO(make.pcap(talk.truth.packets))))


def _assert_whole(talk: make.Talk) -> list[CapturedFrame]:
    """Every frame that was sent is there, and no fault."""
    items = _items(talk)
    frames = [item for item in items if isinstance(item, CapturedFrame)]
    assert frames == items
    assert {(0, frame.direction, frame.offset, frame.octets) for frame in frames} == talk.truth.frames
    return frames


@pytest.mark.parametrize("sizes", [*((cut,) for cut in CUTS), (1,) * 8, (1, 2), (3, 3)])
def test_a_client_header_cut_anywhere_decides_the_dialect(sizes: tuple[int, ...]) -> None:
    talk = _talk()
    _send_in_chunks(talk, make.CLIENT, [HEADER, amqp08.encode_method(1, REQUEST)], *sizes)
    header, request = _assert_whole(talk)
    assert header.frame.payload == ProtocolHeader(HEADER)
    assert request.frame.payload == REQUEST
    assert [header.dialect, request.dialect] == ["amqp-0-8", "amqp-0-8"]


@pytest.mark.parametrize("answered_first", [False, True])
@pytest.mark.parametrize("sizes", [*((cut,) for cut in CUTS), (1,) * 8, (1, 2), (3, 3)])
def test_a_server_header_of_another_version_cut_anywhere_is_a_frame(
    sizes: tuple[int, ...], answered_first: bool
) -> None:
    """Also where the recording has the answer before the question."""
    talk = _talk()
    if not answered_first:
        talk.send(make.CLIENT, rabbitmq.protocol_header())
    _send_in_chunks(talk, make.SERVER, [HEADER], *sizes)
    if answered_first:
        talk.send(make.CLIENT, rabbitmq.protocol_header())
    talk.close()
    [answer] = [frame for frame in _assert_whole(talk) if frame.direction == make.SERVER]
    assert answer.frame.payload == ProtocolHeader(HEADER)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_server_that_answers_with_a_frame_in_chunks_is_followed(cut: int) -> None:
    talk = _talk()
    talk.send(make.CLIENT, HEADER)
    start = amqp08.Connection.Start(8, 0, {}, b"PLAIN", b"en_US")
    _send_in_chunks(talk, make.SERVER, [amqp08.encode_method(0, start)], cut)
    assert _assert_whole(talk)[-1].frame.payload == start


@pytest.mark.parametrize("side", [make.CLIENT, make.SERVER])
@pytest.mark.parametrize("cut", range(1, 8))
def test_a_header_that_is_never_completed_is_reported_as_lost(cut: int, side: int) -> None:
    talk = _talk()
    if side == make.SERVER:
        talk.send(make.CLIENT, rabbitmq.protocol_header())
    talk.packet(side, make.ACK | make.PSH, HEADER[:cut])
    talk.close()
    faults = [item for item in _items(talk) if isinstance(item, Fault)]
    assert [(fault.kind, fault.offset, fault.length) for fault in faults] == [("lost", 0, cut)]


def test_a_recording_that_begins_inside_a_body_with_the_header_s_letter_finds_the_next_frame() -> None:
    talk = _talk()
    frames = [rabbitmq.encode_method(1, rabbitmq.Channel.Open())] * 2
    for octets in (b"A", b"MX", b"\xce" + b"".join(frames)):
        talk.packet(make.CLIENT, make.ACK | make.PSH, octets)
    fault, *found = sorted(_items(talk), key=lambda item: item.offset)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.offset, fault.length) == ("lost", 0, 4)
    assert [item.octets for item in found] == frames
