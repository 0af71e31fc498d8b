"""One entry looked up in a table of octets: it is what decoding the whole table gives, error and all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe, describe_error

from amqpcodec import FieldValue, Limits, rabbitmq
from amqpcodec._kernel.rawproperties_py import PropertiesReading

COMMON = {
    "first": "text", "flag": True, "small": FieldValue("b", -5), "byte": FieldValue("B", 200),
    "short": FieldValue("s", -300), "ushort": FieldValue("u", 60_000), "number": -7,
    "unsigned": FieldValue("i", 1 << 31),
    "long": 1 << 40, "real": FieldValue("f", 0.5), "double": 2.5, "when": datetime(2026, 11, 23, tzinfo=UTC),
    "nothing": None, "octets": FieldValue("x", b"\xff\0"), "": "empty key", "latin": FieldValue("S", b"\xe9"),
}  # fmt: skip
CHANGEABLE = {
    "x-death": [{"count": 2, "reason": "rejected", "keys": ["a", "b"]}],
    "nested": {"first": "inner"},
}
RARE = {"price": Decimal("1.25"), "\xe9t\xe9": "not ASCII"}
KEYS = [
    *COMMON,
    *CHANGEABLE,
    *RARE,
    "absent",
    "inner",
    "x" * 256,
    "\udce9",
    5,
    None,
    b"first",
    ("first",),
    [],
]


def entries(table: dict[str, Any]) -> bytes:
    return bytes(rabbitmq.encode_table(table))[4:]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return describe(call())
    except Exception as error:
        return describe_error(error)


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "get": lambda table, key: table.get(key, "default"),
    "[]": lambda table, key: table[key],
    "in": lambda table, key: key in table,
}


def assert_same(impl: Implementation, octets: bytes, *rest: Any, keys: Any = KEYS) -> None:
    """Each key gives the same in a table as it came and in one that was decoded before."""
    for key in keys:
        for name, way in WAYS.items():
            expected = outcome(lambda way=way, key=key: way(decoded(impl.raw_table(octets, *rest)), key))
            assert outcome(lambda way=way, key=key: way(impl.raw_table(octets, *rest), key)) == expected, (
                octets, key, name,
            )  # fmt: skip


def decoded(table: Any) -> Any:
    len(table)
    return table


@pytest.mark.parametrize("key", COMMON, ids=repr)
def test_a_common_value_is_found_without_decoding_the_others(impl: Implementation, key: str) -> None:
    octets = entries(COMMON | {"x-death": CHANGEABLE["x-death"]})
    if (impl.name, key) in {("py", "latin"), ("py", "")}:
        return  # its fast path declines what is not UTF-8, and an empty key is everywhere
    [found] = impl.kernel("lookup").look_up(octets, key, "rabbitmq", None)
    assert describe(found) == describe(impl.raw_table(octets)[key])
    assert impl.kernel("lookup").look_up(octets, "absent", "rabbitmq", None) == ()


@pytest.mark.parametrize("key", CHANGEABLE)
def test_a_value_that_can_be_changed_is_the_same_object_each_time(impl: Implementation, key: str) -> None:
    table = impl.raw_table(entries(COMMON | CHANGEABLE))
    assert table[key] is table.get(key)
    assert table.get("first") == "text"


def test_every_key_is_found_in_tables_of_all_kinds(impl: Implementation) -> None:
    for table in ({}, COMMON, CHANGEABLE, RARE, COMMON | CHANGEABLE | RARE, CHANGEABLE | COMMON):
        assert_same(impl, entries(table))
        for profile in ("rabbitmq", "amqp091", "amqp08", "qpid", "no such profile"):
            assert_same(impl, entries(table), profile, keys=["first", "number", "absent", []])


def test_of_equal_keys_the_later_wins(impl: Implementation) -> None:
    key, value = b"\5first", b"\5firstS\0\0\0\1x"
    for octets in (
        key + b"I\0\0\0\1" + key + b"I\0\0\0\2",
        key + b"I\0\0\0\1" + key + b"F\0\0\0\0",
        key + b"F\0\0\0\0" + key + b"I\0\0\0\2",
        # A key inside of a value looks like one.
        key + b"I\0\0\0\1\4restS" + len(value).to_bytes(4, "big") + value,
        b"\4restS" + len(value).to_bytes(4, "big") + value,
        b"\4restF" + len(value).to_bytes(4, "big") + value + key + b"I\0\0\0\3",
    ):
        assert_same(impl, octets, keys=["first", "rest", "absent"])


def damaged(octets: bytes) -> Iterator[bytes]:
    """Cut off at every octet, and with each octet changed in several ways."""
    for size in range(len(octets)):
        yield octets[:size]
    for place in range(len(octets)):
        for change in (1, 2, 16, 128, 255):
            yield octets[:place] + bytes([octets[place] ^ change]) + octets[place + 1 :]


def test_damaged_octets_are_refused_as_ever(impl: Implementation) -> None:
    table = entries({"first": "text", "flag": True} | CHANGEABLE | {"number": 5, "when": COMMON["when"]})
    for octets in damaged(table):
        assert_same(impl, octets, keys=["first", "number", "absent"])


@pytest.mark.parametrize("name", ["table_depth", "table_octets", "table_entries", "array_items"])
def test_limits_are_those_of_decoding_all(impl: Implementation, name: str) -> None:
    table = entries({"first": "text"} | CHANGEABLE | {"number": 5})
    for most in (1, 2, 3, 4, 9, len(table) - 1, len(table), 100):
        if name != "table_depth" or most <= 128:
            assert_same(impl, table, "rabbitmq", Limits(**{name: most}), keys=["first", "number", "absent"])


def test_a_table_that_is_asked_often_is_decoded_once(impl: Implementation) -> None:
    table = impl.raw_table(entries(COMMON))
    for _ in range(3):
        assert [table.get(key) for key in COMMON] == list(table.values())


@pytest.mark.parametrize(
    "before", [len, lambda table: [table["first"] for _ in range(4)]], ids=["len", "keys"]
)
def test_a_table_that_is_decoded_makes_no_value_again(impl: Implementation, before: Any) -> None:
    table = impl.raw_table(entries(COMMON))
    before(table)
    assert table["double"] is table["double"]


# -- headers of raw properties


def raw(codec: ModuleType, octets: bytes, **options: Any) -> Any:
    size = (12 + len(octets)).to_bytes(4, "big")
    frame = b"\x02\x00\x01" + size + b"\x00\x3c\0\0" + bytes(8) + octets + b"\xce"
    [header] = codec.FrameDecoder(properties="raw", **options).feed(frame)
    return header.payload.properties


def by_all(properties: Any, key: Any) -> Any:
    headers = properties.headers
    return "default" if headers is None else headers.get(key, "default")


def assert_same_header(codec: ModuleType, octets: bytes, keys: Any = KEYS, **options: Any) -> None:
    for key in keys:
        expected = outcome(lambda key=key: by_all(raw(codec, octets, **options), key))
        found = outcome(lambda key=key: raw(codec, octets, **options).header(key, "default"))
        assert found == expected, (octets, key)


def properties(codec: ModuleType, **values: Any) -> bytes:
    return bytes(codec.encode_header(1, codec.BasicProperties(**values), 0)[19:-1])


@pytest.mark.parametrize("options", [{}, {"tables": "raw"}, {"profile": "rabbitmq"}], ids=repr)
def test_a_header_of_raw_properties_is_that_of_the_decoded_ones(codec: ModuleType, options: Any) -> None:
    common = {"first": "text", "number": 5, "nested": {"a": "b"}}
    for values in (
        {}, {"headers": {}}, {"headers": common}, {"content_type": "text", "message_id": "m"},
        {"content_type": "text", "headers": common, "priority": 4, "timestamp": COMMON["when"], "type": "t"},
    ):  # fmt: skip
        assert_same_header(codec, properties(codec, **values), **options)
    assert raw(codec, properties(codec)).header("first") is None


BESIDE = {
    "content_type": "text", "content_encoding": "utf-8", "delivery_mode": 2, "priority": 4,
    "correlation_id": "c", "reply_to": "r", "expiration": "60", "message_id": "m",
    "timestamp": COMMON["when"], "type": "t", "user_id": "u", "app_id": "a",
}  # fmt: skip


@pytest.mark.parametrize("names", [[], *([name] for name in BESIDE), [*BESIDE]], ids="+".join)
def test_headers_are_found_without_decoding_what_stands_beside_them(
    impl: Implementation, names: list[str]
) -> None:
    codec = impl.dialect("rabbitmq-0-9-1")
    reading = PropertiesReading(codec.DIALECT, "rabbitmq", False, Limits(), False)
    headers_in, plan = impl.kernel("lookup").headers_in, reading.plan(60)
    beside = {name: BESIDE[name] for name in names}
    assert headers_in(properties(codec, **beside), plan) == b""
    assert headers_in(properties(codec, headers=COMMON, **beside), plan) == entries(COMMON)


def test_headers_in_damaged_properties_are_refused_as_ever(amqp: ModuleType) -> None:
    octets = properties(
        amqp,
        content_type="text",
        headers={"first": "text", "nested": {"a": 1}},
        delivery_mode=2,
        message_id="m-1",
    )
    for each in (*damaged(octets), octets + b"\0", b"\xff\xff" + octets[2:]):
        assert_same_header(amqp, each, ["first", "absent"])
        assert_same_header(amqp, each, ["first"], limits=Limits(table_entries=1, table_depth=1))


def test_strict_mode_finds_headers_as_well(amqp: ModuleType) -> None:
    octets = properties(amqp, headers={"first": "text"})
    assert raw(amqp, octets, strict=True).header("first") == "text"


def test_a_header_that_was_changed_stays_changed(amqp: ModuleType) -> None:
    kept = raw(amqp, properties(amqp, headers={"first": "text"}))
    assert kept.header("first") == "text"
    kept.headers["first"] = "other"
    assert kept.header("first") == "other"


def test_a_class_without_headers_has_no_header(impl: Implementation) -> None:
    codec = impl.dialect("amqp-0-8")
    for class_id, cls in codec.DIALECT.properties.items():
        if not any(field.attribute == "headers" for field in cls.spec.fields):
            kept = impl.kernel("rawproperties").RawProperties(b"\0\0", class_id, codec.DIALECT)
            with pytest.raises(AttributeError, match="'headers'"):
                kept.header("first")
            return
