"""Content headers that stay octets: what they are worth, and how they are forwarded."""

from __future__ import annotations

import copy
import pickle
import struct
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe, describe_error, drain, octet_by_octet

import amqpcodec
from amqpcodec import DecodeError, EncodeError, Limits

HEADERS = {"text": "value", "number": 7, "table": {"nested": "text"}}


def ordinary(codec: ModuleType) -> Any:
    return codec.BasicProperties(content_type="text/plain", headers=HEADERS, message_id="m-1")


def one(decoder: Any, octets: bytes) -> Any:
    (value,) = decoder.feed(octets)
    return value


def kept(codec: ModuleType, properties: Any = None, channel: int = 3, **options: Any) -> Any:
    """Properties as they come of a decoder that keeps octets."""
    octets = codec.encode_header(channel, properties or ordinary(codec), 10)
    return one(codec.FrameDecoder(properties="raw", **options), octets).payload.properties


def broken(codec: ModuleType) -> bytes:
    octets: bytes = codec.encode_header(3, codec.BasicProperties(content_type="text"), 10)
    return octets.replace(b"\x04text", b"\x09text")


def test_a_property_has_the_value_that_an_ordinary_decoder_gives_it(codec: ModuleType) -> None:
    raw = kept(codec)
    assert type(raw).__name__ == "RawProperties"
    assert raw.headers == HEADERS
    for field in codec.BasicProperties.spec.fields:
        value = getattr(ordinary(codec), field.attribute)
        assert describe(getattr(raw, field.attribute)) == describe(value)
    assert raw.spec is codec.BasicProperties.spec
    assert raw.class_id == 60
    assert codec.encode_header(3, ordinary(codec), 10)[19:-1] == raw.octets


def test_a_name_that_is_no_property_is_no_attribute(codec: ModuleType) -> None:
    octets = broken(codec)  # nothing is decoded to find that out
    raw = one(codec.FrameDecoder(properties="raw"), octets).payload.properties
    with pytest.raises(AttributeError, match="'RawProperties' object has no attribute 'nothing'"):
        _ = raw.nothing


def test_raw_properties_cannot_be_changed(codec: ModuleType) -> None:
    raw = kept(codec)
    for name in ("headers", "octets", "nothing"):
        with pytest.raises(AttributeError):
            setattr(raw, name, None)
    assert raw == ordinary(codec)


@pytest.mark.parametrize("cut", [lambda octets: [octets], octet_by_octet])
def test_messages_are_the_same_but_for_the_kind_of_their_properties(codec: ModuleType, cut: Any) -> None:
    octets = codec.encode_message(7, codec.Basic.Publish(), ordinary(codec), b"body" * 9, frame_max=30 + 4096)
    plain = drain(codec.MessageDecoder(), cut(octets))[0]
    raw = drain(codec.MessageDecoder(properties="raw"), cut(octets))[0]
    assert raw == plain
    assert [type(message.properties).__name__ for message in raw] == ["RawProperties"]


def test_encoders_write_the_octets_as_they_are_into_any_channel(codec: ModuleType) -> None:
    # An ordinary decoder and encoder would write these otherwise: a key twice, and a tag that is not its own.
    table = b"\x01ks\x00\x01" + b"\x01ks\x00\x02"
    payload = struct.pack(">HHQH", 60, 0, 10, 0x2000) + struct.pack(">I", len(table)) + table
    octets = struct.pack(">BHI", 2, 3, len(payload)) + payload + b"\xce"
    frame = one(codec.FrameDecoder(properties="raw"), octets)
    assert codec.encode_frame(frame) == octets
    moved = octets[:1] + b"\x00\x09" + octets[3:]
    assert codec.encode_header(9, frame.payload.properties, 10) == moved
    message = codec.encode_message(9, codec.Basic.Deliver(), frame.payload.properties, bytes(10))
    assert moved in message
    parts = codec.encode_message_parts(9, codec.Basic.Deliver(), frame.payload.properties, bytes(10))
    assert b"".join(parts) == message


