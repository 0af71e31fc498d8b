"""Records with changes, records as dicts, and what their repr leaves out."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import pytest

import amqpcodec
from amqpcodec import asdict, replace


def records(codec: ModuleType) -> list[Any]:
    publish, properties = (
        codec.Basic.Publish(exchange="orders", routing_key="key"),
        codec.BasicProperties(headers={"k": 1}),
    )
    opaque, header = (type(each) for each in payloads(codec))
    octets = codec.encode_message(1, publish, properties, b"body")
    frames = list(codec.FrameDecoder().feed(octets))
    (message,) = codec.MessageDecoder().feed(octets)
    return [
        publish,
        properties,
        *frames,
        frames[1].payload,
        message,
        opaque(b"x"),
        header(b"AMQP\0\0\x09\x01"),
    ]


def payloads(codec: ModuleType) -> tuple[Any, Any]:
    (frame,) = codec.FrameDecoder().feed(codec.protocol_header())
    if 7 not in codec.DIALECT.frame_types:
        return frame.payload, frame.payload
    (trace,) = codec.FrameDecoder().feed(b"\x07\0\0\0\0\0\x01x\xce")
    return trace.payload, frame.payload


def test_a_copy_has_the_changes_and_the_record_has_not(codec: ModuleType) -> None:
    publish = (
        codec.Basic.Publish("orders", "key", reserved_1=7) if codec.DIALECT.name.endswith("9-1") else None
    )
    publish = publish or codec.Basic.Publish(exchange="orders", routing_key="key")
    changed = replace(publish, routing_key="else")
    assert type(changed) is type(publish)
    assert (changed.exchange, changed.routing_key, publish.routing_key) == ("orders", "else", "key")
    assert replace(publish) == publish
    assert replace(publish) is not publish


def test_every_record_can_be_copied_with_changes(codec: ModuleType) -> None:
    for record in records(codec):
        assert replace(record) == record
        assert type(replace(record)) is type(record)
        for name in asdict(record):
            made = replace(record, **{name: 77})
            assert getattr(made, name) == 77
            assert made != record


def test_the_standard_library_finds_it(codec: ModuleType) -> None:
    publish = codec.Basic.Publish(exchange="a")
    assert publish.__replace__(exchange="b").exchange == "b"
    if hasattr(copy, "replace"):
        assert copy.replace(publish, exchange="b").exchange == "b"


def test_a_subclass_keeps_its_class_and_its_own_attributes(codec: ModuleType) -> None:
    class Noted(codec.Basic.Publish):  # type: ignore[misc, name-defined]
        pass

    noted = Noted(exchange="a")
    noted.note = "kept"
    made = replace(noted, exchange="b")
    assert (type(made), made.exchange, made.note) == (Noted, "b", "kept")


def test_an_attribute_of_any_name_does_no_harm(codec: ModuleType) -> None:
    class Own(codec.BasicProperties):  # type: ignore[misc, name-defined]
        decoded = "yes"

    made = replace(Own(message_id="m-1"), message_id="m-2")
    assert (type(made), made.message_id) == (Own, "m-2")


def test_records_as_dicts_have_the_fields_in_order(codec: ModuleType) -> None:
    for record in records(codec):
        names = getattr(record, "spec", None)
        expected = [field.attribute for field in names.fields] if names else list(record.__match_args__)
        assert list(asdict(record)) == expected
    publish, properties = codec.Basic.Publish(exchange="orders"), codec.BasicProperties(headers={"k": 1})
    (message,) = codec.MessageDecoder().feed(codec.encode_message(1, publish, properties, b"body"))
    shown = asdict(message)
    assert shown["method"]["exchange"] == "orders"
    assert shown["properties"]["headers"] == {"k": 1}
    assert (shown["channel"], shown["body"], shown["complete"]) == (1, b"body", True)
    assert asdict(codec.Heartbeat()) == {}


@pytest.mark.parametrize("other", [5, {"a": 1}, None, amqpcodec.Frame])
def test_other_things_are_refused(other: Any) -> None:
    with pytest.raises(TypeError, match=r"asdict\(\) takes a record"):
        asdict(other)
    with pytest.raises(TypeError, match=r"replace\(\) takes a record"):
        replace(other)


def test_a_name_that_is_no_field_is_refused(codec: ModuleType) -> None:
    for record in records(codec):
        with pytest.raises(TypeError, match=f"{type(record).__name__} has no field 'nothing'"):
            replace(record, nothing=1)


def test_the_repr_of_a_message_shortens_what_is_long(amqp: ModuleType) -> None:
    ack = amqp.Basic.Ack()
    assert (
        repr(amqp.Message(1, ack, None, b"x" * 64))
        == f"Message(1, {ack!r}, None, {b'x' * 64!r}, complete=True)"
    )
    large = amqp.Message(1, ack, None, b"x" * 300000)
    assert repr(large) == f"Message(1, {ack!r}, None, <300000 bytes b'xxxxxxxxxxxxxxxx'...>, complete=True)"
    chunks = amqp.Message(1, ack, None, [b"x" * 100, b"y"])
    assert repr(chunks) == f"Message(1, {ack!r}, None, <2 chunks, 101 bytes>, complete=True)"
    assert repr(amqp.Message(1, ack, None, [b"x"])).endswith("None, [b'x'], complete=True)")
    assert (
        repr(amqp.Frame(3, 1, b"x" * 65))
        == "Frame(type=3, channel=1, payload=<65 bytes b'xxxxxxxxxxxxxxxx'...>)"
    )


def test_what_all_dialects_share_is_in_each_module(codec: ModuleType) -> None:
    (frame,) = codec.FrameDecoder().feed(codec.encode_heartbeat())
    assert isinstance(frame, codec.Frame)
    assert isinstance(frame.payload, codec.Heartbeat)
    (message,) = codec.MessageDecoder().feed(codec.encode_message(1, codec.Basic.Publish(), None, b""))
    if codec.DIALECT.name == "amqp-0-9":  # whose class message has the name
        assert codec.Message.Transfer is codec.MessageTransfer
    else:
        assert type(message) is codec.Message
