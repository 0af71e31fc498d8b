"""Frames whose payloads stay octets, and decoders that begin in the middle of a stream."""

from __future__ import annotations

import random
import struct
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe

from amqpcodec import DecodeError, EncodeError, Limits
from amqpcodec._kernel.framing import MORE, WHOLE, frame_at

SEED = 20


def stream_of(amqp: ModuleType) -> bytes:
    """Frames of every kind, the protocol header first."""
    properties = amqp.BasicProperties(content_type="text/plain", headers={"key": [1, "text"]})
    return bytes(
        amqp.protocol_header()
        + amqp.encode_method(1, amqp.Queue.Declare(queue="a queue", arguments={"x-max-length": 5}))
        + amqp.encode_message(2, amqp.Basic.Publish("exchange", "key"), properties, b"the body \xce of it")
        + amqp.encode_heartbeat()
    )


def envelope(frame_type: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", frame_type, channel, len(payload)) + payload + b"\xce"


def outcome(decoder: Any, *chunks: bytes) -> tuple[list[Any], Any]:
    """The frames of some chunks, and what ended them."""
    frames = []
    try:
        for chunk in chunks:
            for frame in decoder.feed(chunk):
                frames.append((frame.type, frame.channel, frame.payload))
    except DecodeError as error:
        return frames, (error.message, error.offset, error.reply_code, error.fatal, decoder.offset)
    return frames, (decoder.offset, decoder.pending)


def cut(octets: bytes, amqp: ModuleType, limit: int = 131064) -> tuple[list[Any], bool]:
    """The same frames by `frame_at` alone, and whether what follows them cannot be a frame."""
    frames, at = [], 0
    while True:
        status, size = frame_at(octets, at, len(octets), amqp.DIALECT.frame_mask, limit, opens=at == 0)
        if status != WHOLE:
            return frames, status != MORE
        kind, channel = struct.unpack_from(">BH", octets, at)
        if kind == 65:
            frames.append((65, 0, octets[at : at + 8]))
        else:
            frames.append((kind, channel, octets[at + 7 : at + size - 1]))
        at += size


def test_every_payload_stays_the_octets_that_came(amqp: ModuleType) -> None:
    octets = stream_of(amqp)
    frames, end = outcome(amqp.FrameDecoder(payloads="raw"), octets)
    assert [frame[0] for frame in frames] == [65, 1, 1, 2, 3, 8]
    assert end == (len(octets), 0)
    assert all(type(payload) is bytes for _, _, payload in frames)
    assert (frames, False) == cut(octets, amqp)


def test_encoding_raw_frames_gives_the_stream_back(amqp: ModuleType) -> None:
    octets = stream_of(amqp) + envelope(8, 7, b"?") + envelope(3, 0, b"") + envelope(1, 65535, b"\xff" * 40)
    frames = list(amqp.FrameDecoder(payloads="raw").feed(octets))
    assert b"".join(map(amqp.encode_frame, frames)) == octets
    assert b"".join(map(amqp.encode, frames)) == octets


def test_a_subclass_of_bytes_goes_out_as_the_octets_it_holds(impl: Implementation) -> None:
    class Octets(bytes):
        def __len__(self) -> int:
            return 2

    amqp = impl.dialect("rabbitmq-0-9-1")
    for frame_type in (1, 2, 3, 8):
        frame = impl.records.Frame(frame_type, 1, Octets(b"octets"))
        assert amqp.encode_frame(frame) == envelope(frame_type, 1, b"octets")
        with pytest.raises(EncodeError, match="frame of 14 octets, frame_max 13"):
            amqp.encode_frame(frame, frame_max=13)
    with pytest.raises(EncodeError, match="a frame of type 4 does not carry Octets"):
        amqp.encode_frame(impl.records.Frame(4, 1, Octets(b"octets")))


def test_out_of_band_frames_stay_octets_too(impl: Implementation) -> None:
    amqp = impl.dialect("amqp-0-8")
    octets = b"".join(envelope(frame_type, 3, b"octets") for frame_type in (4, 5, 6, 7))
    frames = list(amqp.FrameDecoder(payloads="raw").feed(octets))
    assert [(frame.type, frame.payload) for frame in frames] == [(n, b"octets") for n in (4, 5, 6, 7)]
    assert b"".join(map(amqp.encode_frame, frames)) == octets


def test_what_is_wrong_inside_a_payload_is_not_looked_for(amqp: ModuleType) -> None:
    bad = [
        envelope(1, 0, b"\0\x3c"), envelope(1, 1, b"\xff\xff\xff\xff"), envelope(2, 0, b""),
        envelope(3, 0, b"body"), envelope(8, 9, b"beat"),
    ]  # fmt: skip
    for strict in (False, True):
        frames, end = outcome(amqp.FrameDecoder(payloads="raw", strict=strict), b"".join(bad))
        assert [payload for _, _, payload in frames] == [octets[7:-1] for octets in bad]
        assert end == (sum(map(len, bad)), 0)


def test_a_protocol_header_may_be_of_any_version_but_no_other_octets(amqp: ModuleType) -> None:
    header = b"AMQP\x07\x07\x07\x07"
    decoder = amqp.FrameDecoder(payloads="raw")
    assert outcome(decoder, header)[0] == [(65, 0, header)]
    with pytest.raises(DecodeError, match=r"protocol header b'AMOK1234' is not of"):
        list(amqp.FrameDecoder(payloads="raw").feed(b"AMOK1234"))
    with pytest.raises(DecodeError, match="frame type 65 is not known"):
        list(decoder.feed(header))


@pytest.mark.parametrize("payloads", ["raw", "decoded"])
def test_every_truncation_gives_the_whole_frames_and_keeps_the_rest(amqp: ModuleType, payloads: str) -> None:
    octets = stream_of(amqp)
    every = outcome(amqp.FrameDecoder(payloads=payloads), octets)[0]
    for size in range(len(octets) + 1):
        whole, damaged = cut(octets[:size], amqp)
        for chunks in ((octets[:size],), tuple(octets[at : at + 1] for at in range(size))):
            decoder = amqp.FrameDecoder(payloads=payloads)
            frames, (offset, pending) = outcome(decoder, *chunks)
            assert frames == every[: len(whole)]
            assert offset + pending == size
            assert not damaged


def test_flipped_bits_are_framed_as_the_framing_layer_frames_them(amqp: ModuleType) -> None:
    rng = random.Random(SEED)
    octets = stream_of(amqp)
    for _ in range(400):
        damaged = bytearray(octets[rng.choice((0, 8)) :])
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(8, len(damaged))] ^= 1 << rng.randrange(8)
        whole, refused = cut(bytes(damaged), amqp)
        at = rng.randrange(len(damaged))
        for chunks in ((bytes(damaged),), (bytes(damaged[:at]), bytes(damaged[at:]))):
            frames, end = outcome(amqp.FrameDecoder(payloads="raw"), *chunks)
            assert frames == whole
            assert (len(end) == 5) == refused
            assert not refused or (end[2], end[3]) == (501, True)