def test_a_publish_is_delivered_without_decoding_its_properties(codec: ModuleType) -> None:
    publish = codec.encode_message(1, codec.Basic.Publish(), ordinary(codec), b"body")
    message = one(codec.MessageDecoder(properties="raw"), publish)
    delivered = codec.encode_message(2, codec.Basic.Deliver("tag", 1), message.properties, message.body)
    assert delivered == codec.encode_message(2, codec.Basic.Deliver("tag", 1), ordinary(codec), b"body")


def test_encoders_keep_to_frame_max(codec: ModuleType) -> None:
    with pytest.raises(EncodeError, match="frame_max 20"):
        codec.encode_header(1, kept(codec), 10, frame_max=20)


def test_encoders_of_another_dialect_refuse_the_octets(impl: Implementation) -> None:
    raw = kept(impl.dialect("amqp-0-9-1"))
    other = impl.dialect("rabbitmq-0-9-1")
    with pytest.raises(EncodeError, match="properties of amqp-0-9-1, not of rabbitmq-0-9-1"):
        other.encode_header(1, raw, 10)


def test_properties_of_another_class_are_refused(impl: Implementation) -> None:
    codec = impl.dialect("amqp-0-9")
    raw = kept(codec, codec.FileProperties(content_type="x"))
    assert raw.class_id == 70
    with pytest.raises(EncodeError, match="properties of class file do not belong to it"):
        codec.encode_message(1, codec.Basic.Publish(), raw, b"")


def test_errors_are_those_of_an_ordinary_decoder_once_somebody_looks(codec: ModuleType) -> None:
    before = codec.encode_method(3, codec.Basic.Qos())
    octets = before + broken(codec)
    expected = drain(codec.FrameDecoder(), [octets])[1]
    assert expected is not None
    for chunks in ([octets], octet_by_octet(octets)):
        frames, error = drain(codec.FrameDecoder(properties="raw"), chunks)
        assert error is None
        raw = frames[1].payload.properties
        for _ in range(2):
            with pytest.raises(DecodeError) as caught:
                _ = raw.message_id
            assert describe_error(caught.value) == describe_error(expected)
            assert caught.value.close_method() == expected.close_method()
        assert raw == copy.copy(raw)
        assert raw != ordinary(codec)


def test_limits_and_profiles_of_the_decoder_count_when_somebody_looks(codec: ModuleType) -> None:
    raw = kept(codec, limits=Limits(table_entries=2))
    with pytest.raises(DecodeError, match="table of more than 2 entries"):
        _ = raw.headers
    assert type(kept(codec, tables="raw").headers).__name__ == "RawTable"


def test_what_is_no_content_header_is_refused_at_once(codec: ModuleType) -> None:
    for payload in (b"", b"\x00\x3c" + bytes(9), struct.pack(">HHQH", 999, 0, 0, 0)):
        octets = struct.pack(">BHI", 2, 3, len(payload)) + payload + b"\xce"
        expected = drain(codec.FrameDecoder(), [octets])[1]
        error = drain(codec.FrameDecoder(properties="raw"), [octets])[1]
        assert error is not None
        assert expected is not None
        assert describe_error(error) == describe_error(expected)


def test_strict_mode_checks_the_octets_at_once(codec: ModuleType) -> None:
    octets = codec.encode_header(3, codec.BasicProperties(content_type="a\0b"), 10)
    expected = drain(codec.FrameDecoder(strict=True), [octets])[1]
    error = drain(codec.FrameDecoder(strict=True, properties="raw"), [octets])[1]
    assert error is not None
    assert expected is not None
    assert describe_error(error) == describe_error(expected)
    assert kept(codec, strict=True) == ordinary(codec)


def test_equality_is_that_of_the_values(codec: ModuleType) -> None:
    raw = kept(codec)
    assert raw == kept(codec)
    assert raw == ordinary(codec)
    assert ordinary(codec) == raw
    assert raw != codec.BasicProperties()
    assert raw != kept(codec, codec.BasicProperties(content_type="else"))
    assert raw != "text"
    with pytest.raises(TypeError):
        hash(raw)


def test_repr_has_octets_class_and_dialect(codec: ModuleType) -> None:
    raw = kept(codec, codec.BasicProperties(priority=9))
    assert repr(raw) == f"RawProperties(b'\\x08\\x00\\t', 60, <Dialect {codec.DIALECT.name}>)"


