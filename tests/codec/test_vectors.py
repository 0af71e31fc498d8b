"""Every golden vector, in both builds: octets to values and values to octets."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from support import vectors
from support.failures import Failures
from support.implementation import Implementation, method_class, properties_class
from support.outcomes import describe, drain, octet_by_octet
from support.vectors import arguments, decoded, encodable, octets

from amqpcodec import DecodeError, EncodeError
from amqpcodec._protocol.index import DIALECTS

FRAME_KINDS = ("method", "header", "body", "heartbeat", "raw-frame", "tolerate")


@pytest.fixture(scope="module", params=tuple(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> str:
    """The name of each dialect in turn: all are in the first tier here."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def codec(impl: Implementation, dialect: str) -> ModuleType:
    """Each dialect's module in each build; other files have one of their own."""
    return impl.dialect(dialect)


def one_frame(codec: ModuleType, vector: dict[str, Any], **options: Any) -> Any:
    decoder = codec.FrameDecoder(profile=vector.get("profile"), frame_max=0, **options)
    frames = list(decoder.feed(bytes.fromhex(vector["hex"])))
    assert len(frames) == 1
    assert decoder.pending == 0
    assert decoder.offset == len(vector["hex"]) // 2
    assert frames[0].channel == vector.get("channel", 0)
    return frames[0]


def same(found: Any, expected: Any) -> None:
    assert describe(found) == describe(expected)


def encoder(codec: ModuleType, vector: dict[str, Any]) -> Any:
    return codec.Encoder(profile=vector.get("profile"))


def canonical(vector: dict[str, Any]) -> str:
    text: str = vector.get("canonical_hex", vector["hex"])
    return text


def built_method(codec: ModuleType, vector: dict[str, Any], values: dict[str, Any]) -> Any:
    cls = method_class(codec, vector.get("method", vector["name"]))
    return cls(**arguments(cls.spec.fields, values, vector.get("profile", ""), encodable))


def check_method(codec: ModuleType, vector: dict[str, Any]) -> None:
    method = one_frame(codec, vector).payload
    assert method.spec.name == vector.get("method", vector["name"])
    assert [field.name for field in method.spec.fields] == list(vector["fields"])
    for field in method.spec.fields:
        expected = decoded(field.type, vector["fields"][field.name], vector.get("profile", ""))
        same(getattr(method, field.attribute), expected)
    built = built_method(codec, vector, vector["fields"])
    assert encoder(codec, vector).encode_method(vector["channel"], built).hex() == canonical(vector)


def check_header(codec: ModuleType, vector: dict[str, Any]) -> None:
    header = one_frame(codec, vector).payload
    cls = properties_class(codec, "basic" if vector["kind"] == "tolerate" else vector["name"])
    assert type(header.properties) is cls
    present = vector["fields"]["properties"]
    for field in cls.spec.fields:
        value = present.get(field.name)
        expected = None if value is None else decoded(field.type, value, vector.get("profile", ""))
        same(getattr(header.properties, field.attribute), expected)
    assert (header.weight, header.body_size) == (vector["fields"]["weight"], vector["fields"]["body-size"])
    built = cls(**arguments(cls.spec.fields, present, vector.get("profile", ""), encodable))
    encode = encoder(codec, vector).encode_header
    sent = encode(vector["channel"], built, header.body_size, weight=header.weight)
    assert sent.hex() == canonical(vector)


def check_opaque(codec: ModuleType, vector: dict[str, Any]) -> None:
    frame = one_frame(codec, vector)
    assert frame.type == vector["fields"]["type"]
    assert type(frame.payload).__name__ == "OpaquePayload"
    assert frame.payload.octets == octets(vector["fields"]["payload"])
    assert codec.encode_frame(frame).hex() == vector["hex"]


def check_body(codec: ModuleType, vector: dict[str, Any]) -> None:
    body = octets(vector["fields"]["payload"])
    frame = one_frame(codec, vector)
    assert frame.type == 3
    same(frame.payload, body)
    assert codec.encode_body(vector["channel"], body).hex() == vector["hex"]
    assert codec.encode_frame(frame).hex() == vector["hex"]


