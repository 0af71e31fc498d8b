"""Values that the wire cannot carry: refused with their location, the same in both builds."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.encoder_values import encoder_values
from support.failures import Failures
from support.implementation import Implementation
from support.outcomes import encoding

from amqpcodec import DIALECTS, EncodeError, FieldValue, Limits
from amqpcodec._kernel import writer_py
from amqpcodec.profiles import PROFILES

Place = Callable[[ModuleType, Any], bytes]

LOCATIONS: dict[str, Place] = {
    "bit": lambda m, v: m.encode_method(1, m.Basic.Ack(1, v)),
    "octet": lambda m, v: m.encode_method(0, m.Connection.Start(v)),
    "short": lambda m, v: m.encode_method(0, m.Connection.Tune(v)),
    "long": lambda m, v: m.encode_method(0, m.Connection.Tune(0, v)),
    "longlong": lambda m, v: m.encode_method(1, m.Basic.Ack(v)),
    "shortstr": lambda m, v: m.encode_method(1, m.Queue.Declare(queue=v)),
    "longstr": lambda m, v: m.encode_method(0, m.Connection.Secure(v)),
    "table": lambda m, v: m.encode_method(1, m.Queue.Declare(arguments={} if v is None else v)),
    "property octet": lambda m, v: m.encode_header(1, m.BasicProperties(priority=v), 0),
    "property shortstr": lambda m, v: m.encode_header(1, m.BasicProperties(message_id=v), 0),
    "property table": lambda m, v: m.encode_header(1, m.BasicProperties(headers=v), 0),
    "property timestamp": lambda m, v: m.encode_header(1, m.BasicProperties(timestamp=v), 0),
    "channel": lambda m, v: m.encode_method(v, m.Basic.Ack(1)),
    "body size": lambda m, v: m.encode_header(1, m.BasicProperties(), v),
    "weight": lambda m, v: m.encode_header(1, m.BasicProperties(), 0, weight=v),
    "body": lambda m, v: m.encode_body(1, v),
    "body of a message": lambda m, v: m.encode_message(1, m.Basic.Publish(), None, v),
    "body in parts": lambda m, v: b"|".join(m.encode_message_parts(1, m.Basic.Publish(), None, v)),
    "method": lambda m, v: m.encode_method(1, v),
    "properties": lambda m, v: m.encode_header(1, v, 0),
    "payload": lambda m, v: m.encode_frame(frame_of(m, 3, v)),
    "in a table": lambda m, v: m.encode_method(1, m.Queue.Declare(arguments={"k": v})),
    "deep in a table": lambda m, v: m.encode_method(1, m.Queue.Declare(arguments={"k": [0, {"deep": v}]})),
    "key of a table": lambda m, v: m.encode_table({v: 1}),
}  # fmt: skip


def frame_of(module: ModuleType, frame_type: Any, payload: Any) -> Any:
    records = Implementation(module.__name__.rpartition("_")[2]).records
    return records.Frame(frame_type, 1, payload)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_both_builds_take_and_refuse_the_same(
    both: tuple[Implementation, Implementation], location: str, strict: bool
) -> None:
    failures = Failures()
    modules = [impl.dialect("rabbitmq-0-9-1") for impl in both]
    for name, make in encoder_values():
        if location == "key of a table" and not hashable(make()):
            continue
        with failures.case(name):
            value = make()
            one, two = (encoding(LOCATIONS[location], module, value) for module in modules)
            assert one == two
    failures.check(at_least=80)


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("profile", PROFILES)
def test_both_builds_take_and_refuse_the_same_under_every_tag(
    both: tuple[Implementation, Implementation], profile: str
) -> None:
    tags = sorted({tag for each in PROFILES.values() for tag in each.tags} | {"z"})
    failures = Failures()
    for tag in tags:
        for name, make in encoder_values():
            with failures.case(f"{tag} {name}"):
                table = {"k": FieldValue(tag, make())}
                one, two = (encoding(impl.tables.encode_table, table, profile) for impl in both)
                assert one == two
    failures.check(at_least=1000)


@pytest.mark.parametrize("profile", PROFILES)
def test_both_builds_take_and_refuse_their_raw_tables_alike(
    both: tuple[Implementation, Implementation], profile: str
) -> None:
    written = 0
    for tag in (None, "F", "A", "S", "I", "x", "V"):
        outcomes = []
        for impl in both:
            value = impl.raw_table(b"not a table", "qpid")
            table = {"k": [value] if tag is None else FieldValue(tag, value)}
            encode = impl.tables.encode_table
            outcomes.append((encoding(encode, table, profile), encoding(encode, {"k": value}, profile)))
        assert outcomes[0] == outcomes[1]
        written += outcomes[0][0][0] == "octets"
    assert written


@pytest.mark.parametrize("profile", PROFILES)
def test_both_builds_choose_the_same_tag(both: tuple[Implementation, Implementation], profile: str) -> None:
    failures = Failures()
    for name, make in encoder_values():
        with failures.case(name):
            for table in ({"k": make()}, {"k": [make()]}, make()):
                one, two = (encoding(impl.tables.encode_table, table, profile) for impl in both)
                assert one == two
    failures.check(at_least=80)


REFUSED: list[tuple[str, Any, str]] = [
    ("bit", 1, "a bit must be True or False, not int"),
    ("bit", None, "a bit must be True or False, not NoneType"),
    ("octet", True, "octet must be an int, not bool"),
    ("octet", 256, "octet must be 0 to 255, not 256"),
    ("octet", 1.0, "octet must be an int, not float"),
    ("short", -1, "short must be 0 to 65535, not -1"),
    ("short", 65536, "short must be 0 to 65535, not 65536"),
    ("long", 2**32, "long must be 0 to 4294967295, not 4294967296"),
    ("longlong", 2**64, "longlong must be 0 to 18446744073709551615, not 18446744073709551616"),
    ("longlong", "1", "longlong must be an int, not str"),
    ("shortstr", b"octets", "shortstr must be a str, not bytes"),
    ("shortstr", "x" * 256, "shortstr must have at most 255 octets, not 256"),
    ("shortstr", "é" * 128, "shortstr must have at most 255 octets, not 256"),
    ("shortstr", "\ud800", "text holds a lone surrogate that stands for no octet"),
    ("longstr", 5, "expected bytes, not int"),
    ("table", [("a", 1)], "expected a mapping, not list"),
    ("table", "text", "expected a mapping, not str"),
    ("property octet", True, "octet must be an int, not bool"),
    ("property timestamp", -1, "longlong must be 0 to 18446744073709551615, not -1"),
    ("property timestamp", "now", "longlong must be an int, not str"),
    ("channel", 65536, "short must be 0 to 65535, not 65536"),
    ("channel", None, "short must be an int, not NoneType"),
    ("body size", -1, "longlong must be 0 to 18446744073709551615, not -1"),
    ("weight", 2**16, "short must be 0 to 65535, not 65536"),
    ("body", "text", "a body must be bytes-like, not str"),
    ("method", None, "expected a method, such as Queue.Declare(), not NoneType"),
    ("properties", {}, "expected properties, such as BasicProperties(), not dict"),
]


@pytest.mark.parametrize(("location", "value", "message"), REFUSED)
def test_arguments_that_do_not_fit_are_refused(
    amqp: ModuleType, location: str, value: Any, message: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        LOCATIONS[location](amqp, value)
    assert caught.value.message == message
    # Nothing of a fast path that declined before.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


NAMED = {
    "bit": ("basic.ack", "multiple"),
    "octet": ("connection.start", "version-major"),
    "shortstr": ("queue.declare", "queue"),
    "table": ("queue.declare", "arguments"),
    "property octet": ("basic", "priority"),
    "property table": ("basic", "headers"),
    "channel": ("basic.ack", "channel"),
    "body size": ("basic", "body-size"),
    "weight": ("basic", "weight"),
}


@pytest.mark.parametrize("location", NAMED)
def test_refusals_name_method_and_field(amqp: ModuleType, location: str) -> None:
    with pytest.raises(EncodeError) as caught:
        LOCATIONS[location](amqp, object())
    assert (caught.value.method, caught.value.field) == NAMED[location]
    assert str(caught.value) == f"{'.'.join(NAMED[location])}: {caught.value.message}"
    assert caught.value.message.endswith(" not object")


RANGES = [
    ("rabbitmq", "b", -128, 127, "int8"), ("rabbitmq", "B", 0, 255, "uint8"),
    ("rabbitmq", "s", -32768, 32767, "int16"), ("rabbitmq", "u", 0, 65535, "uint16"),
    ("rabbitmq", "I", -2147483648, 2147483647, "int32"), ("rabbitmq", "i", 0, 4294967295, "uint32"),
    ("rabbitmq", "l", -9223372036854775808, 9223372036854775807, "int64"),
    ("wg-0-9-1", "l", 0, 18446744073709551615, "uint64"),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "tag", "least", "most", "name"), RANGES)
def test_an_integer_with_a_tag_is_refused_beyond_its_range(
    impl: Implementation, profile: str, tag: str, least: int, most: int, name: str
) -> None:
    for number in (least, most):
        octets = impl.tables.encode_table({"k": FieldValue(tag, number)}, profile)
        assert impl.tables.decode_table(octets, profile) == {"k": number}
    for number in (least - 1, most + 1):
        with pytest.raises(EncodeError) as caught:
            impl.tables.encode_table({"k": FieldValue(tag, number)}, profile)
        assert str(caught.value) == f"table['k']: {name} must be {least} to {most}, not {number}"


@pytest.mark.parametrize("value", ["\u0100", "", "ab", 7])
def test_a_character_is_one_up_to_ff(impl: Implementation, value: Any) -> None:
    said = "table['k']: character must be a str of one character up to U+00FF"
    with pytest.raises(EncodeError) as caught:
        impl.tables.encode_table({"k": FieldValue("k", value)}, profile="qpid")
    assert str(caught.value) == said


PATHS: list[tuple[Any, tuple[Any, ...]]] = [
    ({"a": object()}, ("a",)),
    ({"a": 1, "b": {"c": object()}}, ("b", "c")),
    ({"a": [1, {"b": [2, 3, object()]}]}, ("a", 1, "b", 2)),
    ({"a": FieldValue("F", {"b": object()})}, ("a", "b")),
    ({"a": FieldValue("A", [0, object()])}, ("a", 1)),
    ({5: 1}, (5,)),
    ({"a": {"x" * 256: 1}}, ("a", "x" * 256)),
]


REASONS = {
    (5,): "shortstr must be a str, not int",
    ("a", "x" * 256): "shortstr must have at most 255 octets, not 256",
}


@pytest.mark.parametrize(("table", "path"), PATHS)
def test_refusals_lead_to_the_value_inside_a_table(
    amqp: ModuleType, table: Any, path: tuple[Any, ...]
) -> None:
    with pytest.raises(EncodeError) as caught:
        amqp.encode_header(1, amqp.BasicProperties(headers=table), 0)
    assert caught.value.path == path
    assert (caught.value.method, caught.value.field) == ("basic", "headers")
    where = "basic.headers" + "".join(f"[{step!r}]" for step in path)
    assert str(caught.value) == f"{where}: {caught.value.message}"
    assert caught.value.message == REASONS.get(path, "no table tag carries object")


UNKNOWN_TO: list[tuple[str, Any, str]] = [
    ("0-8", True, "cannot carry bool (tag 't'); wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("0-8", None, "cannot carry NoneType (tag 'V'); 0-9, wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("0-8", 2**31, "cannot carry 2147483648; wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("0-9", 1.5, "cannot carry float (tag 'd'); wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("0-9", [1], "cannot carry list (tag 'A'); wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("0-8", 2**64 - 1, "cannot carry 18446744073709551615; wg-0-9-1 can"),
    ("0-8", -(2**63), "cannot carry -9223372036854775808; wg-0-9-1, rabbitmq, qpid, rabbitmq-nan can"),
    ("rabbitmq", 2**63, "cannot carry 9223372036854775808; wg-0-9-1 can"),
]


@pytest.mark.parametrize(("profile", "value", "message"), UNKNOWN_TO)
def test_refusals_name_the_profiles_that_could(
    impl: Implementation, profile: str, value: Any, message: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        impl.tables.encode_table({"k": value}, profile)
    assert caught.value.message == f"table profile {profile} {message}"
    assert caught.value.path == ("k",)


class Real(float):
    """A float of a program's own, which shows itself otherwise."""

    def __repr__(self) -> str:
        return "not to be shown"


