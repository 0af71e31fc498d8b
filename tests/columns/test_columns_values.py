"""What becomes of single values: text, tables, times, numbers too large, secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import columns, strategies, vectors
from support.campaign import share
from support.columns import BUILDS, in_sync, stream_rows

from amqpcodec import FieldValue, InlineContent, RawTable, ReferenceContent, amqp08, amqp09, rabbitmq
from amqpcodec._columns.buffers_py import filled, values
from amqpcodec._columns.schemas import Column

LOGIN = rabbitmq.Connection.StartOk({"product": "p"}, "PLAIN", b"\0guest\0secret", "en_US")


def headers(build: str, table: Any) -> Any:
    """The map that a table becomes."""
    octets = rabbitmq.Encoder(profile="rabbitmq-nan").encode_message(
        1, rabbitmq.Basic.Publish(), rabbitmq.BasicProperties(headers=table), b""
    )
    (row,) = stream_rows(build, "messages", octets)
    return row["headers"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (2**62, str(2**62)),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.50"), "1.50"),
        (FieldValue("D", Decimal("1E-5")), "0.00001"),
        ("text é", "text é"),
        ("", ""),
        (b"\x00\xff", "00ff"),
        (b"", ""),
        (FieldValue("S", b"not \xff text"), "6e6f7420ff2074657874"),
        (datetime(2026, 11, 21, 6, tzinfo=UTC), "2026-11-21T06:00:00Z"),
        (FieldValue("T", 2**63), str(2**63)),
        (None, None),
        ([], "[]"),
        ({}, "{}"),
        (
            [1, None, True, 'a"b', b"\xfe", Decimal("1.50"), 0.5, float("inf"), [{}]],
            '[1,null,true,"a\\"b",{"hex":"fe"},"1.50",0.5,"inf",[{}]]',
        ),
        ({"k": datetime(1970, 1, 1, tzinfo=UTC), "é": "é"}, '{"k":"1970-01-01T00:00:00Z","é":"é"}'),
    ],
)
def test_the_text_of_a_table_value(build: str, value: Any, text: str | None) -> None:
    assert headers(build, {"key": value}) == [("key", text)]


def test_of_two_equal_keys_the_later_wins_in_the_place_of_the_first(build: str) -> None:
    assert headers(build, RawTable(b"\1at\1\1bt\0\1at\0")) == [("a", "false"), ("b", "false")]


@pytest.mark.parametrize("size", range(12))
def test_keys_are_compared_whole_however_long(build: str, size: int) -> None:
    keys = [stem + "k" * size for stem in ("", "k", "x", "y", "x-long-", "x-lone-")]
    table = dict.fromkeys(key + end for key in keys for end in ("", "1", "2"))
    octets = b"".join(bytes([len(key)]) + key.encode() + b"t\1" for key in table)
    once = [(key, "true") for key in table]
    assert headers(build, RawTable(octets)) == once
    for key in table:
        again = bytes([len(key)]) + key.encode() + b"t\0"
        expected = [(name, "false" if name == key else text) for name, text in once]
        assert headers(build, RawTable(octets + again)) == expected


def test_numbers_of_every_length_are_shown(build: str) -> None:
    numbers = [sign * 10**digits + step for digits in range(19) for sign in (1, -1) for step in (-1, 0, 1)]
    numbers += [2**63 - 1, -(2**63)]
    for number in numbers:
        assert headers(build, {"key": FieldValue("l", number)}) == [("key", str(number))]


def test_octets_that_are_no_text_are_shown_also_where_they_make_keys_equal(build: str) -> None:
    assert headers(build, RawTable(b"\1\xfft\1\4\\xfft\0")) == [("\\xff", "false")]


def test_octets_that_are_no_text_of_a_shortstr_are_shown(build: str) -> None:
    octets = rabbitmq.encode_method(1, rabbitmq.Basic.Publish(exchange="é\udcff", routing_key="\udc80"))
    (row,) = stream_rows(build, "methods", octets)
    assert (row["args"]["exchange"], row["args"]["routing_key"]) == ("é\\xff", "\\x80")


def test_the_octets_of_the_headers_are_kept(build: str) -> None:
    table = RawTable(b"\1at\1\1at\0")
    octets = rabbitmq.encode_message(
        1, rabbitmq.Basic.Publish(), rabbitmq.BasicProperties(headers=table), b""
    )
    (row,) = stream_rows(build, "messages", octets)
    assert row["headers_raw"] == table.octets


@pytest.mark.parametrize("build", BUILDS)
@given(table=strategies.tables("rabbitmq-0-9-1", "rabbitmq"))
@settings(max_examples=share(30))
def test_any_table_becomes_what_the_object_path_makes_of_it(build: str, table: list[Any]) -> None:
    given_table = vectors.encodable("table", table)
    expected = columns.entries(vectors.decoded("table", table))
    assert headers(build, given_table) == expected


class TestTooLarge:
    def test_a_number_beyond_63_bits_is_null(self, build: str) -> None:
        octets = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(2**63 - 1)) + rabbitmq.encode_method(
            1, rabbitmq.Basic.Ack(2**63, multiple=True)
        )
        first, second = stream_rows(build, "methods", octets)
        assert (first["args"]["delivery_tag"], first["_error"]) == (2**63 - 1, None)
        assert (second["args"]["delivery_tag"], second["_error"]) == (None, "VALUE_RANGE at 21")
        assert second["args"]["multiple"] is True

    def test_a_time_beyond_the_calendar_is_null(self, build: str) -> None:
        properties = rabbitmq.BasicProperties(timestamp=253402300800, content_type="a")
        octets = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"")
        (row,) = stream_rows(build, "messages", octets)
        assert (row["properties"]["timestamp"], row["properties"]["content_type"]) == (None, "a")
        assert row["_error"] == f"VALUE_RANGE at {len(rabbitmq.encode_method(1, rabbitmq.Basic.Publish()))}"

    def test_the_last_second_of_the_calendar_is_kept(self, build: str) -> None:
        last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        properties = rabbitmq.BasicProperties(timestamp=last)
        octets = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), properties, b"")
        (row,) = stream_rows(build, "messages", octets)
        assert (row["properties"]["timestamp"], row["_error"]) == (last, None)

    def test_an_error_is_reported_also_where_the_value_is_not_requested(self, build: str) -> None:
        octets = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(2**63))
        (row,) = stream_rows(build, "methods", octets, columns=["args.multiple", "_error"])
        assert row == {"args": {"multiple": False}, "_error": "VALUE_RANGE at 0"}


class TestDialects:
    def test_the_content_of_0_9(self, build: str) -> None:
        transfers = [
            amqp09.Message.Transfer(body=content)
            for content in (InlineContent(b"in"), ReferenceContent(b"re"))
        ]
        octets = b"".join(amqp09.encode_method(1, method) for method in transfers)
        found = stream_rows(build, "methods", octets, dialect="amqp-0-9", columns=["args.body"])
        assert [row["args"]["body"] for row in found] == [
            {"inline": b"in", "reference": None}, {"inline": None, "reference": b"re"},
        ]  # fmt: skip

    def test_reserved_arguments_have_no_column_and_reserved_properties_do(self, build: str) -> None:
        properties = rabbitmq.BasicProperties(reserved="r")
        octets = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(reserved_1=9), properties, b"")
        (row,) = stream_rows(build, "messages", octets)
        assert row["properties"]["reserved"] == "r"
        assert "reserved_1" not in row

    def test_properties_of_other_classes(self, build: str) -> None:
        properties = amqp08.FileProperties(filename="f", headers={"a": 1})
        octets = amqp08.encode_message(1, amqp08.File.Return(404, "no", "x", "k"), properties, b"")
        (row,) = stream_rows(build, "messages", octets, dialect="amqp-0-8")
        assert (row["name"], row["kind"], row["reply_code"]) == ("file.return", "return", 404)
        assert (row["properties"]["filename"], row["headers"]) == ("f", [("a", "1")])


class TestCredentials:
    @pytest.mark.parametrize(
        "method",
        [LOGIN, rabbitmq.Connection.SecureOk(b"secret"), rabbitmq.Connection.UpdateSecret(b"secret", "due")],
    )
    def test_they_are_shown_only_when_asked_for(self, build: str, method: Any) -> None:
        octets = rabbitmq.encode_method(0, method)
        for table, column in (("methods", "args"), ("frames", "payload")):
            hidden, shown = (
                str(stream_rows(build, table, octets, columns=[column], include_credentials=credentials))
                for credentials in (False, True)
            )
            assert "secret" not in hidden.replace("'new_secret'", "")
            assert "secret" in shown.replace("'new_secret'", "")

    @pytest.mark.parametrize(
        ("table", "column"), [("frames", "payload"), ("methods", "_corrupt_record"), ("errors", "octets")]
    )
    def test_nor_do_methods_that_only_another_dialect_knows(
        self, build: str, table: str, column: str
    ) -> None:
        # A peer that speaks RabbitMQ's dialect may be read as the one it comes from.
        octets, _ = in_sync(rabbitmq.encode_method(0, rabbitmq.Connection.UpdateSecret(b"secret", "due")))
        hidden, shown = (
            str(
                stream_rows(
                    build, table, octets, columns=[column], dialect="amqp-0-9-1", include_credentials=each
                )
            )
            for each in (False, True)
        )
        assert "secret" not in hidden
        assert "secret" in shown

    def test_nor_do_errors_show_them(self, build: str) -> None:
        octets = bytearray(rabbitmq.encode_method(0, LOGIN))
        octets[6] -= 1
        octets[-2:] = b"\xce"
        found = stream_rows(build, "errors", rabbitmq.encode_heartbeat() + octets)
        assert [(row["code"], row["octets"]) for row in found] == [("FRAME_ERROR", None)]
        found = stream_rows(build, "errors", rabbitmq.encode_heartbeat() + octets, include_credentials=True)
        assert [row["octets"] for row in found] == [bytes(octets)]


KINDS = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "timestamp": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(max_size=5),
    "binary": st.binary(max_size=5),
    "map": st.lists(st.tuples(st.text(max_size=3), st.none() | st.text(max_size=3)), max_size=3),
    "content": st.fixed_dictionaries(
        {"inline": st.none() | st.binary(), "reference": st.none() | st.binary()}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=20)
def test_the_memory_of_a_column_holds_its_values(kind: str, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.none() | KINDS[kind], max_size=20))
    column = Column("outer", "struct", (Column("inner", kind),))
    rows = [None if cell is None else {"inner": cell} for cell in cells]
    memory = filled(column, rows)
    assert values(column, memory) == rows
    assert values(column.children[0], memory.children[0]) == cells
