"""Batches: bounded, independent of how the octets came, equal however few columns are asked for."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.columns import BUILDS, Table, stream

from amqpcodec import arrow, rabbitmq
from amqpcodec._columns.schemas import STREAM_TABLES
from amqpcodec.capture import Connection, Data

HEARTBEAT = rabbitmq.encode_heartbeat()


def message(channel: int, body: bytes, **properties: Any) -> bytes:
    return rabbitmq.encode_message(
        channel,
        rabbitmq.Basic.Deliver("tag", len(body), False, "x", "key.é"),
        rabbitmq.BasicProperties(**properties),
        body,
        frame_max=310,
    )


STREAM = b"".join(
    (
        rabbitmq.encode_method(
            0, rabbitmq.Connection.StartOk({"product": "p"}, "PLAIN", b"\0u\0secret", "en")
        ),
        message(1, b"", headers={"a": 1, "b": [None, True, {"c": b"\xff"}], "d": "text", "e": None}),
        message(2, bytes(1000), content_type="text/plain", priority=3),
        message(1, b"x" * 41)[:-5] + b"!",  # the end octet is one too early: nothing behind it fits
        HEARTBEAT * 3,
        message(3, b"y", message_id="m" * 255),
        rabbitmq.encode_method(1, rabbitmq.Basic.Ack(2**64 - 1)),
        message(2, b"last"),
        b"\x01\0",
    )
)


def table(build: str, name: str, *chunks: bytes, **options: Any) -> pa.Table:
    maker = Table(build, name, **options)
    return pa.Table.from_batches(maker.batches(stream(*chunks)), maker.schema)


def chopped(octets: bytes, size: int) -> list[bytes]:
    return [octets[at : at + size] for at in range(0, len(octets), size)]


@pytest.mark.parametrize("name", STREAM_TABLES)
class TestEveryTable:
    @pytest.mark.parametrize("size", [1, 7, 64])
    def test_the_cut_of_the_stream_does_not_matter(self, build: str, name: str, size: int) -> None:
        whole = table(build, name, STREAM)
        assert whole.num_rows > 0
        assert table(build, name, *chopped(STREAM, size)).equals(whole)

    def test_asking_for_few_columns_changes_none_of_them(self, build: str, name: str) -> None:
        whole = table(build, name, STREAM)
        for column in whole.schema.names:
            assert table(build, name, STREAM, columns=[column]).equals(whole.select([column]))

    def test_children_of_structs_can_be_asked_for_alone(self, build: str, name: str) -> None:
        whole = table(build, name, STREAM)
        for field in whole.schema:
            for child in field.type if pa.types.is_struct(field.type) else ():
                few = table(build, name, STREAM, columns=[f"{field.name}.{child.name}"])
                expected = [row and row[child.name] for row in whole.column(field.name).to_pylist()]
                assert [row and row[child.name] for row in few.column(0).to_pylist()] == expected
                assert few.column(0).null_count == whole.column(field.name).null_count

    def test_batches_are_bounded_by_rows(self, build: str, name: str) -> None:
        whole = table(build, name, STREAM)
        batches = Table(build, name, batch_rows=2).batches(stream(STREAM))
        assert [batch.num_rows for batch in batches[:-1]] == [2] * (len(batches) - 1)
        assert pa.Table.from_batches(batches).equals(whole)

    def test_batches_do_not_depend_on_the_cut(self, build: str, name: str) -> None:
        batches = Table(build, name, _batch_bytes=150).batches(stream(STREAM))
        other = Table(build, name, _batch_bytes=150).batches(stream(*chopped(STREAM, 11)))
        assert [batch.num_rows for batch in other] == [batch.num_rows for batch in batches]
        assert all(one.equals(two) for one, two in zip(other, batches, strict=True))

    def test_nothing_gives_no_batch(self, build: str, name: str) -> None:
        assert Table(build, name).batches(stream(b"")) == []

    def test_random_octets_are_read_to_their_end(self, build: str, name: str) -> None:
        source = random.Random(5)
        octets = bytearray(STREAM * 3)
        for _ in range(40):
            octets[source.randrange(len(octets))] = source.randrange(256)
        found = table(build, name, bytes(octets))
        assert table(build, name, *chopped(bytes(octets), 13)).equals(found)


def test_batches_are_bounded_by_octets(build: str) -> None:
    octets = message(1, bytes(32)) * 10
    each = len(octets) // 10
    batches = Table(build, "messages", _batch_bytes=3 * each).batches(stream(octets))
    assert [batch.num_rows for batch in batches] == [3, 3, 3, 1]


@pytest.mark.parametrize("build", BUILDS)
@given(data=st.data())
@settings(max_examples=30)
def test_damage_and_cuts_give_the_same_rows_as_the_whole(build: str, data: st.DataObject) -> None:
    """Parity of builds, and of cuts: with both builds, the compiled one is compared with the pure one."""
    octets = bytearray(STREAM)
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(STREAM) - 1), st.integers(0, 255)), max_size=3)
    ):
        octets[position] = value
    damaged = bytes(octets[: data.draw(st.integers(0, len(octets)))])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(damaged)), max_size=3)))
    chunks = [damaged[start:end] for start, end in zip([0, *cuts], [*cuts, len(damaged)], strict=True)]
    name = data.draw(st.sampled_from(STREAM_TABLES))
    names = arrow.schema(name, dialects=["rabbitmq-0-9-1"]).names
    columns = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(names), min_size=1, unique=True)))
    mode = data.draw(st.sampled_from(["permissive", "drop"]))
    found = table(build, name, *chunks, columns=columns, mode=mode)
    assert found.equals(table("py", name, damaged, columns=columns, mode=mode))


class TestBatchDecoder:
    def test_it_gives_full_batches_at_once_and_the_rest_at_the_end(self) -> None:
        decoder = arrow.BatchDecoder("frames", batch_rows=2)
        first = decoder.feed(HEARTBEAT * 5)
        assert [batch.num_rows for batch in first] == [2, 2]
        assert all(batch.schema == decoder.schema for batch in first)
        assert [batch.num_rows for batch in decoder.finish()] == [1]

    def test_it_takes_any_octets(self) -> None:
        decoder = arrow.BatchDecoder("frames", columns=["offset"], direction=1)
        decoder.feed(memoryview(bytearray(HEARTBEAT)))
        decoder.feed(memoryview(HEARTBEAT * 2)[::1])
        (batch,) = decoder.finish()
        assert batch.to_pydict() == {"offset": [0, 8, 16]}

    def test_after_the_end_nothing_is_taken(self) -> None:
        decoder = arrow.BatchDecoder("frames")
        assert decoder.finish() == []
        with pytest.raises(ValueError, match="finished"):
            decoder.feed(b"")
        with pytest.raises(ValueError, match="finished"):
            decoder.finish()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"columns": ["nothing"]}, "no column 'nothing'"),
            ({"columns": ["Ofset"]}, "no column 'Ofset'; there are .*; the nearest name is 'offset'$"),
            ({"columns": ["offset", "offset"]}, "asked for twice"),
            ({"dialect": "amqp-1-0"}, "no dialect 'amqp-1-0'"),
            ({"mode": "quiet"}, "mode: 'quiet' is none of"),
            ({"frame_max": 7}, "frame_max: must be 8 to 9223372036854775807, not 7"),
            ({"frame_max": 2**63}, "frame_max: must be 8 to"),
            ({"batch_rows": 0}, "batch_rows: must be 1 to"),
            ({"direction": 2}, "direction: must be 0 to 1, not 2"),
        ],
    )
    def test_wrong_arguments_are_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            arrow.BatchDecoder("messages", **options)

    def test_unknown_tables_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no table 'packets'"):
            arrow.BatchDecoder("packets")


class TestWholeStreams:
    def test_one_batch_holds_all(self) -> None:
        octets = message(1, b"body") * 50
        assert arrow.decode_frames(octets).num_rows == 150
        assert arrow.decode_methods(octets).num_rows == 50
        assert arrow.decode_messages(octets, columns=["body"]).to_pydict() == {"body": [b"body"] * 50}

    def test_of_nothing_it_has_no_rows(self) -> None:
        batch = arrow.decode_messages(b"")
        assert batch.num_rows == 0
        assert batch.schema == arrow.schema("messages", dialects=["rabbitmq-0-9-1"])

    def test_more_than_one_batch_holds_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("amqpcodec.arrow.decoding._WHOLE_BYTES", 100)
        assert arrow.decode_frames(HEARTBEAT * 13).num_rows == 13
        with pytest.raises(ValueError, match="use BatchDecoder"):
            arrow.decode_frames(HEARTBEAT * 14)

    def test_with_auto_the_columns_are_those_of_all_dialects(self) -> None:
        batch = arrow.decode_messages(STREAM, dialect="auto")
        assert batch.schema == arrow.schema("messages")
        own = arrow.decode_messages(STREAM)
        assert batch.select(["body", "routing_key"]).equals(own.select(["body", "routing_key"]))

    def test_for_a_stream_only_direction_and_offset_say_where_it_was(self) -> None:
        (row,) = arrow.decode_frames(HEARTBEAT, direction=1).to_pylist()
        lead = ("file", "flow", "client", "server", "direction", "ts", "ts_ns", "offset", "packet")
        assert {name: row[name] for name in lead} == dict.fromkeys(lead) | {"direction": 1, "offset": 0}


@pytest.mark.parametrize("size", [1, 7, 8, 15])
def test_a_second_protocol_header_in_chunks_holds_nothing_up(build: str, size: int) -> None:
    octets = rabbitmq.DIALECT.protocol_header * 2 + HEARTBEAT * 3
    events = [event for event in stream(*chopped(octets, size)) if isinstance(event, Data)]  # it does not end
    found = Table(build, "frames", columns=["offset", "frame_type"]).rows(events)
    assert [row["offset"] for row in found if row["frame_type"] == 8] == [16, 24, 32]


@pytest.mark.skipif(
    "c" not in BUILDS or not Path("/proc/self/statm").exists(), reason="the memory in use is not reported"
)
@pytest.mark.skipif("AMQPCODEC_SANITIZED" in os.environ, reason="a sanitizer keeps freed memory for a while")
class TestWhatIsHeld:
    """By the compiled build, of the memory of the process: it is not Python's."""

    def grown(self, chunks: Iterable[bytes]) -> int:
        maker = Table("c", "messages", columns=["offset"])
        maker.batches(stream(message(1, b"x")))
        before = in_use()
        connection = Connection(0, None, None)
        maker.batches(Data(connection, 0, 0, chunk, None, None) for chunk in chunks)
        return in_use() - before

    def test_a_frame_that_comes_in_single_octets(self) -> None:
        octets = iter(HEARTBEAT + rabbitmq.encode_body(1, bytes(400_000))[:-1])
        assert self.grown(bytes([octet]) for octet in octets) < 5_000_000

    def test_channels_without_an_open_content(self) -> None:
        messages = (message(channel, bytes(2000)) for channel in range(1, 8000))
        assert self.grown(chunk for each in messages for chunk in chopped(each, 2000)) < 12_000_000