NOT_FINITE = [float("nan"), float("inf"), -float("inf"), Real("inf"), FieldValue("f", float("-inf"))]


@pytest.mark.parametrize("value", [*NOT_FINITE, FieldValue("d", Real("nan"))], ids=repr)
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_what_a_rabbitmq_ends_the_connection_for_is_refused_unless_the_profile_lets_it_out(
    amqp: ModuleType, value: Any, strict: bool
) -> None:
    properties = amqp.BasicProperties(headers={"a": [1.5, {"k": value}]})
    number = float(value.value if isinstance(value, FieldValue) else value)
    for encode in (
        amqp.Encoder(strict=strict).encode_message,
        lambda *parts: list(amqp.Encoder(strict=strict).encode_messages([parts])),
    ):
        with pytest.raises(EncodeError) as caught:
            encode(1, amqp.Basic.Publish(), properties, b"")
        assert caught.value.path == ("a", 1, "k")
        wanted = f"table profile rabbitmq refuses {number!r}, as its broker does; rabbitmq-nan does not"
        assert caught.value.message == wanted
    octets = amqp.Encoder(strict=strict, profile="rabbitmq-nan").encode_message(
        1, amqp.Basic.Publish(), properties, b""
    )
    [message] = amqp.MessageDecoder(strict=strict).feed(octets)
    assert repr(message.properties.headers["a"][1]["k"]) == repr(number)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
