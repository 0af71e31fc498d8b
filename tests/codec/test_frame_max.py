"""The limit of frames, which decoders and encoders carry, and which tuning changes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from amqpcodec import DecodeError, EncodeError, Limits

DECODERS = ("FrameDecoder", "MessageDecoder")


def large(codec: ModuleType, size: int = 5000) -> bytes:
    """A frame of so many octets and a little more."""
    octets: bytes = codec.encode_method(0, codec.Connection.Secure(bytes(size)))
    return octets


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_says_its_limit(codec: ModuleType, name: str) -> None:
    decoder = getattr(codec, name)
    assert decoder().frame_max == 131072
    assert decoder(frame_max=0).frame_max == 0
    assert decoder(frame_max=4096).frame_max == 4096


@pytest.mark.parametrize("name", DECODERS)
def test_frames_behind_tune_ok_are_judged_by_the_new_limit(codec: ModuleType, name: str) -> None:
    tune_ok = codec.encode_method(0, codec.Connection.TuneOk(frame_max=4096))
    opened = large(codec)
    for before, after, good in ((131072, 4096, False), (4096, 131072, True), (4096, 0, True)):
        decoder = getattr(codec, name)(frame_max=before)
        values = iter(decoder.feed(tune_ok + opened))
        next(values)
        decoder.frame_max = after
        assert decoder.frame_max == after
        if good:
            assert len(next(values).payload.challenge) == 5000
            continue
        with pytest.raises(DecodeError, match=f"frame of {len(opened)} octets, frame_max 4096") as caught:
            next(values)
        assert (caught.value.reply_code, caught.value.offset) == (501, len(tune_ok) + 3)


@pytest.mark.parametrize("cut", [3, 7, 4000])
def test_a_frame_that_has_begun_to_come_is_judged_by_the_new_limit(codec: ModuleType, cut: int) -> None:
    octets = large(codec)
    decoder = codec.FrameDecoder()
    assert list(decoder.feed(octets[:cut])) == []
    decoder.frame_max = 4096
    with pytest.raises(DecodeError, match="frame_max 4096"):
        list(decoder.feed(octets[cut:]))


@pytest.mark.parametrize("cut", [7, 8, 4000])
def test_a_frame_that_is_too_large_now_is_refused_before_it_is_whole(codec: ModuleType, cut: int) -> None:
    octets = large(codec)
    decoder = codec.FrameDecoder()
    assert list(decoder.feed(octets[:cut])) == []
    decoder.frame_max = 4096
    with pytest.raises(DecodeError, match="frame_max 4096") as caught:
        list(decoder.feed(octets[cut : cut + 1]))
    assert (caught.value.reply_code, caught.value.offset) == (501, 3)


@pytest.mark.parametrize("cut", [1, 6, 7, 8, 4000])
def test_a_limit_set_amid_a_frame_loses_no_octet(codec: ModuleType, cut: int) -> None:
    octets = large(codec)
    [expected] = codec.FrameDecoder().feed(octets)
    decoder = codec.FrameDecoder()
    assert list(decoder.feed(octets[:cut])) == []
    decoder.frame_max = 16384
    assert list(decoder) == []
    assert decoder.pending == cut
    frames = [frame for at in range(cut, len(octets)) for frame in decoder.feed(octets[at : at + 1])]
    assert frames == [expected]
    assert decoder.pending == 0


def test_slack_and_limits_go_on_to_count(codec: ModuleType) -> None:
    octets = large(codec)
    decoder = codec.FrameDecoder(frame_max=0, frame_max_slack=8, limits=Limits(frame_size=len(octets) - 8))
    decoder.frame_max = len(octets) - 8
    assert len(list(decoder.feed(octets))) == 1
    decoder.frame_max = 0  # no limit but that of `limits`
    assert len(list(decoder.feed(octets))) == 1
    decoder.frame_max = len(octets) - 9
    with pytest.raises(DecodeError, match="frame_max"):
        list(decoder.feed(octets))


@pytest.mark.parametrize("wrong", [8, -1, "4096", None, 4096.0])
def test_a_wrong_limit_is_refused_and_changes_nothing(codec: ModuleType, wrong: Any) -> None:
    for holder in (codec.FrameDecoder(frame_max=5000), codec.Encoder(frame_max=5000)):
        if wrong is None and isinstance(holder, codec.Encoder):
            continue
        with pytest.raises(ValueError, match="frame_max must be 0 or more than 8"):
            holder.frame_max = wrong
        assert holder.frame_max == 5000


def test_a_decoder_made_without_its_constructor_has_no_limit_to_set(amqp: ModuleType) -> None:
    with pytest.raises(AttributeError):
        amqp.FrameDecoder.__new__(amqp.FrameDecoder).frame_max = 4096


def test_reset_keeps_the_limit(codec: ModuleType) -> None:
    decoder = codec.FrameDecoder()
    decoder.frame_max = 4096
    decoder.reset()
    assert decoder.frame_max == 4096
    with pytest.raises(DecodeError, match="frame_max 4096"):
        list(decoder.feed(large(codec)))


def test_an_encoder_cuts_and_refuses_by_its_limit(codec: ModuleType) -> None:
    encoder = codec.Encoder(frame_max=4096)
    body = bytes(10000)
    publish = codec.Basic.Publish()
    whole = codec.encode_message(1, publish, None, body, frame_max=4096)
    assert encoder.encode_message(1, publish, None, body) == whole
    assert b"".join(encoder.encode_message_parts(1, publish, None, body)) == whole
    (message,) = codec.MessageDecoder().feed(whole)
    assert encoder.encode(message) == whole
    (frame,) = codec.FrameDecoder().feed(large(codec))
    for encode in (
        lambda: encoder.encode_method(0, frame.payload),
        lambda: encoder.encode_frame(frame),
        lambda: encoder.encode(frame),
        lambda: encoder.encode_body(1, body),
        lambda: encoder.encode_header(1, codec.BasicProperties(headers={"k": "v" * 5000}), 0),
    ):
        with pytest.raises(EncodeError, match="frame_max 4096"):
            encode()
    assert encoder.encode_frame(frame, frame_max=0) == codec.encode_frame(frame)


def test_the_limit_of_an_encoder_can_be_set(codec: ModuleType) -> None:
    encoder = codec.Encoder()
    assert encoder.frame_max is None
    body = bytes(200_000)
    assert len(encoder.encode_body(1, body)) == 200_008  # no limit for a single frame
    cut = codec.encode_message(1, codec.Basic.Publish(), None, body, frame_max=131072)
    assert encoder.encode_message(1, codec.Basic.Publish(), None, body) == cut
    encoder.frame_max = 0
    whole = codec.encode_message(1, codec.Basic.Publish(), None, body, frame_max=0)
    assert encoder.encode_message(1, codec.Basic.Publish(), None, body) == whole
    encoder.frame_max = 4096
    with pytest.raises(EncodeError, match="frame_max 4096"):
        encoder.encode_body(1, body)
    encoder.frame_max = None
    assert encoder.encode_message(1, codec.Basic.Publish(), None, body) == cut


@pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder", "Encoder"])
def test_the_limit_cannot_be_deleted(amqp: ModuleType, name: str) -> None:
    codec = getattr(amqp, name)(frame_max=4096)
    with pytest.raises(AttributeError, match=r"^frame_max cannot be deleted$"):
        del codec.frame_max
    assert codec.frame_max == 4096
