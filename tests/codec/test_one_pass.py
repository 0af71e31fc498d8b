"""Methods, headers and messages written in one pass, compared with what is written field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, partial
from types import ModuleType
from typing import Any

import pytest
from support.campaign import stride
from support.encoder_values import encoder_values
from support.failures import Failures
from support.outcomes import encoding

from amqpcodec import EncodeError, InlineContent, Limits
from amqpcodec.profiles import PROFILES

ORDINARY = {
    "bit": True, "octet": 7, "short": 300, "long": 70000, "longlong": 2**40, "shortstr": "text",
    "longstr": b"o",
    "table": {"a": 1}, "timestamp": datetime(2024, 5, 1, tzinfo=UTC), "content": InlineContent(b"o"),
}  # fmt: skip
NESTED = {
    "a": {"b": [{"c": ["x", {"d": None}]}]},
    "e": [[], {}, [[1, 2.5, b"o", True, False, None, -1, 2**40]]],
}


@cache
def field_by_field(cls: Any) -> Any:
    """A class whose instances no fast path takes; they are encoded as those of its base."""
    return type(cls.__name__, (cls,), {})


def copies(cls: Any, values: dict[str, Any]) -> tuple[Any, Any]:
    """Two instances with values: one for the fast path, one that it declines."""
    return cls(**values), field_by_field(cls)(**values)


def variants(cls: Any, kinds: set[str]) -> Iterator[tuple[str, Callable[[Any], dict[str, Any]]]]:
    """For one field of each kind that is not among those: how to give it a value beside ordinary ones."""
    for field in cls.spec.fields:
        if field.type in kinds:
            continue
        kinds.add(field.type)
        others = {each.attribute: ORDINARY[each.type] for each in cls.spec.fields}
        yield field.attribute, lambda value, name=field.attribute, others=others: {**others, name: value}


def test_each_value_of_a_method(codec: ModuleType) -> None:
    failures = Failures()
    step = stride(3)
    # Each value meets fields of each kind, if not in each class.
    for turn, cls in enumerate(codec.METHODS.values()):
        for name, given in variants(cls, set()):
            with failures.case(f"{cls.__name__}.{name}"):
                for _, make in encoder_values()[turn % step :: step]:
                    fast, slow = copies(cls, given(make()))
                    assert encoding(codec.encode_method, 3, fast) == encoding(codec.encode_method, 3, slow)
    failures.check()


def test_each_value_of_a_property(codec: ModuleType) -> None:
    failures = Failures()
    for cls in codec.PROPERTIES.values():
        for name, given in variants(cls, set()):
            for what, make in encoder_values():
                with failures.case(f"{cls.__name__}.{name}, {what}"):
                    fast, slow = copies(cls, given(make()))
                    assert encoding(codec.encode_header, 3, fast, 5) == encoding(
                        codec.encode_header, 3, slow, 5
                    )
                    fast, slow = copies(cls, {name: make()})
                    assert encoding(codec.encode_header, 3, fast, 5) == encoding(
                        codec.encode_header, 3, slow, 5
                    )
    failures.check()


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_each_value_of_a_table_in_each_profile(amqp: ModuleType, profile: str, strict: bool) -> None:
    encode = amqp.Encoder(profile=profile, strict=strict).encode_header
    failures = Failures()
    for what, make in encoder_values():
        for wrap in (
            lambda value: {"k": value},
            lambda value: {"k": [1, value]},
            lambda value: {"k": {"é": value}},
        ):
            with failures.case(what):
                fast, slow = copies(amqp.BasicProperties, {"headers": wrap(make())})
                assert encoding(encode, 1, fast, 0) == encoding(encode, 1, slow, 0)
    failures.check()


@pytest.mark.parametrize(
    "time",
    [
        datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), datetime(2000, 2, 29, 23, 59, 59, 999, UTC),
        datetime(1900, 3, 1), datetime(2024, 5, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59),
        datetime(2024, 5, 1, tzinfo=timezone(timedelta(hours=2))),
        datetime(2024, 5, 1, tzinfo=timezone(timedelta(0))),
        0, 2**63, 2**64 - 1, 2**64, -1, True,
    ],
)  # fmt: skip
def test_each_time(amqp: ModuleType, time: Any) -> None:
    for values in ({"timestamp": time}, {"headers": {"at": time}}):
        fast, slow = copies(amqp.BasicProperties, values)
        assert encoding(amqp.encode_header, 1, fast, 0) == encoding(amqp.encode_header, 1, slow, 0)


@pytest.mark.parametrize("depth", [1, 5, 31, 32, 33, 34, 63, 64, 65, 128])
@pytest.mark.parametrize("limit", [None, 1, 4, 5, 6, 32, 33])
def test_each_depth(amqp: ModuleType, depth: int, limit: int | None) -> None:
    encode = amqp.Encoder(limits=limit and Limits(table_depth=limit)).encode_header
    for nest in (lambda value: {"k": value}, lambda value: {"k": [value]}):
        table: Any = {"k": 1}
        for _ in range(depth - 1):
            table = nest(table)
        fast, slow = copies(amqp.BasicProperties, {"headers": table})
        assert encoding(encode, 1, fast, 0) == encoding(encode, 1, slow, 0)


def test_lengths_where_one_pass_ends(amqp: ModuleType) -> None:
    failures = Failures()
    for size in (*range(3980, 4140), 70000):
        with failures.case(str(size)):
            for values in (
                {"headers": {"k": "x" * size}},
                {"headers": {"k": b"x" * size, "n": 1}, "message_id": "m" * 9},
                {"headers": {"k": "é" * (size // 2)}, "timestamp": 5},
                {"headers": {"k": ["x" * (size - 50), 1, -1, 2**40, True, None, 0.5]}, "priority": 3},
            ):
                fast, slow = copies(amqp.BasicProperties, values)
                method, twin = copies(amqp.BasicPublish, {"exchange": "e"})
                one = encoding(amqp.encode_message, 1, method, fast, b"body")
                assert one == encoding(amqp.encode_message, 1, twin, slow, b"body")
    failures.check()


def bodies() -> list[Any]:
    return [
        b"", b"x", b"x" * 100, b"x" * 4089, bytearray(b"octets"), memoryview(b"octets"),
        memoryview(b"octets")[::2],
        "text", None, 7, type("Octets", (bytes,), {})(b"octets"),
    ]  # fmt: skip


@pytest.mark.parametrize("frame_max", [None, 0, 9, 20, 30, 60, 100, 4096, 8, -1, 2**70, True, "9"])
@pytest.mark.parametrize("channel", [1, 65535, 0, 65536, -1, True, None])
def test_each_channel_body_and_frame_max(amqp: ModuleType, channel: Any, frame_max: Any) -> None:
    for body in bodies():
        for values in ({}, {"headers": NESTED, "content_type": "text/plain"}):
            for method in (amqp.BasicPublish, amqp.BasicDeliver, amqp.BasicAck):
                fast, slow = copies(method, {})
                header, twin = copies(amqp.BasicProperties, values)
                one, two = (
                    encoding(
                        lambda *given: amqp.encode_message(*given, frame_max=frame_max), channel, *pair, body
                    )
                    for pair in ((fast, header), (slow, twin))
                )
                assert one == two


def test_properties_that_do_not_belong(codec: ModuleType) -> None:
    for method in codec.METHODS.values():
        for properties in (None, 7, method(), *(cls() for cls in codec.PROPERTIES.values())):
            fast, slow = copies(method, {})
            one = encoding(codec.encode_message, 1, fast, properties, b"body")
            assert one == encoding(codec.encode_message, 1, slow, properties, b"body")


def test_each_set_of_properties_has_its_flags_and_its_order(codec: ModuleType) -> None:
    failures = Failures()
    for cls in codec.PROPERTIES.values():
        given = {field.attribute: ORDINARY[field.type] for field in cls.spec.fields}
        texts = {
            field.attribute: f"{field.attribute} has a text of its own"[: 3 * at + 1]
            for at, field in enumerate(cls.spec.fields)
            if field.type == "shortstr"
        }
        given.update(texts)
        names = list(given)
        for first in range(len(names)):
            for last in range(first, len(names) + 1):
                with failures.case(f"{cls.__name__} {first} {last}"):
                    fast, slow = copies(cls, {name: given[name] for name in names[first:last]})
                    one = encoding(codec.encode_header, 3, fast, 5)
                    assert one[0] == "octets"
                    assert one == encoding(codec.encode_header, 3, slow, 5)
    failures.check()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 3980, 4060, 4073, 4096, 70000])
@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_raw_properties_go_out_as_the_ordinary_ones_up_to_frame_max(
    amqp: ModuleType, size: int, spare: int
) -> None:
    properties = amqp.BasicProperties(headers={"k": b"x" * size}, app_id="app" * 20)
    header = amqp.encode_header(1, properties, 0)
    method = amqp.BasicDeliver("tag", 1, False, "", "key")
    octets = amqp.encode_message(1, method, properties, b"")
    [raw] = [message.properties for message in amqp.MessageDecoder(properties="raw").feed(octets)]
    for body in (b"", b"body", b"x" * 300):
        sent = {"frame_max": len(header) + spare}
        one, two = (
            encoding(partial(amqp.encode_message, **sent), 1, method, each, body)
            for each in (raw, properties)
        )
        assert one[0] == two[0]
        assert (one[0] == "octets") == (spare >= 0)
        if spare >= 0:
            assert one == two
            pieces = list(amqp.encode_messages([(1, method, raw, body)] * 2, **sent))
            assert b"".join(pieces) == one[1] * 2


def test_raw_properties_that_are_the_shortest_header_end_a_message_and_a_piece(amqp: ModuleType) -> None:
    method, flags = amqp.BasicDeliver("tag", 1, False, "", "key"), amqp.BasicProperties()
    octets = amqp.encode_message(1, method, flags, b"")
    [message] = amqp.MessageDecoder(properties="raw").feed(octets)
    assert amqp.encode_message(1, method, message.properties, b"") == octets
    # As many as reach to the end of a piece, with each number of octets left there.
    for spare in range(40):
        filling = 65536 - len(amqp.encode_message(1, method, flags, b"x")) + 1 - len(octets) - spare
        messages = [(1, method, flags, b"x" * filling), *[(1, method, message.properties, b"")] * 2]
        pieces = list(amqp.encode_messages(messages))
        assert b"".join(pieces) == b"".join(amqp.encode_message(*each) for each in messages)


def test_a_method_is_no_header_and_properties_are_no_method(amqp: ModuleType) -> None:
    fast, slow = copies(amqp.BasicProperties, {})
    assert encoding(amqp.encode_method, 1, fast) == encoding(amqp.encode_method, 1, slow)
    fast, slow = copies(amqp.BasicAck, {})
    assert encoding(amqp.encode_header, 1, fast, 0) == encoding(amqp.encode_header, 1, slow, 0)


@pytest.mark.parametrize("size", [0, 1, 2**63, 2**64 - 1, 2**64, -1, True, None, 1.0])
@pytest.mark.parametrize("weight", [0, 1, 65535, 65536, -1, True, False, None])
def test_each_size_and_weight_of_a_header(amqp: ModuleType, size: Any, weight: Any) -> None:
    fast, slow = copies(amqp.BasicProperties, {"priority": 1})
    one, two = (
        encoding(lambda each: amqp.encode_header(1, each, size, weight=weight), each) for each in (fast, slow)
    )
    assert one == two


def test_arguments_by_position_and_by_name_are_the_same_call(amqp: ModuleType) -> None:
    encoder, derived = amqp.Encoder(), type("Derived", (amqp.Encoder,), {})()
    method, properties = amqp.BasicPublish(exchange="e"), amqp.BasicProperties(priority=1)
    by_name = {"channel": 3, "method": method, "properties": properties, "body": b"body"}
    for encode in (
        amqp.encode_message, encoder.encode_message, derived.encode_message,
        lambda *given, **named: amqp.Encoder.encode_message(encoder, *given, **named),
    ):  # fmt: skip
        octets = encode(3, method, properties, b"body")
        assert len(octets) == len(encode(3, method, properties, b"")) + len(b"body") + 8
        assert octets == encode(**by_name) == encode(3, method, properties, body=b"body")
        assert octets == encode(3, method, properties, b"body", frame_max=None, validate=False)
        with pytest.raises(EncodeError):
            encode(3, method, properties, b"body", frame_max=9)
        for wrong in ((), (3, method, properties), (3, method, properties, b"body", 0)):
            with pytest.raises(TypeError):
                encode(*wrong)
    for encode in (amqp.encode_method, encoder.encode_method, derived.encode_method):
        octets = encode(3, amqp.BasicAck(7))
        assert octets == encode(channel=3, method=amqp.BasicAck(7)) == encode(3, method=amqp.BasicAck(7))
        with pytest.raises(EncodeError):
            encode(3, amqp.BasicAck(7), frame_max=9)
        for wrong in ((), (3,), (3, amqp.BasicAck(7), 0)):
            with pytest.raises(TypeError):
                encode(*wrong)


def test_an_encoder_made_around_its_constructor_raises(amqp: ModuleType) -> None:
    encoder = amqp.Encoder.__new__(amqp.Encoder)
    refuse_all(amqp, encoder)
    with pytest.raises(ValueError, match="profile"):
        encoder.__init__(profile="none such")
    refuse_all(amqp, encoder)


def refuse_all(amqp: ModuleType, encoder: Any) -> None:
    """Call each function of an encoder that was not initialised."""
    for call in (
        lambda: encoder.encode_message(1, amqp.BasicPublish(), None, b""),
        lambda: encoder.encode_message(1, amqp.BasicPublish(), None, b"", frame_max=0),
        lambda: encoder.encode_method(1, amqp.BasicAck()),
        lambda: encoder.encode_header(1, amqp.BasicProperties(), 0),
        lambda: encoder.encode_messages([]),
        lambda: encoder.prepare_message(1, amqp.BasicPublish()),
    ):
        with pytest.raises(AttributeError):
            call()
