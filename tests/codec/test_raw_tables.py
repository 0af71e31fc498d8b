"""Field tables kept as octets: what they are made of, by which limits they are read, and how they go out."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, UserDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from support.calls import python_calls
from support.implementation import Implementation
from support.outcomes import encoding

from amqpcodec import DecodeError, FieldValue, Limits

ENTRIES = b"\x01aI\0\0\0\5\x01bS\0\0\0\1x"
DEEP = b"\x01aF\0\0\0\x08\x01bF\0\0\0\1\x01"  # the innermost one is damaged
WIDE = b"\x01aA\0\0\0\3VVV"

# A limit below what the table needs, the table, and what the error says.
GOES_OVER = {
    "table_depth": (1, WIDE, "tables nested deeper than 1"),
    "table_entries": (3, WIDE, "table of more than 3 entries"),
    "array_items": (2, WIDE, "array of more than 2 items"),
}


def declare(amqp: ModuleType, entries: bytes) -> bytes:
    """A queue.declare whose arguments are these octets."""
    payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + len(entries).to_bytes(4, "big") + entries
    return b"\x01\x00\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"


def kept(amqp: ModuleType, entries: bytes, **options: Any) -> Any:
    """The raw table that a decoder makes."""
    [frame] = amqp.FrameDecoder(tables="raw", **options).feed(declare(amqp, entries))
    return frame.payload.arguments


AGAIN = {
    "itself": lambda table: table,
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "a pickle": lambda table: pickle.loads(pickle.dumps(table)),
}


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("name", GOES_OVER)
def test_a_table_is_read_by_the_limits_of_its_decoder(codec: ModuleType, name: str, again: str) -> None:
    limit, entries, text = GOES_OVER[name]
    profile = {"profile": "rabbitmq"}
    assert len(AGAIN[again](kept(codec, entries, **profile))) == 1
    table = AGAIN[again](kept(codec, entries, limits=Limits(**{name: limit}), **profile))
    for _ in range(2):
        with pytest.raises(DecodeError, match=text) as caught:
            dict(table)
        assert caught.value.reply_code == 506
    assert table.octets == entries


def test_larger_limits_than_the_default_count_as_well(impl: Implementation, amqp: ModuleType) -> None:
    entries = b"\x01aV"
    for _ in range(130):
        entries = b"\x01aF" + len(entries).to_bytes(4, "big") + entries
    with pytest.raises(DecodeError, match="nested deeper than 128"):
        dict(kept(amqp, entries))
    assert list(kept(amqp, entries, limits=Limits(table_depth=200))) == ["a"]
    assert list(impl.raw_table(entries, limits=Limits(table_depth=200))) == ["a"]


def test_tables_of_raw_properties_are_read_by_the_limits_of_the_decoder(amqp: ModuleType) -> None:
    octets = amqp.encode_header(1, amqp.BasicProperties(headers={"a": [1, 2, 3]}), 0)
    options = {"properties": "raw", "tables": "raw", "limits": Limits(array_items=2)}
    [frame] = amqp.FrameDecoder(**options).feed(octets)
    headers = pickle.loads(pickle.dumps(frame.payload.properties)).headers
    with pytest.raises(DecodeError, match="array of more than 2 items"):
        dict(headers)


@pytest.mark.parametrize("name", GOES_OVER)
def test_a_table_that_is_made_by_hand_takes_limits(impl: Implementation, name: str) -> None:
    limit, entries, text = GOES_OVER[name]
    limits = Limits(**{name: limit})
    table = impl.raw_table(entries, "rabbitmq", limits)
    with pytest.raises(DecodeError, match=text):
        dict(table)
    assert repr(table) == f"RawTable({entries!r}, 'rabbitmq', {limits!r})"
    assert (
        repr(impl.raw_table(entries, limits=Limits(frame_size=100))) == f"RawTable({entries!r}, 'rabbitmq')"
    )


def test_the_octets_of_a_table_that_is_made_by_hand_are_limited(impl: Implementation) -> None:
    limits = Limits(table_octets=len(ENTRIES) - 1)
    with pytest.raises(DecodeError, match=f"table of {len(ENTRIES)} octets, limit {len(ENTRIES) - 1}"):
        dict(impl.raw_table(ENTRIES, limits=limits))
    assert len(impl.raw_table(ENTRIES, limits=Limits(table_octets=len(ENTRIES)))) == 2


def test_limits_do_not_tell_tables_of_equal_octets_apart(impl: Implementation) -> None:
    limited = impl.raw_table(WIDE, limits=Limits(array_items=1))
    assert limited == impl.raw_table(WIDE)
    assert limited != impl.raw_table(WIDE, "qpid")  # which has to be read, and cannot be
    assert limited != {"a": [None] * 3}


def test_a_table_that_nobody_can_read_equals_a_table_of_its_octets_alone(impl: Implementation) -> None:
    damaged = impl.raw_table(DEEP[:-1])
    for other in ({}, impl.raw_table(ENTRIES), impl.raw_table(DEEP[:-1], "qpid")):
        assert (damaged == other) is False
        assert (damaged != other) is True
    assert (damaged == impl.raw_table(DEEP[:-1])) is True


def test_a_table_by_default_limits_is_pickled_as_ever(impl: Implementation, amqp: ModuleType) -> None:
    for table in (impl.raw_table(ENTRIES), kept(amqp, ENTRIES, limits=Limits(frame_size=4096))):
        assert table.__reduce__()[1] == ("RawTable", (ENTRIES, "rabbitmq"))


class Name(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


@pytest.mark.parametrize(
    "arguments",
    [
        (b"", 3), (b"", None), (b"", b"rabbitmq"), (b"", ["rabbitmq"]), (b"", 1.5), (5, 3), (None, None),
        (b"", "rabbitmq", None), (b"", "rabbitmq", 5), (b"", 3, 5), (b"", Name("rabbitmq")), (b"", "0-7"),
    ],
    ids=repr,
)  # fmt: skip
def test_both_builds_take_and_refuse_the_same_arguments(
    both: tuple[Implementation, Implementation], arguments: tuple[Any, ...]
) -> None:
    one, two = (outcome(impl, arguments) for impl in both)
    assert one == two


def outcome(impl: Implementation, arguments: tuple[Any, ...]) -> list[str]:
    """Return the outcome of the constructor, and of the first access."""
    said = []
    try:
        table = impl.raw_table(*arguments)
        said += [repr(table), type(table.profile).__name__]
        said.append(repr(dict(table)))
    except Exception as error:
        said += [type(error).__name__, str(error)]
    return said


def test_the_profile_is_a_text(impl: Implementation) -> None:
    for wrong in (3, None, b"rabbitmq"):
        with pytest.raises(TypeError, match=f"profile must be a str, not {type(wrong).__name__}"):
            impl.raw_table(b"", wrong)
    assert impl.raw_table(ENTRIES, Name("rabbitmq")) == {"a": 5, "b": "x"}


def test_a_table_goes_out_without_asking_an_abstract_class_what_it_is(
    impl: Implementation, amqp: ModuleType
) -> None:
    table = kept(amqp, ENTRIES)
    encode = impl.tables.encode_table
    given = [table, {"k": table}, {"k": [table]}, {"k": FieldValue("F", table)}]
    expected = [encode(each) for each in ({"a": 5, "b": "x"}, {"k": {"a": 5, "b": "x"}})]
    assert [encode(each) for each in given][:2] == expected
    with python_calls() as calls:
        for strict in (False, True):
            for each in given:
                encode(each, strict=strict)
        amqp.encode_header(1, amqp.BasicProperties(headers=table), 0)
    assert "__instancecheck__" not in calls
    with python_calls() as calls:
        encode(UserDict(a=1))
    assert "__instancecheck__" in calls


class Plain(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, **entries: Any) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class DictOfOnes(dict[str, Any]):
    """A dict whose methods say something else than it holds."""

    def items(self) -> Any:
        return dict.fromkeys(self, 1).items()


MAPPINGS = [Plain, UserDict, OrderedDict, DictOfOnes, lambda **entries: MappingProxyType(entries)]


@pytest.mark.parametrize("make", MAPPINGS)
def test_every_mapping_goes_out_as_before(impl: Implementation, make: Any) -> None:
    table = make(a=1, b=1)
    plain = {"a": 1, "b": 1}
    for strict in (False, True):
        for wrap in (lambda it: it, lambda it: {"k": it}, lambda it: {"k": FieldValue("F", it)}):
            given, expected = wrap(table), wrap(plain)
            octets = encoding(lambda value, s=strict: impl.tables.encode_table(value, strict=s), given)
            assert octets == ("octets", impl.tables.encode_table(expected, strict=strict))


def test_tables_derived_from_raw_tables_go_out_as_their_octets(impl: Implementation) -> None:
    class Derived(impl.raw_table):  # type: ignore[misc,name-defined]
        pass

    table = Derived(ENTRIES)
    for wrap in (lambda it: it, lambda it: {"k": it}, lambda it: {"k": [it]}):
        assert impl.tables.encode_table(wrap(table)) == impl.tables.encode_table(
            wrap(impl.raw_table(ENTRIES))
        )