@pytest.mark.parametrize("profile", PROFILES)
def test_no_profile_carries_more_than_64_bits(impl: Implementation, profile: str, value: int) -> None:
    with pytest.raises(EncodeError) as caught:
        impl.tables.encode_table({"k": value}, profile)
    assert caught.value.message == "no table tag carries an int of more than 64 bits"
    assert caught.value.path == ("k",)


@pytest.mark.parametrize("location", LOCATIONS)
def test_only_encode_errors_are_raised_for_values(amqp: ModuleType, location: str) -> None:
    failures = Failures()
    for name, make in encoder_values():
        if location == "key of a table" and not hashable(make()):
            continue
        with failures.case(name):
            outcome = encoding(LOCATIONS[location], amqp, make())
            assert outcome[0] in ("octets", "EncodeError")
            assert "not to be shown" not in str(outcome[1])
    failures.check(at_least=80)


@pytest.mark.parametrize("make", ["dict", "list"])
def test_values_that_hold_themselves_are_refused_at_the_depth_limit(amqp: ModuleType, make: str) -> None:
    holder: Any = {} if make == "dict" else []
    if make == "dict":
        holder["again"] = holder
    else:
        holder.append(holder)
    encoder = amqp.Encoder(limits=Limits(table_depth=20))
    with pytest.raises(EncodeError) as caught:
        encoder.encode_method(1, amqp.Queue.Declare(arguments={"k": holder}))
    assert caught.value.message == "tables nested deeper than 20"
    assert len(caught.value.path) == 20


