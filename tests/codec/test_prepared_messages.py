"""Prepared messages: the octets and refusals of a method and properties that are made anew."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.encoder_values import encoder_values
from support.failures import Failures
from support.implementation import Implementation, wanted
from support.outcomes import encoding

from amqpcodec import EncodeError, RawTable

METHOD = {"exchange": "orders", "routing_key": "eu", "mandatory": True}
PROPERTIES = {
    "content_type": "application/json", "headers": {"a": 1, "é": {"b": [1]}}, "delivery_mode": 2,
    "app_id": "shop",
}  # fmt: skip


def prepared(amqp: ModuleType, **options: Any) -> Any:
    return amqp.prepare_message(1, amqp.BasicPublish(**METHOD), amqp.BasicProperties(**PROPERTIES), **options)


def anew(amqp: ModuleType, body: Any, changes: dict[str, Any], **options: Any) -> Any:
    """What making and encoding the message gives."""
    names = {field.attribute for field in amqp.BasicPublish.spec.fields}
    method = amqp.BasicPublish(**{**METHOD, **{key: value for key, value in changes.items() if key in names}})
    others = {key: value for key, value in changes.items() if key not in names}
    properties = amqp.BasicProperties(**{**PROPERTIES, **others})
    return encoding(lambda: amqp.encode_message(1, method, properties, body, **options))


def test_each_field_takes_each_value(amqp: ModuleType) -> None:
    message = prepared(amqp)
    failures = Failures()
    for cls in (amqp.BasicPublish, amqp.BasicProperties):
        for field in cls.spec.fields:
            for what, make in encoder_values():
                with failures.case(f"{field.attribute}, {what}"):
                    changes = {field.attribute: make()}
                    assert encoding(partial(message.encode, b"body", **changes)) == anew(
                        amqp, b"body", changes
                    )
    failures.check()


VALUES = {
    "bit": st.booleans(),
    "octet": st.integers(-1, 256), "short": st.integers(-1, 65536), "long": st.integers(-1, 2**32),
    "longlong": st.integers(-1, 2**64),
    "shortstr": st.text(max_size=300) | st.text("abc", min_size=250, max_size=260) | st.just("x"),
    "table": st.dictionaries(st.text(max_size=9), st.integers() | st.text() | st.booleans() | st.none()),
    "timestamp": st.integers(-1, 2**64) | st.datetimes() | st.datetimes(timezones=st.just(UTC)),
}  # fmt: skip


@settings(max_examples=share(50), deadline=None)
@given(st.data())
def test_any_changes_give_what_making_it_anew_gives(data: st.DataObject) -> None:
    for name in wanted():
        amqp = Implementation(name).dialect("rabbitmq-0-9-1")
        fields = (*amqp.BasicPublish.spec.fields, *amqp.BasicProperties.spec.fields)
        chosen = data.draw(
            st.lists(st.sampled_from(fields), unique_by=lambda field: field.attribute, max_size=8)
        )
        optional = {field.attribute for field in amqp.BasicProperties.spec.fields}
        changes = {
            field.attribute: data.draw(
                VALUES[field.type] | st.none() if field.attribute in optional else VALUES[field.type]
            )
            for field in chosen
        }
        body = data.draw(st.binary(max_size=40))
        frame_max = data.draw(st.sampled_from([None, 0, 100]))
        found = encoding(partial(prepared(amqp, frame_max=frame_max).encode, body, **changes))
        assert found == anew(amqp, body, changes, frame_max=frame_max)


def test_each_content_of_each_dialect(codec: ModuleType) -> None:
    for cls in codec.METHODS.values():
        if not cls.spec.content:
            continue
        message = codec.prepare_message(1, cls())
        assert message.encode(b"body") == codec.encode_message(1, cls(), None, b"body")
        header = codec.PROPERTIES[cls.spec.class_id]
        for field in (*cls.spec.fields, *header.spec.fields):
            value = {"table": {"a": 1}, "bit": True, "shortstr": "text", "longstr": b"o"}.get(field.type, 5)
            changes = {field.attribute: value}
            ours = {name: given for name, given in changes.items() if hasattr(cls(), name)}
            rest = {} if ours else changes
            expected = codec.encode_message(1, cls(**ours), header(**rest), b"body")
            assert message.encode(b"body", **changes) == expected


def test_a_value_of_the_type_of_its_field_is_put_in_without_encoding_all_anew(codec: ModuleType) -> None:
    class Counting(codec.Encoder):  # type: ignore[name-defined,misc]
        calls = 0

        def encode_message(self, *args: Any, **options: Any) -> Any:
            self.calls += 1
            return super().encode_message(*args, **options)

    encoder = Counting()
    for cls in codec.METHODS.values():
        if cls.spec.content:
            message = encoder.prepare_message(1, cls())
            encoder.calls = 0
            for field in (*cls.spec.fields, *codec.PROPERTIES[cls.spec.class_id].spec.fields):
                if field.type != "bit":  # several share an octet
                    value = {"table": {"a": 1}, "shortstr": "text"}.get(field.type, 5)
                    message.encode(b"body", **{field.attribute: value})
                    assert encoder.calls == 0, field
            message.encode(memoryview(b"body"))
            assert encoder.calls == 1


@pytest.mark.parametrize(
    "body", [b"", b"x" * 9000, bytearray(b"octets"), memoryview(b"octets")[::2], "text", None]
)
@pytest.mark.parametrize("frame_max", [None, 0, 200, 4096])
def test_each_body(amqp: ModuleType, body: Any, frame_max: Any) -> None:
    message = prepared(amqp, frame_max=frame_max)
    assert encoding(lambda: message.encode(body)) == anew(amqp, body, {}, frame_max=frame_max)


def test_a_change_is_for_one_time_only(amqp: ModuleType) -> None:
    message = prepared(amqp)
    message.encode(b"", routing_key="other", headers=None, mandatory=False, priority=3)
    assert ("octets", message.encode(b"")) == anew(amqp, b"", {})


def test_what_was_prepared_does_not_change(amqp: ModuleType) -> None:
    headers = {"a": {"b": [1]}}
    method, properties = amqp.BasicPublish("orders"), amqp.BasicProperties(headers=headers)
    expected = amqp.encode_message(1, method, properties, b"body")
    message = amqp.prepare_message(1, method, properties)
    method.exchange = "others"
    headers["a"]["b"].append(2)
    properties.app_id = "shop"
    assert message.encode(b"body") == expected
    assert message.encode(bytearray(b"body")) == expected


def test_names_that_no_field_has_are_refused(amqp: ModuleType) -> None:
    for name in ("key", "encode", "channel", "".join(("routing", "-key"))):
        with pytest.raises(TypeError, match=rf"encode\(\) got an unexpected keyword argument '{name}'"):
            prepared(amqp).encode(b"", **{name: "x"})
    with pytest.raises(TypeError, match=r"encode\(\) missing 1 required positional argument: 'body'"):
        prepared(amqp).encode()
    with pytest.raises(TypeError, match=r"encode\(\) takes 2 positional arguments but 3 were given"):
        prepared(amqp).encode(b"", "x")


def test_names_that_are_not_interned_are_found(amqp: ModuleType) -> None:
    name = "".join(["routing", "_", "key"])
    assert prepared(amqp).encode(b"", **{name: "x"}) == prepared(amqp).encode(b"", routing_key="x")


def test_it_is_refused_what_encode_message_refuses(amqp: ModuleType) -> None:
    for channel, method, properties in (
        (0, amqp.BasicPublish(), None),
        (1, amqp.BasicAck(), None),
        (1, amqp.BasicPublish(routing_key=5), None),
        (1, amqp.BasicPublish(), amqp.BasicProperties(priority=-1)),
        (1, amqp.BasicPublish(), amqp.BasicPublish()),
        (1, None, None),
        ("1", amqp.BasicPublish(), None),
    ):
        with pytest.raises(EncodeError) as expected:
            amqp.encode_message(channel, method, properties, b"")
        with pytest.raises(EncodeError) as found:
            amqp.prepare_message(channel, method, properties)
        assert str(found.value) == str(expected.value)


def test_what_is_rare_is_encoded_as_well(amqp: ModuleType) -> None:
    class Own(amqp.BasicPublish):  # type: ignore[name-defined,misc]
        pass

    strict = amqp.Encoder(strict=True)
    long = amqp.BasicProperties(headers={"k": "x" * 9000})
    for encoder, method, properties in (
        (amqp.Encoder(), Own("orders"), amqp.BasicProperties()),
        (strict, amqp.BasicPublish("orders"), amqp.BasicProperties()),
        (amqp.Encoder(), amqp.BasicPublish("orders"), long),
    ):
        message = encoder.prepare_message(1, method, properties)
        method.routing_key = "key"
        assert message.encode(b"body", routing_key="key") == encoder.encode_message(
            1, method, properties, b"body"
        )
    with pytest.raises(EncodeError, match="shortstr holds a zero octet"):
        strict.prepare_message(1, amqp.BasicPublish()).encode(b"", routing_key="\0")


def test_kept_tables_and_times(amqp: ModuleType, impl: Implementation) -> None:
    table: RawTable = impl.raw_table(amqp.encode_table({"a": 1})[4:])
    message = amqp.prepare_message(1, amqp.BasicPublish(), amqp.BasicProperties(headers=table))
    when = datetime(2024, 5, 1, tzinfo=UTC)
    expected = amqp.BasicProperties(headers={"a": 1}, timestamp=when)
    assert message.encode(b"", timestamp=when) == amqp.encode_message(1, amqp.BasicPublish(), expected, b"")
    expected.headers = {"a": 1, "b": table}
    found = message.encode(b"", timestamp=when, headers={"a": 1, "b": table})
    assert found == amqp.encode_message(1, amqp.BasicPublish(), expected, b"")


def test_it_is_not_copied_nor_pickled(amqp: ModuleType) -> None:
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a prepared message cannot be copied or pickled"):
            action(prepared(amqp))


def test_it_is_made_once(amqp: ModuleType, impl: Implementation) -> None:
    message = prepared(amqp)
    rules = impl.kernel("writer").writer_rules("rabbitmq", False, 128)
    before = message.encode(b"body")
    with pytest.raises(TypeError, match="a prepared message is made once"):
        type(message).__init__(message, None, amqp.DIALECT, rules, 1, amqp.BasicPublish(), None, 0)
    assert message.encode(b"body") == before
