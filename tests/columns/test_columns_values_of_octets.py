"""Columns of octets: each value is read by itself, and gives exactly one row, or all that are in it."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.columns import BUILDS
from support.peers import Peer, columns_of, damaged

import amqpcodec
from amqpcodec import DecodeError, DecoderInUseError, EncodeError, arrow, rabbitmq
from amqpcodec._protocol.index import DIALECTS

ACK = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(7))
LOGIN = rabbitmq.encode_method(0, rabbitmq.Connection.StartOk({}, "PLAIN", b"\0me\0secret", "en_US"))
MESSAGE = rabbitmq.encode_message(
    1, rabbitmq.Basic.Publish(routing_key="k"), rabbitmq.BasicProperties(headers={"a": 1}), b"body"
)
CUT_ARGUMENTS = b"\x01\0\1\0\0\0\4\0\x3c\0\x50\xce"  # basic.ack without its arguments
TABLES = ("frames", "methods", "messages")


def decoded(build: str, values: list[bytes | None], table: str, **options: Any) -> list[dict[str, Any]]:
    batch = arrow.decode_values(pa.array(values, pa.binary()), table, _impl=build, **options)
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def errors(build: str, values: list[bytes | None], table: str, **options: Any) -> list[str | None]:
    return [row["_error"] for row in decoded(build, values, table, columns=["_error"], **options)]


@pytest.mark.parametrize("table", TABLES)
def test_a_valid_value_gives_the_row_of_its_stream(build: str, table: str) -> None:
    columns = [name for name in arrow.schema(table, dialects=["rabbitmq-0-9-1"]).names if name != "_error"]
    value = MESSAGE if table == "messages" else ACK
    stream: Any = getattr(arrow, f"decode_{table}")
    assert (
        decoded(build, [value] * 3, table, columns=columns) == 3 * stream(value, columns=columns).to_pylist()
    )


def test_a_decoder_of_values_is_called_from_one_place_at_a_time(
    build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = arrow.ValueDecoder("frames", _impl=build)
    values, whole = pa.array([ACK], pa.binary()), decoder.decode(pa.array([ACK], pa.binary()))

    class Reader:
        def read(self, memory: Any) -> Any:
            return decoder.decode(values)

    with monkeypatch.context() as patch:
        patch.setattr(decoder, "_reader", Reader())
        with pytest.raises(DecoderInUseError, match="call it from one place at a time"):
            decoder.decode(values)
    assert decoder.decode(values) == whole


def test_a_value_cannot_be_left_out_where_each_has_its_row(build: str) -> None:
    with pytest.raises(ValueError, match=r"^mode: 'drop' goes with explode only$"):
        arrow.ValueDecoder("frames", mode="drop", _impl=build)


@pytest.mark.parametrize("table", TABLES)
def test_a_null_is_a_row_of_nulls(build: str, table: str) -> None:
    rows = decoded(build, [None, ACK, None], table)
    assert len(rows) == 3
    assert {*rows[0].values(), *rows[2].values()} == {None}


def test_a_value_without_exactly_one_row_says_so(build: str) -> None:
    values = [b"", ACK, ACK + ACK, MESSAGE, MESSAGE[:-3]]
    assert errors(build, values, "frames") == ["NOTHING at 0", None, "SEVERAL at 21", *["SEVERAL at 18"] * 2]
    assert errors(build, values, "methods") == ["NOTHING at 0", None, "SEVERAL at 21", None, "LOST at 51"]
    assert errors(build, values, "messages") == [*["NOTHING at 0"] * 3, None, "LOST at 51"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"no frames at all", "FRAME_ERROR at 0"),
        (ACK[:-1], "LOST at 0"),
        (ACK[:-1] + b"\0", "FRAME_ERROR at 0"),
        (CUT_ARGUMENTS, "FRAME_ERROR at 11"),
        (b"\x01\0\1\0\0\0\4\0\x3c\0\xff\xce", "COMMAND_INVALID at 7"),
    ],
)
def test_a_damaged_value_has_a_stable_code(build: str, value: bytes, error: str) -> None:
    assert errors(build, [value, ACK], "methods") == [error, None]


def test_all_rows_of_values_have_the_number_of_theirs(build: str) -> None:
    rows = decoded(build, [ACK + MESSAGE, None, b"", MESSAGE], "frames", explode=True)
    assert [(row["value"], row["offset"], row["frame_type"]) for row in rows] == [
        (0, 0, 1), (0, 21, 1), (0, 39, 2), (0, 72, 3), (3, 0, 1), (3, 18, 2), (3, 51, 3),
    ]  # fmt: skip


def test_octets_in_no_frame_are_a_row_among_all_rows(build: str) -> None:
    values = [ACK + ACK[:9], ACK, b"odd" + ACK]
    rows = decoded(build, values, "frames", explode=True)
    assert [(row["value"], row["name"], row["_error"]) for row in rows] == [
        (0, "basic.ack", None),
        (0, None, "LOST at 21"),
        (1, "basic.ack", None),
        (2, None, "FRAME_ERROR at 0"),
        (2, "basic.ack", None),
    ]
    dropped = decoded(build, values, "frames", explode=True, mode="drop")
    assert dropped == [row for row in rows if row["_error"] is None]


def test_login_data_are_not_shown(build: str) -> None:
    columns = ["args.response", "args.mechanism", "_corrupt_record"]
    (row,) = decoded(build, [LOGIN], "methods", columns=columns)
    assert row["args"] == {"response": None, "mechanism": "PLAIN"}
    (row,) = decoded(build, [LOGIN], "methods", columns=columns, include_credentials=True)
    assert row["args"]["response"] == b"\0me\0secret"
    assert decoded(build, [LOGIN], "frames", columns=["payload"]) == [{"payload": None}]


@pytest.mark.parametrize("explode", [False, True])
def test_the_first_error_ends_a_column_but_not_its_decoder(build: str, explode: bool) -> None:
    decoder = arrow.ValueDecoder("methods", mode="fail", explode=explode, _impl=build)
    with pytest.raises(DecodeError, match="value 1: ") as caught:
        decoder.decode(pa.array([ACK, CUT_ARGUMENTS, ACK]))
    assert caught.value.offset == 11
    with pytest.raises(DecodeError, match="value 0: ") as caught:
        decoder.decode(pa.array([ACK + b"\1\0"]))
    assert caught.value.reply_name == "lost"
    assert decoder.decode(pa.array([ACK])).num_rows == 1


def test_part_of_an_array_of_another_type_is_a_column(build: str) -> None:
    values = pa.array([MESSAGE, ACK, None, ACK], pa.large_binary())[1:3]
    names = arrow.decode_values(values, columns=["name"], _impl=build)["name"]
    assert names.to_pylist() == ["basic.ack", None]


@pytest.mark.parametrize(
    "options",
    [
        {"table": "errors"}, {"mode": "drop"}, {"mode": "other"}, {"dialect": "auto"}, {"direction": 2},
        {"columns": ["nothing"]}, {"frame_max": 3},
    ],
)  # fmt: skip
def test_what_no_column_of_values_can_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        arrow.ValueDecoder(**options)


@pytest.mark.skipif(len(BUILDS) < 2, reason="one build has nothing to be compared with")
@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=share(30))
@given(seed=st.integers(0, 2**32), dialect=st.sampled_from(sorted(DIALECTS)))
def test_both_builds_give_the_same_rows(table: str, seed: int, dialect: str) -> None:
    outcomes = []
    for impl in ("c", "py"):
        source = random.Random(seed)
        peer = Peer(source, dialect)
        values: list[bytes | None] = [None, b""]
        for _ in range(source.randrange(1, 30)):
            frames = peer.frames(source.choice((1, 1, 2)))
            whole = b"".join(source.choice((frames, frames[:1], frames[1:])))
            values.append(damaged(source, whole) if len(whole) > 100 and source.random() < 0.4 else whole)
        explode = source.random() < 0.5
        decoder = arrow.ValueDecoder(
            table, columns=columns_of(source, table, dialect), explode=explode, dialect=dialect, _impl=impl,
            mode=source.choice(("permissive", "permissive", "drop" if explode else "fail", "fail")),
            include_credentials=source.random() < 0.3, frame_max=source.choice((2000, 16 << 20)),
            **source.choice(({}, {"max_body_bytes": 2000, "max_open_messages": 1})),
        )  # fmt: skip
        try:
            outcomes.append(decoder.decode(pa.array(values, pa.binary())))
        except DecodeError as error:
            outcomes.append(f"{error!r} {error}")
    assert outcomes[0] == outcomes[1]


def test_messages_are_written_to_a_value_each() -> None:
    values = [MESSAGE, MESSAGE, MESSAGE]
    messages = arrow.decode_values(pa.array(values), "messages")
    assert arrow.encode_values(messages).to_pylist() == values
    assert arrow.encode_values(pa.table(messages.slice(1))).to_pylist() == values[1:]
    assert arrow.encode_values(messages.slice(0, 0)).to_pylist() == []


def test_rows_that_cannot_be_written_are_null_or_raise() -> None:
    keys = ["a", "b" * 300, "c", "d", "e" * 256]
    batch = pa.RecordBatch.from_pydict({"routing_key": keys})
    written = arrow.encode_values(batch, mode="permissive").to_pylist()
    assert [value is None for value in written] == [False, True, False, False, True]
    assert arrow.decode_values(pa.array(written), "messages")["routing_key"].to_pylist() == [
        "a", None, "c", "d", None,
    ]  # fmt: skip
    with pytest.raises(EncodeError, match="row 1"):
        arrow.encode_values(batch)
    with pytest.raises(EncodeError, match="not a column of"):
        arrow.encode_values(pa.RecordBatch.from_pydict({"properties": [1, 2]}), mode="permissive")
    with pytest.raises(ValueError, match="no mode"):
        arrow.encode_values(batch, mode="drop")


def test_rows_that_are_no_whole_message_can_be_left_out() -> None:
    batch = pa.RecordBatch.from_pydict({"routing_key": list("abcd"), "complete": [False, True, None, False]})
    written = arrow.encode_values(batch, skip_incomplete=True).to_pylist()
    assert [value is None for value in written] == [True, False, False, True]
    assert written[1] == arrow.encode_messages(batch.slice(1, 1))


def test_a_foreign_dialect_reads_values() -> None:
    codec: Any = amqpcodec.dialect("amqp-0-8")
    ack = codec.encode_method(1, codec.METHODS[60, 80](delivery_tag=3))
    rows = arrow.decode_values(pa.array([ack]), "methods", dialect=codec, columns=["args.delivery_tag"])
    assert rows.to_pylist() == [{"args": {"delivery_tag": 3}}]
