"""The exceptions: their tree, their attributes, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest
from support import oracle
from support.outcomes import describe_error

from amqpcodec import (
    DIALECTS,
    AmqpError,
    DecodeError,
    DecoderInUseError,
    EncodeError,
    ReplyError,
    errors,
    reply_errors,
)
from amqpcodec._protocol import codes
from amqpcodec.aio import ReturnedError

OWN_CODES = {name: value for name, value in vars(codes).items() if name.isupper() and type(value) is int}


def decode_error() -> DecodeError:
    return DecodeError(
        "broken", 502, 99, dialect="amqp-0-9", method="basic.ack", field="delivery-tag", fatal=True,
        channel=7, class_id=60, method_id=80,
    )  # fmt: skip


def encode_error() -> EncodeError:
    return EncodeError("too long", "headers", method="basic", path=("a", 0, "b"))


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (DecodeError, ValueError),
        (EncodeError, ValueError),
        (DecoderInUseError, RuntimeError),
        (errors.ConnectionLostError, ConnectionResetError),
        (ReplyError, AmqpError),
    ],
)
def test_everything_is_under_one_root(error: type[Exception], also: type[Exception]) -> None:
    assert issubclass(error, AmqpError)
    assert issubclass(error, also)
    assert issubclass(AmqpError, Exception)


def test_a_decode_error_says_what_and_where() -> None:
    error = decode_error()
    assert str(error) == "broken (basic.ack.delivery-tag, offset 99, amqp-0-9, 502 syntax-error)"
    assert (error.message, error.reply_code, error.reply_name) == ("broken", 502, "syntax-error")
    assert (error.offset, error.dialect, error.method) == (99, "amqp-0-9", "basic.ack")
    assert (error.field, error.fatal, error.closes) == ("delivery-tag", True, "connection")
    assert (error.channel, error.class_id, error.method_id) == (7, 60, 80)
    assert str(DecodeError("broken", 501, 3)) == "broken (offset 3, 501 frame-error)"
    assert str(DecodeError("broken", 501, 3, method="basic")) == "broken (basic, offset 3, 501 frame-error)"
    assert DecodeError("large", 311).closes == "channel"


def test_an_encode_error_says_what_and_where() -> None:
    error = encode_error()
    assert str(error) == "basic.headers['a'][0]['b']: too long"
    assert (error.message, error.method, error.field) == ("too long", "basic", "headers")
    assert error.args == ("too long",)
    assert error.path == ("a", 0, "b")
    assert str(EncodeError("wrong")) == "wrong"
    assert str(EncodeError("wrong", "channel")) == "channel: wrong"
    assert str(EncodeError("wrong", path=("a",))) == "['a']: wrong"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", [decode_error, encode_error])
def test_errors_survive_pickling(make: Any, protocol: int) -> None:
    loaded = pickle.loads(pickle.dumps(make(), protocol))
    assert describe_error(loaded) == describe_error(make())


@pytest.mark.parametrize("make", [decode_error, encode_error])
def test_errors_survive_copying(make: Any) -> None:
    assert describe_error(copy.copy(make())) == describe_error(make())


def test_an_error_raised_again_is_another_object() -> None:
    error = decode_error()
    assert error.again() is not error
    assert describe_error(error.again()) == describe_error(error)


@pytest.mark.parametrize("name", OWN_CODES)
def test_codes_of_decoders_are_those_of_the_specification(name: str) -> None:
    reply = reply_errors.REPLY_ERRORS[OWN_CODES[name]]
    error = DecodeError("broken", OWN_CODES[name])
    assert reply.name == name.lower().replace("_", "-") == error.reply_name
    assert reply.closes == error.closes


def test_there_is_one_class_for_each_reply_code_of_any_dialect() -> None:
    expected = {
        fact["value"]: (fact["name"], {"soft": "channel", "hard": "connection"}[fact["error_kind"]])
        for name in DIALECTS
        for fact in oracle.facts(name)["constants"]
        if fact["error_kind"]
    }
    found = {code: (cls.name, cls.closes) for code, cls in reply_errors.REPLY_ERRORS.items()}
    assert found == expected


@pytest.mark.parametrize("code", reply_errors.REPLY_ERRORS)
def test_reply_errors_can_be_raised_and_caught(code: int) -> None:
    cls = reply_errors.REPLY_ERRORS[code]
    assert cls.__name__ == "Amqp" + cls.name.title().replace("-", "")
    assert cls.__name__ in reply_errors.__all__
    assert cls.code == code
    assert cls.closes == DecodeError("refused", code).closes
    with pytest.raises(ReplyError, match="what the peer said"):
        raise cls("what the peer said")
    assert pickle.loads(pickle.dumps(cls("text"))).args == ("text",)


@pytest.mark.parametrize(
    "make",
    [
        lambda text: reply_errors.AmqpNotFound(text),
        lambda text: errors.ConnectionLostError(text),
        lambda text: errors.LocalProtocolError(text),
        lambda text: errors.DecodeError(text),
        lambda text: errors.EncodeError(text),
        lambda text: errors.UnknownReleaseError(text),
        lambda text: ReturnedError(312, text),
    ],
)
def test_every_error_can_be_printed(make: Any) -> None:
    """A peer may cut its text within a character; that octet is kept as a lone surrogate."""
    text = b"no queue '\xc3\xa4\xc3".decode("utf-8", "surrogateescape")
    error = make(text)
    assert "no queue 'ä?" in str(error)
    assert text in error.args  # the octets are there
    assert str(make("\ud800")).count("?") == 1


def test_an_error_of_no_reply_code_is_of_the_connection() -> None:
    error = ReplyError("what the peer said")
    assert (error.code, error.name, error.closes) == (0, "", "connection")


def test_errors_of_decoders_survive_pickling(codec: ModuleType) -> None:
    broken = codec.encode_method(1, codec.Basic.Cancel("tag")).replace(b"\x03tag", b"\x09tag")
    with pytest.raises(DecodeError) as caught:
        next(codec.FrameDecoder().feed(broken))
    assert describe_error(pickle.loads(pickle.dumps(caught.value))) == describe_error(caught.value)


def test_errors_of_encoders_survive_pickling(codec: ModuleType) -> None:
    with pytest.raises(EncodeError) as caught:
        codec.encode_header(1, codec.BasicProperties(headers={"a": {"b": object()}}), 0)
    assert describe_error(pickle.loads(pickle.dumps(caught.value))) == describe_error(caught.value)
