"""Tolerant decoders: what cannot be read in a field table stays octets with the error, and goes out so."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe_error
from support.poison import GOOD, POISON, Poison, at, delivery, entry, frame, header, sized

from amqpcodec import DecodeError, EncodeError, Limits, UnreadableTable

READINGS: dict[str, dict[str, Any]] = {
    "decoded": {},
    "raw tables": {"tables": "raw"},
    "raw properties": {"properties": "raw"},
    "both raw": {"tables": "raw", "properties": "raw"},
}


@pytest.fixture(params=POISON)
def poison(request: pytest.FixtureRequest) -> Poison:
    return POISON[request.param]


def refused(poison: Poison, **options: Any) -> dict[str, Any]:
    """Options with which the table is refused."""
    return {"strict": True, **options} if poison.strict else options


def unreadable(headers: Any, poison: Poison) -> Any:
    """Return what stands in the place of the smallest table around a fault."""
    found = at(headers, poison.path)
    if not isinstance(found, UnreadableTable):  # a raw table is read when it is asked
        assert found.octets == poison.entries
        return found
    return found


@pytest.mark.parametrize("reading", READINGS)
def test_a_frame_is_there_but_for_the_smallest_table_around_what_is_wrong(
    amqp: ModuleType, poison: Poison, reading: str
) -> None:
    octets = header(poison.table)
    options = refused(poison, **READINGS[reading])
    [read, after] = amqp.FrameDecoder(tolerant=True, **options).feed(octets + frame(3, b"next"))
    properties = read.payload.properties
    assert (properties.content_type, properties.delivery_mode) == ("text", 2)
    assert after.payload == b"next"
    path = () if poison.strict and options.get("tables") == "raw" else poison.path
    found = at(properties.headers, path)
    assert found.error.field in ("headers", "table")
    assert poison.text in found.error.message
    assert dict(found) == {}
    assert not path or properties.headers["good"] == 1
    assert amqp.encode_frame(read) == octets


def test_a_message_is_there_with_its_body(amqp: ModuleType, poison: Poison) -> None:
    octets = delivery(poison.table)
    decoder = amqp.MessageDecoder(tolerant=True, **refused(poison))
    [message, following] = decoder.feed(octets + delivery(sized(GOOD), b"next"))
    assert message.body == b"body"
    assert unreadable(message.properties.headers, poison).error.reply_code in (502, 506)
    assert (following.body, following.properties.headers) == (b"next", {"good": 1})


def test_without_it_the_error_is_raised_as_before(amqp: ModuleType, poison: Poison) -> None:
    for decoder in (amqp.FrameDecoder(**refused(poison)), amqp.MessageDecoder(**refused(poison))):
        with pytest.raises(DecodeError, match=poison.text):
            list(decoder.feed(delivery(poison.table)))


def test_tables_in_arguments_are_read_so_too(amqp: ModuleType, poison: Poison) -> None:
    octets = frame(1, b"\0\x32\0\x0a\0\0\1q\0" + poison.table)
    [read] = amqp.FrameDecoder(tolerant=True, **refused(poison)).feed(octets)
    assert read.payload.queue == "q"
    assert unreadable(read.payload.arguments, poison).error.field == "arguments"
    assert amqp.encode_frame(read) == octets


def test_the_error_is_that_of_a_decoder_that_is_not_tolerant(amqp: ModuleType, poison: Poison) -> None:
    octets = frame(8, b"", 0) + header(poison.table)
    options = refused(poison)
    [_, read] = amqp.FrameDecoder(tolerant=True, **options).feed(octets)
    error = unreadable(read.payload.properties.headers, poison).error
    with pytest.raises(DecodeError) as caught:
        list(amqp.FrameDecoder(**options).feed(octets))
    for name in ("message", "reply_code", "offset", "field", "fatal"):
        assert getattr(error, name) == getattr(caught.value, name)
    assert error.__traceback__ is None


def test_both_builds_make_the_same_of_it(both: tuple[Implementation, Implementation], poison: Poison) -> None:
    found = []
    for impl in both:
        decoder = impl.dialect("rabbitmq-0-9-1").FrameDecoder(tolerant=True, **refused(poison))
        [read] = decoder.feed(header(poison.table))
        table = unreadable(read.payload.properties.headers, poison)
        found.append((table.octets, describe_error(table.error)))
    assert found[0] == found[1]


LARGE = {
    "table_octets": Limits(table_octets=10),
    "table_entries": Limits(table_entries=2),
    "array_items": Limits(array_items=1),
    "table_depth": Limits(table_depth=1),
}


@pytest.mark.parametrize("limit", LARGE)
@pytest.mark.parametrize("tables", ["dict", "raw"])
def test_a_table_over_a_limit_is_not_read(amqp: ModuleType, limit: str, tables: str) -> None:
    table = sized(GOOD, entry(b"in", b"A" + sized(b"V", b"V")))
    decoder = amqp.FrameDecoder(tolerant=True, tables=tables, limits=LARGE[limit])
    [read] = decoder.feed(header(table))
    assert read.payload.properties.headers.error.reply_code == 506
    assert amqp.encode_frame(read) == header(table)


def test_a_table_whose_own_length_is_wrong_ends_the_stream(amqp: ModuleType) -> None:
    decoder = amqp.FrameDecoder(tolerant=True)
    with pytest.raises(DecodeError, match="table of 9 octets, 1 left") as caught:
        list(decoder.feed(header(b"\0\0\0\x09")))
    assert caught.value.reply_code == 501


def test_tables_that_are_good_are_as_ever(amqp: ModuleType) -> None:
    octets = header(sized(GOOD, entry(b"in", b"F" + sized(GOOD)))) * 5
    for options in READINGS.values():
        tolerant = list(amqp.FrameDecoder(tolerant=True, **options).feed(octets))
        assert tolerant == list(amqp.FrameDecoder(**options).feed(octets))
        assert {type(read.payload.properties.headers).__name__ for read in tolerant} <= {"dict", "RawTable"}


def test_tables_that_come_again_are_no_copies_of_each_other(amqp: ModuleType) -> None:
    table = POISON["an unknown tag in a table"].table
    frames = list(amqp.FrameDecoder(tolerant=True).feed(header(table) * 9))
    tables = [read.payload.properties.headers["in"] for read in frames]
    assert tables == [tables[0]] * 9
    assert len({id(each) for each in tables}) == 9


# -- the table itself


@pytest.fixture
def table() -> UnreadableTable:
    return UnreadableTable(b"\3bad", DecodeError("a fault", 502, 7))


def test_it_reads_as_no_entries_and_is_true(table: UnreadableTable) -> None:
    assert (len(table), list(table), table.get("a", 1), "a" in table) == (0, [], 1, False)
    assert list(table.items()) == []
    assert (table or {}) is table
    assert table.pop("a", None) is None
    assert type(table.copy()) is dict
    assert repr(table) == "UnreadableTable(b'\\x03bad', DecodeError('a fault'))"


def test_it_equals_only_one_of_the_same_octets(table: UnreadableTable) -> None:
    assert table == UnreadableTable(b"\3bad", DecodeError("another"))
    assert table != UnreadableTable(b"", DecodeError("a fault"))
    assert table != {}
    assert table != {}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_copy_has_the_octets_and_the_error(table: UnreadableTable, again: Any) -> None:
    made = again(table)
    assert type(made) is UnreadableTable
    assert (made.octets, made.error.message, made.error.offset) == (b"\3bad", "a fault", 7)


ADDITIONS = {
    "an entry": lambda table: table.__setitem__("a", 1),
    "update": lambda table: table.update(a=1),
    "setdefault": lambda table: table.setdefault("a", 1),
    "|=": lambda table: table.__ior__({"a": 1}),
}


@pytest.mark.parametrize("addition", ADDITIONS)
def test_nothing_can_be_added_since_it_would_be_lost(table: UnreadableTable, addition: str) -> None:
    with pytest.raises(TypeError, match="takes no entries"):
        ADDITIONS[addition](table)


def test_encoders_write_its_octets(amqp: ModuleType, table: UnreadableTable) -> None:
    written = sized(b"\3bad")
    assert amqp.encode_table(table) == written
    assert amqp.encode_table({"in": table, "all": [table]}) == sized(
        entry(b"in", b"F" + written), entry(b"all", b"A" + sized(b"F" + written))
    )
    properties = amqp.BasicProperties(headers=table)
    publish = amqp.Basic.Publish()
    whole = amqp.encode_message(1, publish, properties, b"x")
    assert written in whole
    assert b"".join(amqp.encode_messages([(1, publish, properties, b"x")] * 2)) == whole * 2


def test_octets_that_are_none_are_refused(amqp: ModuleType) -> None:
    table = UnreadableTable("text", DecodeError("a fault"))  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="str"):
        amqp.encode_table(table)


# -- raw tables


@pytest.mark.parametrize("name", [name for name, poison in POISON.items() if not poison.strict])
def test_a_raw_table_that_is_tolerant_stays_so(impl: Implementation, name: str) -> None:
    poison = POISON[name]
    for again in (copy.copy, copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))):
        kept = again(impl.raw_table(poison.entries, tolerant=True))
        assert poison.text in at(kept, poison.path).error.message
        assert kept.get("missing", 5) == 5
        assert repr(kept).endswith("tolerant=True)")
    assert (kept.error is None) == bool(poison.path)


def test_a_raw_table_tells_why_it_cannot_be_read(impl: Implementation) -> None:
    kept = impl.raw_table(b"\3bad")
    assert kept.error.message == "table key of 3 octets and a tag, 3 left"
    with pytest.raises(DecodeError):
        kept["a"]
    assert impl.raw_table(GOOD).error is None