def test_copies_and_pickles_have_the_same_octets(codec: ModuleType) -> None:
    raw = kept(codec)
    assert copy.copy(raw) is raw
    for made in (pickle.loads(pickle.dumps(raw)), copy.deepcopy(raw)):
        assert (made.octets, made.class_id, made.headers) == (raw.octets, 60, HEADERS)


def test_copies_and_pickles_are_read_by_the_rules_of_the_decoder(codec: ModuleType) -> None:
    own = codec.DIALECT.profile.name
    other = "0-8" if own != "0-8" else "rabbitmq"
    raw = kept(codec, tables="raw", profile=other)
    assert raw.headers.profile == other
    broken_raw = one(codec.FrameDecoder(properties="raw"), broken(codec)).payload.properties
    with pytest.raises(DecodeError) as caught:
        broken_raw.decoded()
    limited = kept(codec, limits=Limits(table_entries=2))
    for again in (lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy):
        headers = again(raw).headers
        assert (type(headers).__name__, headers.profile) == ("RawTable", other)
        with pytest.raises(DecodeError) as same:
            again(broken_raw).decoded()
        assert describe_error(same.value) == describe_error(caught.value)
        with pytest.raises(DecodeError, match="table of more than 2 entries"):
            again(limited).decoded()


def test_decoded_and_replaced_ones_are_ordinary_and_can_be_changed(codec: ModuleType) -> None:
    raw = kept(codec)
    decoded = raw.decoded()
    assert type(decoded) is codec.BasicProperties
    decoded.headers["more"] = 1
    assert raw.headers == HEADERS
    replaced = amqpcodec.replace(raw, message_id="m-2")
    assert type(replaced) is codec.BasicProperties
    assert (replaced.message_id, replaced.headers) == ("m-2", HEADERS)
    assert amqpcodec.asdict(raw) == amqpcodec.asdict(ordinary(codec))


def test_raw_properties_can_be_made_of_octets(impl: Implementation, codec: ModuleType) -> None:
    make = impl.kernel("rawproperties").RawProperties
    raw = make(memoryview(kept(codec).octets), 60, codec.DIALECT)
    assert raw == ordinary(codec)
    assert codec.encode_header(3, raw, 10) == codec.encode_header(3, ordinary(codec), 10)
    with pytest.raises(DecodeError) as caught:
        _ = make(b"\x80\x00\x09text", 60, codec.DIALECT).content_type
    assert (caught.value.offset, caught.value.channel) == (2, 0)
    with pytest.raises(ValueError, match="has no content of class 999"):
        make(b"", 999, codec.DIALECT)
    with pytest.raises(TypeError, match="must be a Dialect"):
        make(b"", 60, "rabbitmq")
    with pytest.raises(TypeError):
        make("text", 60, codec.DIALECT)


def test_instances_made_without_the_constructor_do_no_harm(impl: Implementation, amqp: ModuleType) -> None:
    empty = impl.kernel("rawproperties").RawProperties
    empty = empty.__new__(empty)
    for use in (repr, pickle.dumps, lambda raw: raw.headers, lambda raw: amqp.encode_header(1, raw, 0)):
        with pytest.raises(AttributeError):
            use(empty)


def test_a_constructor_called_again_changes_all_at_once(impl: Implementation) -> None:
    amqp, older = impl.dialect("rabbitmq-0-9-1"), impl.dialect("amqp-0-9")
    raw = impl.kernel("rawproperties").RawProperties(b"\x80\x00\x04text", 60, amqp.DIALECT)
    seen = []

    class Nosy(type(older.DIALECT)):  # type: ignore[misc]
        @property
        def properties_dispatch(self) -> Any:
            seen.append(raw.decoded())
            return self.__dict__["properties_dispatch"]

    nosy = Nosy.__new__(Nosy)
    nosy.__dict__.update(older.DIALECT.__dict__)
    raw.__init__(b"\x00\x00", 70, nosy)
    assert seen == [amqp.BasicProperties(content_type="text")]
    assert raw.decoded() == older.FileProperties()


def test_the_option_takes_two_words(codec: ModuleType) -> None:
    for decoder in (codec.FrameDecoder, codec.MessageDecoder):
        with pytest.raises(ValueError, match='properties must be "decoded" or "raw", not \'octets\''):
            decoder(properties="octets")
