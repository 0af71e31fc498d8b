"""Field tables on their own, and those kept as the octets they came in."""

from __future__ import annotations

import collections.abc
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe
from support.vectors import moment

from amqpcodec import DecodeError, EncodeError, FieldValue
from amqpcodec.profiles import PROFILES, table_profile

ENTRIES = b"\x01aI\0\0\0\5\x01bS\0\0\0\1x"


class TestFunctions:
    def test_a_dialect_reads_and_writes_by_its_own_profile(self, codec: ModuleType) -> None:
        octets = codec.encode_table({"a": 5, "b": "x"})
        assert octets == b"\0\0\0\x0f" + ENTRIES
        assert codec.decode_table(octets) == {"a": 5, "b": "x"}
        assert codec.decode_table(memoryview(bytearray(octets))) == {"a": 5, "b": "x"}

    @pytest.mark.parametrize("strict", [False, True])
    def test_texts_of_every_length(self, impl: Implementation, strict: bool) -> None:
        for size in (*range(256), 300):
            text = "".join(chr(33 + at % 90) for at in range(size))
            key = text[:255]
            entry = bytes([len(key)]) + key.encode() + b"S" + size.to_bytes(4, "big") + text.encode()
            octets = impl.tables.encode_table({key: text}, strict=strict)
            assert octets == len(entry).to_bytes(4, "big") + entry

    @pytest.mark.parametrize(
        ("octets", "code", "offset", "message"),
        [
            (b"", 501, 0, "length of a table needs 4 octets, 0 left"),
            (b"\0\0\0\x01", 501, 0, "table of 1 octets, 0 left"),
            (b"\0\0\0\x01\0", 502, 4, "table key of 0 octets and a tag, 0 left"),
            (b"\0\0\0\x03\x01kz", 502, 6, "tag 'z' is unknown to table profile rabbitmq"),
            (b"\0\0\0\x05\x01kI\0\0", 502, 7, "table value needs 4 octets, 2 left"),
            (b"\0\0\0\x07\x01kS\0\0\0\1", 502, 7, "table value of 1 octets, 0 left"),
        ],
    )
    def test_faults_have_a_code_and_an_offset(
        self, impl: Implementation, octets: bytes, code: int, offset: int, message: str
    ) -> None:
        with pytest.raises(DecodeError) as caught:
            impl.tables.decode_table(octets)
        error = caught.value
        assert (error.reply_code, error.offset, error.message) == (code, offset, message)
        assert (error.field, error.fatal) == ("table", False)

    def test_nothing_may_follow_a_table(self, impl: Implementation) -> None:
        with pytest.raises(DecodeError, match="1 octets left over") as caught:
            impl.tables.decode_table(b"\0\0\0\0\0")
        assert (caught.value.reply_code, caught.value.offset) == (501, 4)

    def test_of_two_equal_keys_the_later_wins(self, impl: Implementation) -> None:
        octets = b"\0\0\0\x0e\x01kI\0\0\0\1\x01kI\0\0\0\2"
        assert impl.tables.decode_table(octets) == {"k": 2}
        with pytest.raises(DecodeError, match="table key 'k' twice"):
            impl.tables.decode_table(octets, strict=True)

    def test_unknown_profiles_are_named(self, impl: Implementation) -> None:
        for function in (impl.tables.decode_table, impl.tables.encode_table):
            with pytest.raises(ValueError, match="no table profile '0-7'; there are 0-8, 0-9, wg-0-9-1"):
                function(b"", "0-7")
        assert set(PROFILES) == {"0-8", "0-9", "wg-0-9-1", "rabbitmq", "qpid", "rabbitmq-nan"}
        assert all(table_profile(name).name == name for name in PROFILES)

    def test_strict_text(self, impl: Implementation) -> None:
        for key in (b"\x01\0V", b"\x01\xffV"):
            octets = b"\0\0\0\3" + key
            assert impl.tables.decode_table(octets) == {key[1:2].decode("utf-8", "surrogateescape"): None}
            with pytest.raises(DecodeError, match="shortstr"):
                impl.tables.decode_table(octets, strict=True)
        with pytest.raises(EncodeError, match="zero octet"):
            impl.tables.encode_table({"\0": 1}, strict=True)


