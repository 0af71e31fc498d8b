"""Field tables that come again and again, of which the compiled build copies what it decoded before."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe

from amqpcodec import DecodeError, Limits

VALUES = {
    "text": "x" * 40, "bytes": b"\xff\xfe", "number": 1 << 40, "yes": True, "ratio": 0.5, "none": None,
    "price": Decimal("1.25"), "since": datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
}  # fmt: skip
NESTED = {"death": [{"count": 1, "keys": ["a", "b"]}, 7], "inner": {"deep": {"deeper": {}}}, "empty": []}


def header(amqp: ModuleType, table: Any) -> bytes:
    octets: bytes = amqp.encode_header(1, amqp.BasicProperties(headers=table), body_size=0)
    return octets


def tables(decoder: Any, octets: bytes) -> list[Any]:
    return [frame.payload.properties.headers for frame in decoder.feed(octets)]


@pytest.mark.parametrize("table", [{}, VALUES, NESTED, {**VALUES, **NESTED}], ids=str)
def test_a_table_comes_out_the_same_each_time(amqp: ModuleType, table: dict[str, Any]) -> None:
    decoded = tables(amqp.FrameDecoder(), header(amqp, table) * 5)
    assert [describe(each) for each in decoded] == [describe(decoded[0])] * 5
    assert decoded[0] == table


def test_whoever_changes_a_table_changes_no_other(amqp: ModuleType) -> None:
    decoder = amqp.FrameDecoder()
    for _ in range(6):
        [table] = tables(decoder, header(amqp, NESTED))
        assert table == NESTED
        table["death"][0]["keys"].append("changed")
        table["death"].append("changed")
        table["inner"]["deep"]["deeper"]["changed"] = 1
        table["empty"].append(1)
        table["changed"] = 1


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 17, 30, 63, 64, 200])
def test_tables_that_differ_in_one_octet_are_distinguished(amqp: ModuleType, size: int) -> None:
    texts = ["a" * size] + ["a" * at + "b" + "a" * (size - at - 1) for at in range(size)]
    expected = [{"k": text} for text in texts for _ in range(3)] + [{"k": text} for text in texts * 2]
    octets = b"".join(header(amqp, table) for table in expected)
    assert tables(amqp.FrameDecoder(), octets) == expected


def test_more_tables_than_are_kept_take_turns(amqp: ModuleType) -> None:
    expected = [{"number": number, "more": "text"} for number in range(100) for _ in range(2)] * 3
    octets = b"".join(header(amqp, table) for table in expected)
    assert tables(amqp.FrameDecoder(), octets) == expected


def texts(amqp: ModuleType, decoder: Any, table: dict[str, Any], repeats: int) -> list[str]:
    """The text in each repetition of a table, too long to share: one object where they are copies."""
    decoded = tables(decoder, header(amqp, table) * repeats)
    assert decoded == [table] * repeats
    return [each["text"] for each in decoded]


def test_tables_beyond_the_room_wait_and_are_then_served_from_the_cache(
    amqp: ModuleType, impl: Implementation
) -> None:
    if impl.name == "py":
        pytest.skip("the pure build keeps no tables")
    decoder = amqp.FrameDecoder()
    kinds = [{"number": number, "text": chr(97 + number) * 400} for number in range(26)]
    # Few have room for their memory. Those that came first stay, while the next one is only read.
    late = kinds.pop()
    while len(set(map(id, texts(amqp, decoder, late, 6)[3:]))) == 1:
        first, late = late, kinds.pop()
    kept = texts(amqp, decoder, first, 1)[0]
    assert len(set(map(id, texts(amqp, decoder, late, 200)))) == 200
    assert texts(amqp, decoder, first, 1)[0] is kept
    # The wait ends: what still repeats is kept in place of all others, which come back if they repeat.
    decoded = texts(amqp, decoder, late, 100)
    assert decoded[-1] is decoded[-2]
    decoded = texts(amqp, decoder, first, 6)
    assert decoded[0] is not kept
    assert decoded[-1] is decoded[-2]


@pytest.mark.parametrize("size", [490, 500, 505, 520, 5000])
def test_large_tables_are_no_exception(amqp: ModuleType, size: int) -> None:
    expected = [{"k": "x" * size, "n": [size]}] * 4
    assert tables(amqp.FrameDecoder(), header(amqp, expected[0]) * 4) == expected


def test_what_is_refused_once_is_refused_every_time(amqp: ModuleType) -> None:
    twice = b"\1a" + b"t\1" + b"\1a" + b"t\0"
    octets = header(amqp, {"a": True, "b": False}).replace(b"\1b", b"\1a")
    assert twice in octets
    strict, lenient = amqp.FrameDecoder(strict=True), amqp.FrameDecoder()
    for _ in range(4):
        assert tables(lenient, octets) == [{"a": False}]
        with pytest.raises(DecodeError, match="table key 'a' twice"):
            next(strict.feed(octets))
        strict.skip_frame()


def test_limits_count_the_entries_of_every_table(amqp: ModuleType) -> None:
    octets = header(amqp, {"a": 1, "b": 2})
    assert len(tables(amqp.FrameDecoder(limits=Limits(table_entries=2)), octets * 5)) == 5
    decoder = amqp.FrameDecoder(limits=Limits(table_entries=1))
    for _ in range(4):
        with pytest.raises(DecodeError, match="table of more than 1 entries"):
            next(decoder.feed(octets))
        decoder.skip_frame()


def test_messages_and_methods_have_tables_of_their_own(amqp: ModuleType) -> None:
    octets = amqp.encode_method(1, amqp.Queue.Declare(queue="q", arguments=NESTED)) * 4
    octets += amqp.encode_message(1, amqp.Basic.Publish(), amqp.BasicProperties(headers=NESTED), b"x") * 4
    decoded = list(amqp.MessageDecoder().feed(octets))
    assert [frame.payload.arguments for frame in decoded[:4]] == [NESTED] * 4
    assert [message.properties.headers for message in decoded[4:]] == [NESTED] * 4
    decoded[0].payload.arguments["inner"]["deep"]["changed"] = 1
    assert decoded[4].properties.headers == NESTED
