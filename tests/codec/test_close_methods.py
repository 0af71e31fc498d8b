"""What an error says of channel and method, and the method that answers it."""

from __future__ import annotations

import copy
import pickle
import struct
from types import ModuleType
from typing import Any

import pytest
from support.outcomes import error_of

from amqpcodec import DecodeError, Limits

FRAME_END = b"\xce"


def raw(frame_type: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", frame_type, channel, len(payload)) + payload + FRAME_END


def place(error: DecodeError) -> tuple[int, int, int]:
    return error.channel, error.class_id, error.method_id


def decoders(codec: ModuleType) -> list[Any]:
    return [codec.FrameDecoder(), codec.MessageDecoder()]


def spread(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


def test_a_bad_method_is_named_with_its_channel_and_ids(codec: ModuleType) -> None:
    broken = codec.encode_method(513, codec.Basic.Cancel("tag")).replace(b"\x03tag", b"\x09tag")
    for decoder in decoders(codec):
        assert place(error_of(decoder, broken)) == (513, 60, 30)
    for decoder in decoders(codec):
        assert place(error_of(decoder, *spread(broken))) == (513, 60, 30)


def test_an_unknown_method_is_named_by_its_ids(codec: ModuleType) -> None:
    for decoder in decoders(codec):
        error = error_of(decoder, raw(1, 7, b"\x00\x3c\x12\x34"))
        assert (error.reply_code, error.method) == (503, None)
        assert place(error) == (7, 60, 0x1234)


def test_a_method_too_short_for_ids_has_none(codec: ModuleType) -> None:
    for decoder in decoders(codec):
        assert place(error_of(decoder, raw(1, 7, b"\x00\x3c\x12"))) == (7, 0, 0)


def test_a_bad_content_header_is_named_by_its_class(codec: ModuleType) -> None:
    header = codec.encode_header(3, codec.BasicProperties(content_type="text"), 0)
    broken = header.replace(b"\x04text", b"\x09text")
    assert place(error_of(codec.FrameDecoder(), broken)) == (3, 60, 0)
    assert place(error_of(codec.FrameDecoder(), raw(2, 3, struct.pack(">HHQH", 999, 0, 0, 0)))) == (3, 999, 0)
    assert place(error_of(codec.FrameDecoder(), raw(2, 3, b"\x00"))) == (3, 0, 0)


def test_octets_that_are_no_frame_concern_the_connection(codec: ModuleType) -> None:
    before = codec.encode_method(9, codec.Basic.Cancel("tag"))
    for decoder in decoders(codec):
        error = error_of(decoder, before + before[:-1] + b"\x00")
        assert (error.fatal, place(error)) == (True, (0, 0, 0))


def test_a_protocol_header_of_another_version_concerns_the_connection(codec: ModuleType) -> None:
    for decoder in decoders(codec):
        assert place(error_of(decoder, b"AMQP\x07\x07\x07\x07")) == (0, 0, 0)


def test_content_out_of_order_is_named_by_the_method_it_belongs_to(codec: ModuleType) -> None:
    publish = codec.encode_method(5, codec.Basic.Publish())
    header = codec.encode_header(5, codec.BasicProperties(), 3)
    body = codec.encode_body(5, b"four")
    assert place(error_of(codec.MessageDecoder(), publish + body)) == (5, 60, 40)
    assert place(error_of(codec.MessageDecoder(), publish + header + header)) == (5, 60, 40)
    assert place(error_of(codec.MessageDecoder(), publish + header + body)) == (5, 60, 40)
    assert place(error_of(codec.MessageDecoder(), publish + codec.encode_method(5, codec.Basic.Qos()))) == (
        5, 60, 10,
    )  # fmt: skip
    assert place(error_of(codec.MessageDecoder(), header)) == (5, 60, 0)
    assert place(error_of(codec.MessageDecoder(), body)) == (5, 0, 0)


def test_a_soft_error_closes_its_channel(codec: ModuleType) -> None:
    octets = codec.encode_message(5, codec.Basic.Publish(), None, b"four")
    error = error_of(codec.MessageDecoder(limits=Limits(body_size=3)), octets)
    text = "CONTENT_TOO_LARGE - body of 4 octets, limit 3"
    close = error.close_method()
    assert close == codec.Channel.Close(reply_code=311, reply_text=text, class_id=60, method_id=40)
    assert (error.closes, error.channel) == ("channel", 5)


def test_a_hard_error_closes_the_connection(codec: ModuleType) -> None:
    error = error_of(codec.FrameDecoder(), raw(1, 7, b"\x00\x3c\x12\x34"))
    text = "COMMAND_INVALID - no method 4660 in class 60"
    close = codec.Connection.Close(reply_code=503, reply_text=text, class_id=60, method_id=0x1234)
    assert error.close_method() == close
    assert codec.encode_method(0, error.close_method()) == codec.encode_method(0, close)


def test_a_framing_error_closes_the_connection(codec: ModuleType) -> None:
    error = error_of(codec.FrameDecoder(), b"\xff" * 8)
    text = "FRAME_ERROR - frame type 255 is not known"
    assert error.close_method() == codec.Connection.Close(reply_code=501, reply_text=text)


def test_a_long_message_is_cut_to_what_a_reply_text_holds(codec: ModuleType) -> None:
    error = DecodeError("ä" * 300, 502, dialect=codec.DIALECT.name)
    text = error.close_method().reply_text
    assert text == "SYNTAX_ERROR - " + "ä" * 120
    unpaired = DecodeError("\udc80", 502, dialect=codec.DIALECT.name)
    assert unpaired.close_method().reply_text == "SYNTAX_ERROR - \\udc80"


def test_errors_keep_their_answer_when_raised_again_copied_or_pickled(codec: ModuleType) -> None:
    decoder = codec.FrameDecoder()
    first = error_of(decoder, raw(1, 7, b"\x00\x3c\x12\x34"))
    again = error_of(decoder, b"")
    for error in (again, copy.copy(first), copy.copy(again)):
        assert place(error) == (7, 60, 0x1234)
        assert error.close_method() == first.close_method()
    loaded = pickle.loads(pickle.dumps(first))
    assert place(loaded) == (7, 60, 0x1234)
    assert repr(loaded.close_method()) == repr(first.close_method())


def test_an_error_of_no_dialect_has_no_answer() -> None:
    with pytest.raises(ValueError, match="of no dialect"):
        DecodeError("broken", 501).close_method()
    with pytest.raises(ValueError, match="no dialect 'else'"):
        DecodeError("broken", 501, dialect="else").close_method()