@pytest.mark.parametrize("size", [0, 1, 91, 92, 93, 2**32 - 1])
def test_a_raw_frame_over_the_limit_is_refused_before_its_payload_comes(amqp: ModuleType, size: int) -> None:
    for options in ({"frame_max": 100}, {"frame_max": 0, "limits": Limits(frame_size=100)}):
        decoder = amqp.FrameDecoder(payloads="raw", **options)
        octets = struct.pack(">BHI", 1, 1, size)
        if size <= 92:
            assert outcome(decoder, octets + bytes(size) + b"\xce")[0] == [(1, 1, bytes(size))]
            continue
        name = "frame_size" if "limits" in options else "frame_max"
        expected = (f"frame of {size + 8} octets, {name} 100", 3, 501, True, 0)
        assert outcome(decoder, octets) == ([], expected)


def test_the_buffer_lent_may_be_used_again_since_payloads_are_copies(amqp: ModuleType) -> None:
    octets = stream_of(amqp)
    decoder = amqp.FrameDecoder(payloads="raw")
    decoder.get_buffer(1)[: len(octets)] = octets
    frames = list(decoder.buffer_updated(len(octets)))
    decoder.get_buffer(1)[:] = bytes(65536)
    assert b"".join(map(amqp.encode_frame, frames)) == octets


@pytest.mark.parametrize("payloads", ["raw", "decoded"])
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_in_the_middle_of_a_stream_a_protocol_header_is_no_frame(
    amqp: ModuleType, kind: str, payloads: str
) -> None:
    options = {"payloads": payloads} if kind == "FrameDecoder" else {}
    decoder = getattr(amqp, kind)(expect_header=False, **options)
    for _ in range(2):
        for chunks in ((b"AMQP\0\0\x09\x01",), (b"AMQ", b"P\0\0\x09\x01")):
            with pytest.raises(DecodeError, match="frame type 65 is not known") as caught:
                [list(decoder.feed(chunk)) for chunk in chunks]
            assert (caught.value.offset, caught.value.fatal) == (0, True)
            decoder.reset()


def test_in_the_middle_of_a_stream_frames_are_as_ever(amqp: ModuleType) -> None:
    octets = stream_of(amqp)[8:]
    expected = [describe(frame) for frame in amqp.FrameDecoder().feed(octets)]
    assert [describe(frame) for frame in amqp.FrameDecoder(expect_header=False).feed(octets)] == expected


@pytest.mark.parametrize("payloads", ["", "bytes", None, b"raw", True])
def test_another_name_for_payloads_is_refused(amqp: ModuleType, payloads: Any) -> None:
    with pytest.raises(ValueError, match='payloads must be "decoded" or "raw"'):
        amqp.FrameDecoder(payloads=payloads)


def test_octets_are_refused_in_frames_that_no_decoder_returns(amqp: ModuleType) -> None:
    for frame_type in (0, 9, 32, 66, -1, "1", None, 1.0, []):
        with pytest.raises(EncodeError, match=r"a frame of type .* does not carry bytes"):
            amqp.encode_frame(frame_of(amqp, frame_type, 1, b"octets"))
    for octets in (b"AMQP", b"XXXXXXXX", b"amqp\0\0\x09\x01"):
        with pytest.raises(EncodeError, match=r"a protocol header must be 8 octets .* begin with AMQP"):
            amqp.encode_frame(frame_of(amqp, 65, 0, octets))
    for frame_type in (1.0, 2.0, 3.0, 8.0, 65.0):
        with pytest.raises(EncodeError, match=r"a frame of type .*\.0 does not carry bytes"):
            amqp.encode_frame(frame_of(amqp, frame_type, 0, b"AMQP\0\0\x09\x01"))
    with pytest.raises(EncodeError, match="belongs on channel 0"):
        amqp.encode_frame(frame_of(amqp, 65, 1, b"AMQP\0\0\x09\x01"))
    with pytest.raises(EncodeError, match="frame of 108 octets, frame_max 107"):
        amqp.encode_frame(frame_of(amqp, 1, 1, bytes(100)), frame_max=107)


def frame_of(amqp: ModuleType, frame_type: Any, channel: int, payload: bytes) -> Any:
    """A frame of the build."""
    made = next(amqp.FrameDecoder().feed(amqp.encode_heartbeat()))
    return type(made)(frame_type, channel, payload)