def test_a_table_that_changes_while_it_is_encoded_is_refused(amqp: ModuleType) -> None:
    table: dict[str, Any] = {}

    class Meddling(UserDict[str, Any]):
        def items(self) -> Any:
            table[f"new{len(table)}"] = 1
            return super().items()

    table["inner"] = Meddling(a=1)
    with pytest.raises(EncodeError, match="changed while being encoded"):
        amqp.encode_table(table)


def test_strict_encoders_refuse_zero_octets_in_text(codec: ModuleType) -> None:
    start = codec.Connection.Open(virtual_host="a\0b")
    assert b"a\0b" in codec.encode_method(0, start)
    with pytest.raises(EncodeError, match="zero octet"):
        codec.Encoder(strict=True).encode_method(0, start)


def test_records_of_another_dialect_are_refused(impl: Implementation, dialect: str) -> None:
    module = impl.dialect(dialect)
    for other in set(DIALECTS) - {dialect}:
        foreign = impl.dialect(other)
        with pytest.raises(EncodeError, match=f"a method of {other}, not of {dialect}"):
            module.encode_method(1, foreign.Basic.Ack(1))
        with pytest.raises(EncodeError, match=f"properties of {other}, not of {dialect}"):
            module.encode_header(1, foreign.BasicProperties(), 0)


def test_opaque_frames_are_refused_where_the_dialect_has_none(impl: Implementation, dialect: str) -> None:
    module = impl.dialect(dialect)
    for frame_type in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 65, 256):
        frame = impl.records.Frame(frame_type, 0, impl.records.OpaquePayload(b"o"))
        if frame_type in (4, 5, 6, 7) and dialect in ("amqp-0-8", "qpid-0-8", "amqp-0-9"):
            assert module.encode_frame(frame)[:1] == bytes([frame_type])
        else:
            with pytest.raises(EncodeError, match=f"no opaque frame of type {frame_type}"):
                module.encode_frame(frame)


class Text(str):
    """Is written by the slow path, since it is of a class of its own."""


def test_a_long_string_has_no_more_octets_than_its_size_can_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 5 in place of 4 GiB, which only the pure build can have."""
    amqp, value = Implementation("py").dialect("rabbitmq-0-9-1"), {"k": Text("123456")}
    LOCATIONS["table"](amqp, value)
    monkeypatch.setattr(writer_py, "_MAX_SIZE", 5)
    with pytest.raises(EncodeError, match="longstr must have at most 5 octets, not 6"):
        LOCATIONS["table"](amqp, value)