def in_use() -> int:
    """Octets of memory that the process uses, roughly."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096


def deliveries(count: int) -> bytes:
    """Messages that differ from each other."""
    return b"".join(
        message(
            1, number.to_bytes(4, "big") * 40, message_id=f"{number:032}", headers={"n": number, "v": None}
        )
        for number in range(count)
    )


@pytest.mark.parametrize("table", ["messages", "frames", "methods"])
def test_batches_that_are_kept_stay_as_they_are_while_others_are_given_back(table: str) -> None:
    octets = deliveries(6000)
    whole = getattr(arrow, f"decode_{table}")(octets)
    decoder = arrow.BatchDecoder(table, batch_rows=300)
    source = random.Random(3)
    kept: dict[int, pa.RecordBatch] = {}
    row = 0
    for chunk in chopped(octets, 90_000):
        for batch in decoder.feed(chunk):
            kept[row] = batch
            row += batch.num_rows
        with ThreadPoolExecutor(1) as elsewhere:
            for gone in source.sample(sorted(kept), len(kept) // 2):
                elsewhere.submit(kept.pop, gone)
    assert row == len(whole) > 2000
    assert kept
    for row, batch in kept.items():
        batch.validate(full=True)
        assert batch.equals(whole.slice(row, 300))


def test_batches_outlive_their_decoder() -> None:
    octets = deliveries(1200)
    batches = arrow.BatchDecoder("messages", batch_rows=300).feed(octets)
    gc.collect()
    assert pa.Table.from_batches(batches).to_batches()[-1].equals(arrow.decode_messages(octets).slice(900))


def test_columns_of_nulls_are_whole_whatever_is_in_the_rows_beside_them(build: str) -> None:
    """More entries of a map than rows, and none with a value."""
    octets = b"".join(message(1, b"", headers={f"k{at}": None for at in range(40)}) for _ in range(3))
    rows = table(build, "messages", octets)
    assert rows.column("headers").to_pylist() == [[(f"k{at}", None) for at in range(40)]] * 3
    assert (
        rows.column("ts_ns").null_count == rows.column("properties").combine_chunks().field(0).null_count == 3
    )
    assert len(arrow.encode_messages(rows)) == len(octets)
