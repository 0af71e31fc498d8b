"""A user's use of the codec: every public name that all dialects share, and the types that it has."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from types import ModuleType
from typing import Any, Literal, assert_type

import amqpcodec
from amqpcodec import errors, limits, profiles, reply_errors, spec, types
from amqpcodec import rabbitmq as amqp


def module() -> None:
    """What the package says of itself."""
    assert_type(amqpcodec.__version__, str)
    assert_type(amqpcodec.IMPL, str)
    assert_type(amqpcodec.DIALECTS, dict[str, str])
    assert_type(amqpcodec.dialect("rabbitmq-0-9-1"), ModuleType)
    assert_type(amqp.DIALECT, amqpcodec.Dialect)
    assert_type(amqp.DIALECT.name, str)
    assert_type(amqp.DIALECT.version, tuple[int, int, int | None])
    assert_type(amqp.DIALECT.port, int)
    least: int = amqp.FRAME_MIN_SIZE
    assert least


def tables(octets: bytes) -> None:
    """Field tables by themselves, and the values that plain Python types cannot express."""
    assert_type(amqpcodec.decode_table(octets, "rabbitmq", strict=True), dict[str, Any])
    assert_type(amqpcodec.decode_pairs(octets), dict[str, Any])
    assert_type(amqpcodec.encode_table({"a": amqpcodec.FieldValue("u", 1), "b": types.EPOCH}), bytes)
    assert_type(types.FieldValue("u", 1).tag, str)
    assert_type(types.EPOCH, datetime)
    assert_type(types.NO_CONTENT, types.InlineContent)
    assert_type(amqpcodec.InlineContent(b"").octets, bytes)
    assert_type(types.ReferenceContent(b"").octets, bytes)
    assert_type(amqpcodec.ReferenceContent(b"") == amqpcodec.InlineContent(b""), bool)

    raw = amqpcodec.RawTable(octets, "rabbitmq")
    mapping: Mapping[str, Any] = raw
    assert_type(raw.octets, bytes)
    assert_type(raw.profile, str)
    assert_type(raw.keys(), KeysView[str])
    assert_type(raw.values(), ValuesView[Any])
    assert_type(raw.items(), ItemsView[str, Any])
    assert_type(len(raw), int)
    assert_type([*mapping], list[str])
    assert_type(raw.error, amqpcodec.DecodeError | None)

    late = assert_type(amqpcodec.UnreadableTime.of(1 << 60), types.UnreadableTime)
    assert_type((late.seconds, late.timestamp()), tuple[int, float])
    unreadable = amqpcodec.UnreadableTable(octets, amqpcodec.DecodeError("a fault"))
    entries: dict[str, Any] = unreadable
    assert_type(unreadable.octets, bytes)
    assert_type(unreadable.error, amqpcodec.DecodeError)
    assert_type([*entries], list[str])
    assert_type(types.UnreadableTable(octets, unreadable.error), amqpcodec.UnreadableTable)

    profile = profiles.PROFILES["rabbitmq"]
    assert_type(profile, profiles.TableProfile)
    assert_type(profile.name, str)
    assert_type([profiles.KIND_NAMES[kind] for kind in profile.readable(strict=False).values()], list[str])


def records(method: amqpcodec.Method, properties: amqpcodec.Properties) -> None:
    """Methods and properties of any dialect, and what the specification says of them."""
    assert_type(method.spec, amqpcodec.MethodSpec)
    assert_type(method.validate(), None)
    assert_type(properties.spec, amqpcodec.PropertiesSpec)
    for field in method.spec.fields:
        assert_type(field, amqpcodec.FieldSpec)
        assert_type([check.holds("") for check in field.asserts], list[bool])
    check: amqpcodec.Assert = spec.Assert("length", "127")
    assert_type(check.value, str)
    described: tuple[spec.FieldSpec, spec.MethodSpec, spec.PropertiesSpec] | None = None
    assert described is None

    ack = amqp.BasicAck(1, multiple=True)
    assert_type(amqpcodec.replace(ack, multiple=False), amqp.BasicAck)
    assert_type(amqpcodec.asdict(ack), dict[str, Any])


def frame(payload: amqpcodec.Frame) -> str:
    """Each kind of payload."""
    match payload.payload:
        case amqpcodec.Method() as method:
            return assert_type(method, amqpcodec.Method).spec.name
        case amqpcodec.ContentHeader() as header:
            assert_type(header.weight, int)
            assert_type(header.body_size, int)
            properties: amqpcodec.Properties | amqpcodec.RawProperties = header.properties
            return repr(properties)
        case amqpcodec.Heartbeat():
            return "heartbeat"
        case amqpcodec.OpaquePayload(octets=octets):
            return str(octets)
        case amqpcodec.ProtocolHeader() as header:
            assert_type(header.octets, bytes)
            assert_type(header.version, tuple[int, ...])
            return str(header.version)
        case _:
            return f"{assert_type(payload.type, int)} {assert_type(payload.channel, int)}"


def raw_properties(properties: amqpcodec.RawProperties) -> None:
    """Content headers that are forwarded as they came."""
    assert_type(properties.octets, bytes)
    assert_type(properties.class_id, int)
    assert properties.header("x-retries", 0) is not None
    forwarded: amqpcodec.Properties = properties
    described: amqpcodec.PropertiesSpec = forwarded.spec
    assert described


def decoders(octets: bytes, room: memoryview) -> None:
    """Octets to frames and messages."""
    decoder = amqp.FrameDecoder(
        frame_max=131072,
        frame_max_slack=8,
        strict=True,
        profile="rabbitmq",
        tables="raw",
        payloads="decoded",
        properties="raw",
        expect_header=False,
        limits=amqpcodec.Limits(table_depth=32),
    )
    assert_type(decoder.feed(octets), Iterator[amqpcodec.Frame])
    assert_type(decoder.feed(memoryview(octets)), Iterator[amqpcodec.Frame])
    assert_type(next(decoder), amqpcodec.Frame)
    assert_type(decoder.get_buffer(65536), memoryview)
    assert_type(decoder.buffer_updated(len(room)), Iterator[amqpcodec.Frame])
    assert_type([each.channel for each in decoder], list[int])
    assert_type(decoder.pending, int)
    assert_type(decoder.offset, int)
    decoder.frame_max = 4096
    assert_type(decoder.skip_frame(), None)
    assert_type(decoder.reset(), None)

    messages = amqp.MessageDecoder(body="chunks", aborted="keep")
    for item in messages.feed(octets):
        if isinstance(item, amqpcodec.Message):
            assert_type(item.channel, int)
            assert_type(item.complete, bool)
            assert_type(item.properties, amqp.BasicProperties)
            method: amqpcodec.Method = item.method
            assert_type(method.spec.name, str)
        else:
            assert_type(item, amqpcodec.Frame)


def encoders(message: amqpcodec.Message, view: memoryview) -> None:
    """Methods, frames and messages to octets: functions of the dialect, and an encoder of one's own."""
    publish, properties = amqp.Basic.Publish("exchange", "key"), amqp.BasicProperties(delivery_mode=2)
    assert_type(amqp.encode_method(1, publish, validate=True), bytes)
    assert_type(amqp.encode_header(1, properties, 5), bytes)
    assert_type(amqp.encode_body(1, view, frame_max=4096), bytes)
    assert_type(amqp.encode_message(1, publish, properties, b"body", frame_max=4096), bytes)
    assert_type(amqp.encode_message_parts(1, publish, None, view), list[bytes | memoryview])
    assert_type(next(amqp.encode_messages([(1, publish, None, view)], frame_max=4096)), bytes)
    assert_type(amqp.encode_frame(amqpcodec.Frame(8, 0, amqpcodec.Heartbeat())), bytes)
    assert_type(amqp.encode(message), bytes)
    assert_type(amqp.encode_heartbeat(), bytes)
    assert_type(amqp.protocol_header(), bytes)

    order: amqp.PreparedMessage = amqp.prepare_message(1, publish, properties)
    assert_type(order.encode(b"body", routing_key="key", message_id=None, headers={"a": 1}), bytes)

    encoder = amqp.Encoder(frame_max=4096, strict=True, profile="rabbitmq")
    assert_type(next(encoder.encode_messages(iter([(1, publish, properties, b"body")]))), bytes)
    assert_type(encoder.prepare_message(1, publish, frame_max=4096).encode(view, priority=1), bytes)
    assert_type(encoder.frame_max, int | None)
    encoder.frame_max = None
    assert_type(encoder.encode_method(1, publish), bytes)