VALUES_OF_TAGS: list[tuple[str, Any, bytes]] = [
    ("rabbitmq", True, b"t\1"),
    ("rabbitmq", 5, b"I\0\0\0\5"),
    ("rabbitmq", -(2**31), b"I\x80\0\0\0"),
    ("rabbitmq", 2**31, b"l\0\0\0\0\x80\0\0\0"),
    ("rabbitmq", -(2**63), b"l\x80\0\0\0\0\0\0\0"),
    ("rabbitmq", 1.5, b"d\x3f\xf8\0\0\0\0\0\0"),
    ("rabbitmq", Decimal("-1.25"), b"D\2\xff\xff\xff\x83"),
    ("rabbitmq", Decimal("1E+2"), b"D\0\0\0\0\x64"),
    ("rabbitmq", "é", b"S\0\0\0\2\xc3\xa9"),
    ("rabbitmq", "\udcff", b"S\0\0\0\1\xff"),
    ("rabbitmq", b"x", b"x\0\0\0\1x"),
    ("wg-0-9-1", b"x", b"S\0\0\0\1x"),
    ("0-8", b"x", b"S\0\0\0\1x"),
    ("0-9", b"x", b"S\0\0\0\1x"),
    ("rabbitmq", moment(5), b"T\0\0\0\0\0\0\0\5"),
    ("rabbitmq", None, b"V"),
    ("0-9", None, b"V"),
    ("rabbitmq", {"k": None}, b"F\0\0\0\3\x01kV"),
    ("rabbitmq", [None, (True,)], b"A\0\0\0\x08VA\0\0\0\2t\1"),
    ("qpid", 2**31, b"l\0\0\0\0\x80\0\0\0"),
    ("wg-0-9-1", 2**31, b"l\0\0\0\0\x80\0\0\0"),
    ("wg-0-9-1", -(2**63), b"L\x80\0\0\0\0\0\0\0"),
    ("rabbitmq", FieldValue("L", -1), b"L" + b"\xff" * 8),
    ("wg-0-9-1", FieldValue("l", 2**64 - 1), b"l" + b"\xff" * 8),
    ("rabbitmq", FieldValue("s", -2), b"s\xff\xfe"),
    ("wg-0-9-1", FieldValue("s", "ab"), b"s\2ab"),
    ("rabbitmq", FieldValue("f", 0.1), b"f\x3d\xcc\xcc\xcd"),
    ("qpid", FieldValue("k", "ÿ"), b"k\xff"),
]


@pytest.mark.parametrize(("profile", "value", "octets"), VALUES_OF_TAGS)
def test_values_get_the_tag_of_their_profile(
    impl: Implementation, profile: str, value: Any, octets: bytes
) -> None:
    size = (len(octets) + 2).to_bytes(4, "big")
    assert impl.tables.encode_table({"k": value}, profile) == size + b"\x01k" + octets


class TestRaw:
    """RawTable: the octets, and a mapping that is read when it is first looked at."""

    def test_it_is_a_mapping(self, impl: Implementation) -> None:
        table = impl.raw_table(ENTRIES)
        assert isinstance(table, collections.abc.Mapping)
        assert (table["a"], list(table), len(table), "b" in table) == (5, ["a", "b"], 2, True)
        assert dict(table) == {"a": 5, "b": "x"}
        with pytest.raises(KeyError):
            table["c"]
        with pytest.raises(TypeError):
            table["c"] = 1  # type: ignore[index]

    def test_it_equals_what_it_holds(self, impl: Implementation) -> None:
        assert impl.raw_table(ENTRIES) == impl.raw_table(ENTRIES) == {"a": 5, "b": "x"}
        assert impl.raw_table(ENTRIES) != {"a": 6}
        assert impl.raw_table(ENTRIES) != "text"
        with pytest.raises(TypeError, match="unhashable"):
            hash(impl.raw_table(ENTRIES))
        assert repr(impl.raw_table(b"")) == "RawTable(b'', 'rabbitmq')"

    def test_its_profile_reads_it(self, impl: Implementation) -> None:
        octets = b"\x01ks\0\2"
        assert impl.raw_table(octets, "rabbitmq") == {"k": 2}
        with pytest.raises(DecodeError, match="octets"):
            dict(impl.raw_table(octets, "wg-0-9-1"))

    def test_a_fault_is_found_when_it_is_looked_at(self, impl: Implementation, amqp: ModuleType) -> None:
        frame = amqp.encode_method(1, amqp.Queue.Declare(arguments=impl.raw_table(b"\x01kz")))
        [decoded] = amqp.FrameDecoder(tables="raw").feed(frame)
        table = decoded.payload.arguments
        assert table.octets == b"\x01kz"
        for _ in range(2):
            with pytest.raises(DecodeError, match="tag 'z' is unknown") as caught:
                table["k"]
            assert caught.value.offset == 2
        assert amqp.encode_frame(decoded) == frame

    def test_decoders_give_it_the_profile_in_use(self, impl: Implementation, codec: ModuleType) -> None:
        frame = codec.encode_method(1, codec.Queue.Declare(arguments={"a": 5}))
        for profile in (None, "qpid"):
            [decoded] = codec.FrameDecoder(tables="raw", profile=profile).feed(frame)
            assert type(decoded.payload.arguments) is impl.raw_table
            assert decoded.payload.arguments.profile == (profile or codec.DIALECT.profile.name)

    def test_it_is_written_back_as_it_came(self, impl: Implementation, codec: ModuleType) -> None:
        octets = b"\x01kI\0\0\0\1\x01kI\0\0\0\2\x01zz"
        for properties in (
            codec.BasicProperties(headers=impl.raw_table(octets)),
            codec.BasicProperties(headers={"inner": impl.raw_table(octets)}),
        ):
            frame = codec.encode_header(1, properties, 0)
            assert len(octets).to_bytes(4, "big") + octets in frame
        [decoded] = codec.FrameDecoder(tables="raw").feed(codec.encode_header(1, properties, 0))
        assert describe(decoded.payload.properties.headers)[0] == "RawTable"
