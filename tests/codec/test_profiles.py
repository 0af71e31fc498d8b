"""The tags of every table profile: which are written, accepted by strict reading, and tolerated."""

from __future__ import annotations

from decimal import Decimal

import pytest
from support import oracle
from support.implementation import Implementation

from amqpcodec import DecodeError, EncodeError, FieldValue
from amqpcodec.profiles import KIND_NAMES, PROFILES, table_profile
from amqpcodec.types import EPOCH

DIALECT_OF = {
    "0-8": "amqp-0-8",
    "0-9": "amqp-0-9",
    "wg-0-9-1": "amqp-0-9-1",
    "rabbitmq": "rabbitmq-0-9-1",
    "qpid": "qpid-0-8",
    "rabbitmq-nan": "rabbitmq-0-9-1",
}
OF_RABBITMQ = set("tbBsuIilLfdDSATFVx")
TAGS = {
    "0-8": set("IDSTF"),
    "0-9": set("IDSTFV"),
    "wg-0-9-1": set("tbBUsuIiLlfdDSATFV"),
    "rabbitmq": OF_RABBITMQ,
    "qpid": OF_RABBITMQ - {"L"} | set("cCk"),
    "rabbitmq-nan": OF_RABBITMQ,
}
"""What the specification of each, or its broker, knows. RabbitMQ drops the connection on `U`."""

TOLERATED = {
    "0-8": OF_RABBITMQ | {"U"},
    "0-9": OF_RABBITMQ | {"U"},
    "wg-0-9-1": set(),
    "rabbitmq": {"U"},
    "qpid": set(),
    "rabbitmq-nan": {"U"},
}
"""What is read as well unless reading is strict, and never written."""

VALUES = {
    "t": (b"\1", True, "bool"),
    "b": (b"\xfe", -2, "int8"),
    "B": (b"\xfe", 254, "uint8"),
    "U": (b"\xff\xfe", -2, "int16"),
    "s": (b"\xff\xfe", -2, "int16"),
    "u": (b"\xff\xfe", 65534, "uint16"),
    "I": (b"\xff\xff\xff\xfe", -2, "int32"),
    "i": (b"\xff\xff\xff\xfe", 2**32 - 2, "uint32"),
    "L": (b"\xff" * 7 + b"\xfe", -2, "int64"),
    "l": (b"\xff" * 7 + b"\xfe", -2, "int64"),
    "f": (b"\x3f\xc0\0\0", 1.5, "float"),
    "d": (b"\x3f\xf8\0\0\0\0\0\0", 1.5, "double"),
    "D": (b"\0\xff\xff\xff\xfe", Decimal(-2), "decimal"),
    "S": (b"\0\0\0\1x", "x", "longstr"),
    "x": (b"\0\0\0\1x", b"x", "octets"),
    "A": (b"\0\0\0\0", [], "array"),
    "T": (b"\xff" * 8, 2**64 - 1, "timestamp"),
    "F": (b"\0\0\0\0", {}, "table"),
    "V": (b"", None, "void"),
    "c": (b"\0\0\0\1x", "x", "longstr"),
    "C": (b"\0\0\0\1x", "x", "longstr"),
    "k": (b"x", "x", "character"),
}
"""One value of each tag: its octets, what it reads as, its kind."""

OTHERWISE = {"wg-0-9-1": {"s": (b"\2ab", "ab", "shortstr"), "l": (b"\xff" * 8, 2**64 - 1, "uint64")}}
EVERY_TAG = [chr(number) for number in range(256)]


def sample(profile: str, tag: str) -> tuple[bytes, object, str]:
    return OTHERWISE.get(profile, {}).get(tag) or VALUES[tag]


def table(tag: str, octets: bytes) -> bytes:
    entry = b"\x01k" + tag.encode("latin-1") + octets
    return len(entry).to_bytes(4, "big") + entry


def decoded(impl: Implementation, octets: bytes, profile: str, strict: bool) -> object:
    """The table, or the message of the error."""
    try:
        return impl.tables.decode_table(octets, profile, strict=strict)
    except DecodeError as error:
        return error.message


def encoded(impl: Implementation, values: object, profile: str, strict: bool) -> object:
    """The octets, or the message of the error."""
    try:
        return impl.tables.encode_table(values, profile, strict=strict)
    except EncodeError as error:
        return error.message


def tags_read(impl: Implementation, profile: str, *, strict: bool) -> set[str]:
    """The tags that are read, each with the value it is to have."""
    read = set()
    for tag in EVERY_TAG:
        octets, value, _ = sample(profile, tag) if tag in VALUES else (b"", None, "")
        outcome = decoded(impl, table(tag, octets), profile, strict)
        if outcome != f"tag {tag!r} is unknown to table profile {profile}":
            assert outcome == {"k": value}
            read.add(tag)
    return read


def test_every_profile_is_stated_here() -> None:
    assert set(PROFILES) == set(TAGS) == set(TOLERATED) == set(DIALECT_OF)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_tags_of_a_profile_are_those_of_its_dialects_facts(profile: str) -> None:
    assert TAGS[profile] == set(oracle.facts(DIALECT_OF[profile])["field_table_tags"])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_these_tags_of_these_kinds(profile: str) -> None:
    rules = table_profile(profile)
    for tags, wanted in ((rules.tags, TAGS), (rules.readable(True), TAGS), (rules.tolerated, TOLERATED)):
        assert {tag: KIND_NAMES[kind] for tag, kind in tags.items()} == {
            tag: sample(profile, tag)[2] for tag in wanted[profile]
        }


@pytest.mark.parametrize("profile", PROFILES)
def test_strict_reading_takes_the_tags_of_the_profile_alone(impl: Implementation, profile: str) -> None:
    assert tags_read(impl, profile, strict=True) == TAGS[profile]


@pytest.mark.parametrize("profile", PROFILES)
def test_other_reading_takes_what_is_tolerated_as_well(impl: Implementation, profile: str) -> None:
    assert tags_read(impl, profile, strict=False) == TAGS[profile] | TOLERATED[profile]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_only_the_tags_of_the_profile_are_written(impl: Implementation, profile: str, strict: bool) -> None:
    written = set()
    for tag in EVERY_TAG:
        octets, value, _ = sample(profile, tag) if tag in VALUES else (b"", None, "")
        outcome = encoded(impl, {"k": FieldValue(tag, value)}, profile, strict)
        if outcome != f"table profile {profile} has no tag {tag!r}":
            assert outcome == table(tag, octets)
            written.add(tag)
    assert written == TAGS[profile]


def test_no_ordinary_value_gets_a_tag_that_rabbitmq_refuses(impl: Implementation) -> None:
    scalars = [True, -1, 1, 2**16, -(2**31), 2**40, 1.5, "x", b"x", None, {}, [], Decimal(1), EPOCH]
    for value in scalars:
        assert chr(impl.tables.encode_table({"k": value}, "rabbitmq")[6]) in TAGS["rabbitmq"] - {"L"}


def test_what_is_tolerated_never_means_another_than_the_profile_says() -> None:
    for rules in PROFILES.values():
        assert all(rules.tags.get(tag, kind) == kind for tag, kind in rules.tolerated.items())
