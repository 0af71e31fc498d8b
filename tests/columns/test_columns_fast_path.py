"""The tables `connections` and `errors` in the compiled build: an ordinary frame makes no object."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from support.columns import Table, stream
from support.implementation import wanted

from amqpcodec import RawTable
from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import Close, Connection, Data, Event, Gap

pytestmark = pytest.mark.skipif("c" not in wanted(), reason="the compiled build is left out")

COUNT = 50
HEADERS = {"text": "täxt", "number": 7, "inner": {"list": [1, True, None, 2.5]}}
MESSAGE = amqp.encode_message(
    1, amqp.Basic.Publish("orders", "eu"), amqp.BasicProperties(headers=HEADERS, priority=1), b"octets",
    frame_max=4096,
)  # fmt: skip
VALID = amqp.encode_method(3, amqp.Basic.Ack(7, True)) + MESSAGE + amqp.encode_heartbeat()
BAD = {
    "a content on channel 0": amqp.encode_body(1, b"x").replace(b"\3\0\1", b"\3\0\0", 1),
    "a method that nobody knows": b"\1\0\1\0\0\0\4\0\x14\x03\xe7\xce",
    "arguments cut short": b"\1\0\1\0\0\0\5\0\x3c\0\x50\0\xce",
    "a heartbeat with a payload": b"\x08\0\0\0\0\0\1x\xce",
    "a table cut short": MESSAGE.replace(b"\4text", b"\xfftext"),
    "a tag that nobody knows": MESSAGE.replace(b"\6numberb", b"\6number!").replace(
        b"\6numberI", b"\6number!"
    ),
}
UNUSUAL = {
    "a value that is not shown as it is": amqp.encode_message(
        1, amqp.Basic.Publish(), amqp.BasicProperties(headers={"price": Decimal("1.5")}), b"", frame_max=4096
    ),
    "text that is not UTF-8": amqp.encode_method(1, amqp.Basic.Publish("unusual\udcff")),
    "a tag beyond 63 bits": amqp.encode_method(1, amqp.Basic.Ack(2**64 - 1)),
}


class Watched(Table):
    """A table that counts the frames that reach its sink as objects."""

    def __init__(self, table: str) -> None:
        super().__init__("c", table)
        self.objects = 0
        sink: Any = self._sink
        taken = sink.frame

        def frame(*arguments: Any) -> None:
            self.objects += 1
            taken(*arguments)

        sink.frame = frame


@pytest.mark.parametrize("table", ["connections", "errors"])
@pytest.mark.parametrize("chunk", [7, 1000, 10**6])
def test_valid_frames_make_no_object(table: str, chunk: int) -> None:
    octets = VALID * COUNT
    watched = Watched(table)
    rows = watched.rows(stream(*(octets[at : at + chunk] for at in range(0, len(octets), chunk))))
    assert watched.objects <= 1
    counts = [(row["frames_sent"], row["messages_sent"], row["octets_sent"]) for row in rows if "gaps" in row]
    assert counts == ([(5 * COUNT, COUNT, len(octets))] if table == "connections" else [])


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_an_error_inside_a_frame_is_in_both_tables(bad: bytes) -> None:
    octets = VALID * COUNT + bad + VALID
    expected = Table("py", "errors").rows(stream(octets))
    assert len(expected) == 1
    watched = Watched("errors")
    assert watched.rows(stream(octets)) == expected
    assert watched.objects == 1
    [row] = Table("c", "connections").rows(stream(octets))
    assert [row] == Table("py", "connections").rows(stream(octets))
    assert row["errors"] == 1


@pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_but_valid_frame_is_no_error(unusual: bytes) -> None:
    assert Table("c", "errors").rows(stream(VALID + unusual + VALID)) == []
    [row] = Table("c", "connections").rows(stream(VALID + unusual + VALID))
    assert [row] == Table("py", "connections").rows(stream(VALID + unusual + VALID))


@pytest.mark.parametrize("table", ["messages", "connections", "errors"])
def test_a_table_of_more_entries_than_readers_take_is_in_error(table: str) -> None:
    array = (b"A" + struct.pack("!I", 4000) + b"V" * 4000) * 251
    headers = RawTable(b"\1aA" + struct.pack("!I", len(array)) + array, "rabbitmq")
    properties = amqp.BasicProperties(headers=headers)
    octets = VALID + amqp.encode_message(1, amqp.Basic.Publish(), properties, b"", frame_max=2 << 20)
    rows = Table("c", table).rows(stream(octets))
    assert rows == Table("py", table).rows(stream(octets))
    last = rows[-1]
    found = {"messages": last.get("_error"), "connections": last.get("errors"), "errors": last.get("code")}
    assert str(found[table])[:14] in ("RESOURCE_ERROR", "1")


def test_times_of_both_directions_and_of_faults_are_in_the_connection() -> None:
    connection = Connection(1, None, None)
    times = [[None, 5_000, 9_000], [7_000, None, 20_000]]

    def events() -> Iterator[Event]:
        for at in range(3):
            for direction in (0, 1):
                offset = at * len(VALID)
                yield Data(connection, direction, offset, VALID, at, times[direction][at])
        yield Gap(connection, 0, 3 * len(VALID), 10, 4, 1_000)
        yield Close(connection, 0, 3 * len(VALID) + 10, 5, 30_000)
        yield Close(connection, 1, 3 * len(VALID), 5, None)

    [row] = Table("c", "connections").rows(events())
    assert [row] == Table("py", "connections").rows(events())
    assert [row[name].microsecond for name in ("ts_first", "ts_last")] == [7, 30]
    assert (row["frames_sent"], row["frames_received"], row["gaps"]) == (15, 15, 1)