def bounded() -> None:
    """Limits of everything that a peer could make large."""
    chosen = limits.Limits(table_depth=8, body_size=1 << 20)
    same: amqpcodec.Limits = chosen
    assert_type(same.body_size, int)
    assert_type(same.table_depth, int)
    assert_type(same.open_messages, int)


def refused(error: amqpcodec.AmqpError) -> tuple[int, str]:
    """Every exception, and what it knows."""
    match error:
        case amqpcodec.DecodeError():
            answer = error.close_method()
            assert_type(answer, amqpcodec.Method)
            assert_type(error.offset, int)
            assert_type(error.fatal, bool)
            assert_type(error.channel, int)
            assert_type(error.reply_name, str)
            assert_type(error.closes, Literal["channel", "connection"])
            return assert_type(error.reply_code, int), str(error)
        case amqpcodec.EncodeError():
            assert_type(error.path, tuple[str | int, ...])
            return 0, str(error)
        case amqpcodec.LocalProtocolError():
            assert_type(error.reply_code, int)
            return error.reply_code, error.message
        case amqpcodec.ReplyError():
            return assert_type(error.code, int), assert_type(error.name, str)
        case amqpcodec.DecoderInUseError() | errors.UnknownReleaseError() | errors.ConnectionLostError():
            return 0, str(error)
        case _:
            return 0, str(error)


def one_tree() -> list[type[Exception]]:
    """The classes are the same, wherever they are imported from."""
    tree: list[type[errors.AmqpError]] = [
        errors.ConnectionLostError,
        errors.DecodeError,
        errors.EncodeError,
        errors.DecoderInUseError,
        errors.LocalProtocolError,
        errors.ReplyError,
        errors.UnknownReleaseError,
    ]
    by_code: dict[int, type[errors.ReplyError]] = reply_errors.REPLY_ERRORS
    not_found: type[errors.ReplyError] = reply_errors.AmqpNotFound
    assert_type((not_found.class_id, not_found.method_id), tuple[int, int])
    return [*tree, *by_code.values(), not_found, ValueError]