def check_heartbeat(codec: ModuleType, vector: dict[str, Any]) -> None:
    frame = one_frame(codec, vector)
    assert (frame.type, frame.channel, repr(frame.payload)) == (8, 0, "Heartbeat()")
    assert codec.encode_heartbeat().hex() == vector["hex"]
    assert codec.encode_frame(frame).hex() == vector["hex"]


CHECKS = {
    "method": check_method,
    "header": check_header,
    "body": check_body,
    "heartbeat": check_heartbeat,
    "raw-frame": check_opaque,
}


def test_every_kind_of_vector_is_tested() -> None:
    kinds = {vector["kind"] for vector in vectors.load("vectors-public")}
    assert kinds == {*FRAME_KINDS, "table", "content", "protocol-header", "invalid"}


@pytest.mark.parametrize("kind", FRAME_KINDS)
def test_frames_decode_to_their_fields_and_encode_to_their_octets(
    codec: ModuleType, dialect: str, kind: str
) -> None:
    cases = vectors.vectors(dialect, kind)
    failures = Failures()
    for vector in cases:
        with failures.case(vector["id"]):
            CHECKS[vector.get("frame_kind", kind)](codec, vector)
    failures.check(at_least=0 if kind in ("heartbeat", "raw-frame", "tolerate") else 3)


def test_every_method_of_the_dialect_has_a_vector(codec: ModuleType, dialect: str) -> None:
    named = {vector["name"] for vector in vectors.vectors(dialect, "method")}
    missing = {cls.spec.name for cls in codec.METHODS.values()} - named
    assert not missing, vectors.HOW_TO_ADD


def test_raw_tables_encode_to_the_very_octets(codec: ModuleType, dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "method", "header"):
        with failures.case(vector["id"]):
            frame = one_frame(codec, vector, tables="raw")
            assert codec.encode_frame(frame).hex() == vector["hex"]
    failures.check(at_least=100)


def test_raw_tables_read_as_the_same_mapping(codec: ModuleType, dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "method", "header"):
        with failures.case(vector["id"]):
            assert one_frame(codec, vector, tables="raw") == one_frame(codec, vector)
    failures.check(at_least=100)


def test_tables_decode_to_their_entries_and_encode_to_their_octets(
    impl: Implementation, dialect: str
) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "table"):
        with failures.case(vector["id"]):
            data, table, profile = bytes.fromhex(vector["hex"]), vector["fields"]["table"], vector["profile"]
            same(impl.tables.decode_table(data, profile), decoded("table", table, profile))
            if not vector.get("decode_only"):
                built = encodable("table", table, profile)
                writing = "rabbitmq-nan" if profile == "rabbitmq" else profile  # some hold infinities
                assert impl.tables.encode_table(built, writing).hex() == vector["hex"]
    failures.check(at_least=20)


def test_contents_decode_to_a_message_and_encode_to_their_frames(codec: ModuleType, dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "content"):
        with failures.case(vector["id"]):
            check_content(codec, vector)
    failures.check(at_least=3)


def check_content(codec: ModuleType, vector: dict[str, Any]) -> None:
    fields, data = vector["fields"], bytes.fromhex(vector["hex"])
    method = built_method(codec, vector, fields["method"])
    cls = codec.PROPERTIES[method.spec.class_id]
    properties = cls(**arguments(cls.spec.fields, fields["properties"], vector["profile"], encodable))
    given = (vector["channel"], method, properties, octets(fields["body"]))
    encode = encoder(codec, vector)
    frame_max = fields["frame-max"]
    assert encode.encode_message(*given, frame_max=frame_max).hex() == vector["hex"]
    assert b"".join(encode.encode_message_parts(*given, frame_max=frame_max)).hex() == vector["hex"]
    [message] = codec.MessageDecoder(profile=vector["profile"], frame_max=frame_max).feed(data)
    assert message.complete is True
    assert (message.channel, message.body) == (vector["channel"], given[3])
    for field in method.spec.fields:
        expected = decoded(field.type, fields["method"][field.name], vector["profile"])
        same(getattr(message.method, field.attribute), expected)
    for name, value in arguments(cls.spec.fields, fields["properties"], vector["profile"], decoded).items():
        same(getattr(message.properties, name), value)
    assert len(list(codec.FrameDecoder(frame_max=frame_max).feed(data))) == vector["frames"]


