"""Numbers beyond the 30 bits of one digit of an int: they take the same paths as small ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from support.calls import python_calls
from support.implementation import Implementation
from support.outcomes import encoding
from support.vectors import LAST_SECOND

from amqpcodec import EncodeError, FieldValue

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EDGES = [bits for power in (8, 15, 16, 30, 31, 32, 60, 62, 63, 64, 90) for bits in (2**power - 1, 2**power)]
NUMBERS = [*range(4), *EDGES, *(-number for number in EDGES), -1, 2**63 + 5, 2**60 + 1, 2**100]
FITTING = [number for number in NUMBERS if 0 <= number < 2**64]


class Number(int):
    """An int of a caller's class."""


@pytest.mark.parametrize("number", FITTING, ids=hex)
def test_a_field_of_eight_octets_carries_all_its_numbers(amqp: ModuleType, number: int) -> None:
    octets = number.to_bytes(8, "big")
    assert amqp.encode_method(1, amqp.Basic.Ack(number))[11:19] == octets
    assert amqp.encode_header(1, amqp.BasicProperties(timestamp=number), 0)[21:29] == octets
    assert amqp.encode_header(1, amqp.BasicProperties(), number)[11:19] == octets
    assert amqp.encode_table({"k": FieldValue("T", number)})[7:] == octets


@pytest.mark.parametrize("number", [LAST_SECOND - 1, LAST_SECOND, LAST_SECOND + 1, 2**64 - 1])
def test_a_time_is_a_moment_up_to_the_last_one_of_datetime(amqp: ModuleType, number: int) -> None:
    expected = EPOCH + timedelta(seconds=number) if number <= LAST_SECOND else number
    headers = {"when": FieldValue("T", number)}
    octets = amqp.encode_header(1, amqp.BasicProperties(timestamp=number, headers=headers), 0)
    for tables in ("dict", "raw"):
        [frame] = amqp.FrameDecoder(tables=tables).feed(octets)
        read = frame.payload.properties
        assert [read.timestamp, read.headers["when"]] == [expected, expected]
        assert {type(read.timestamp), type(read.headers["when"])} == {type(expected)}


PLACES = {
    "octet": lambda m, v: m.encode_method(0, m.Connection.Start(v)),
    "short": lambda m, v: m.encode_method(0, m.Connection.Tune(v)),
    "long": lambda m, v: m.encode_method(0, m.Connection.Tune(0, v)),
    "longlong": lambda m, v: m.encode_method(1, m.Basic.Ack(v)),
    "timestamp": lambda m, v: m.encode_header(1, m.BasicProperties(timestamp=v), 0),
    "body size": lambda m, v: m.encode_header(1, m.BasicProperties(), v),
    "channel": lambda m, v: m.encode_method(v, m.Basic.Ack()),
    "channel of a method with text": lambda m, v: m.encode_method(v, m.Basic.Publish()),
    "frame_max": lambda m, v: m.encode_message(1, m.Basic.Publish(), None, b"body", frame_max=v),
    "table": lambda m, v: m.encode_table({"k": v}),
    "array": lambda m, v: m.encode_table({"k": [v]}),
    **{f"tag {tag}": lambda m, v, tag=tag: m.encode_table({"k": FieldValue(tag, v)}) for tag in "IlLT"},
}


@pytest.mark.parametrize("place", PLACES)
def test_both_builds_write_and_refuse_the_same_numbers(
    both: tuple[Implementation, Implementation], dialect: str, place: str
) -> None:
    modules = [impl.dialect(dialect) for impl in both]
    outcomes = set()
    for number in NUMBERS:
        for value in (number, Number(number)):
            one, two = (encoding(PLACES[place], module, value) for module in modules)
            assert one == two, value
            outcomes.add(one[0])
    for value in (True, False):
        one, two = (encoding(PLACES[place], module, value) for module in modules)
        assert one == two, value
    assert "EncodeError" in outcomes
    assert "octets" in outcomes or place in (
        "array",
        "tag l",
        "tag L",
    )  # which the first dialects do not have


@pytest.mark.parametrize("number", [2**30, 2**60, 2**63 + 5, 2**64 - 1], ids=hex)
def test_no_function_is_called_for_a_large_number(amqp: ModuleType, number: int) -> None:
    when = amqp.BasicProperties(timestamp=number)
    ack = amqp.Basic.Ack(number)

    def work() -> list[bytes]:
        return [
            amqp.encode_method(1, ack), amqp.encode_header(1, when, number),
            amqp.encode_message(1, amqp.Basic.Publish(), when, b""),
        ]  # fmt: skip

    work()
    with python_calls() as calls:
        work()
    assert {"exact_int", "seconds_of", "_checked_integer"}.isdisjoint(calls)


@pytest.mark.parametrize(
    ("profile", "numbers"),
    [
        ("rabbitmq", [2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63)]),
        ("qpid", [2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63)]),
        ("wg-0-9-1", [2**31, -(2**31) - 1, 2**62, 2**63 + 5, 2**64 - 1, -(2**63)]),
    ],
)
def test_no_function_is_called_for_a_large_number_in_a_table_of_the_compiled_build(
    both: tuple[Implementation, Implementation], profile: str, numbers: list[int]
) -> None:
    encode = both[0].tables.encode_table
    tables = [{"k": number} for number in numbers]
    with python_calls() as calls:
        for table in tables:
            encode(table, profile)
    assert "exact_int" not in calls


@pytest.mark.parametrize("wrong", [-1, -(2**30), -(2**64), 2**64, 2**90, True, False, 1.0, None], ids=repr)
def test_what_does_not_fit_is_refused_by_its_value(amqp: ModuleType, wrong: Any) -> None:
    text = "longlong must be "
    text += f"0 to 18446744073709551615, not {wrong}" if type(wrong) is int else "an int, not "
    with pytest.raises(EncodeError, match=text) as caught:
        amqp.encode_method(1, amqp.Basic.Ack(wrong))
    assert (caught.value.field, caught.value.method) == ("delivery-tag", "basic.ack")
    amqp.encode_method(1, amqp.Basic.Ack(5))  # and nothing is left behind