def test_protocol_headers_decode_and_the_first_is_sent(codec: ModuleType, dialect: str) -> None:
    cases = vectors.vectors(dialect, "protocol-header")
    headers = [bytes.fromhex(vector["hex"]) for vector in cases]
    assert set(headers) <= set(codec.DIALECT.accepted_headers)
    for vector, header in zip(cases, headers, strict=True):
        frame = one_frame(codec, vector)
        assert (frame.type, frame.channel, frame.payload.octets) == (65, 0, header)
        assert frame.payload.version == tuple(header[4:])
        assert codec.encode_frame(frame) == header
        assert vector.get("decode_only") or codec.protocol_header() == header


def refusal(codec: ModuleType, vector: dict[str, Any], cut: bool) -> DecodeError:
    options = {"frame_max": vector.get("frame_max", 131072), "strict": bool(vector.get("strict_only"))}
    decoder = (codec.MessageDecoder if vector.get("sequence") else codec.FrameDecoder)(**options)
    data = bytes.fromhex(vector["hex"])
    given, error = drain(decoder, octet_by_octet(data) if cut else [data])
    assert error is not None
    assert not given or vector.get("sequence")
    with pytest.raises(DecodeError, match=r"offset \d+") as again:
        next(decoder)
    assert str(again.value) == str(error)
    return error


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "octet-by-octet"])
def test_invalid_vectors_are_refused_with_their_reply_code(
    codec: ModuleType, dialect: str, cut: bool
) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "invalid"):
        with failures.case(f"{vector['id']} {vector['name']}"):
            error = refusal(codec, vector, cut)
            expect = vector["expect"]
            assert error.reply_code in (expect["error"], *expect["also_seen"])
            assert error.fatal is expect["fatal"]
            assert error.dialect == dialect
            assert error.closes == "connection"
    failures.check(at_least=20)


def test_what_only_strict_mode_refuses_is_otherwise_tolerated(codec: ModuleType, dialect: str) -> None:
    cases = [vector for vector in vectors.vectors(dialect, "invalid") if vector.get("strict_only")]
    assert cases
    for vector in cases:
        assert len(list(codec.FrameDecoder().feed(bytes.fromhex(vector["hex"])))) == 1, vector["name"]


def test_what_is_out_of_order_is_well_formed_frame_by_frame(codec: ModuleType, dialect: str) -> None:
    # A header of a class without content is refused by itself, whatever came before it.
    cases = [v for v in vectors.vectors(dialect, "invalid") if v.get("sequence") and "class" not in v["name"]]
    assert cases
    for vector in cases:
        assert list(codec.FrameDecoder().feed(bytes.fromhex(vector["hex"]))), vector["name"]


def test_broken_asserts_are_carried_but_not_valid(codec: ModuleType, dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "method"):
        violated = [field for field, check in vector.get("violates", ()) if check != "reserved"]
        if not violated:
            continue
        with failures.case(vector["id"]):
            method = one_frame(codec, vector).payload
            with pytest.raises(EncodeError) as caught:
                method.validate()
            assert caught.value.field in violated
            assert caught.value.method == vector["name"]
            with pytest.raises(EncodeError):
                codec.encode_method(vector["channel"], method, validate=True)
    failures.check(at_least=10)


def test_typical_values_are_valid(codec: ModuleType, dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "method"):
        if "violates" in vector and any(check != "reserved" for _, check in vector["violates"]):
            continue
        with failures.case(vector["id"]):
            method = one_frame(codec, vector).payload
            method.validate()
            assert codec.encode_method(vector["channel"], method, validate=True)
    failures.check(at_least=50)
