"""Column functions and tables of frames: rows are those of `amqpcodec.arrow`."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PythonException
from pyspark.sql import functions as sql
from support.rotations import busy

from amqpcodec import arrow, rabbitmq
from amqpcodec.spark import (
    decode_captures,
    decode_frames,
    decode_streams,
    decoding,
    from_amqp,
    functions,
    to_amqp,
)  # fmt: skip
from amqpcodec.spark.packaging import packaged

ACK = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(7))
CUT_ARGUMENTS = b"\x01\0\1\0\0\0\4\0\x3c\0\x50\xce"  # basic.ack without its arguments


def message(number: int) -> bytes:
    properties = rabbitmq.BasicProperties(
        headers={"number": number, "text": "größe"},
        timestamp=1_700_000_000 + number,
        content_type="text/plain",
    )
    method = rabbitmq.Basic.Publish(exchange="orders", routing_key=f"key.{number}")
    return bytes(rabbitmq.encode_message(1, method, properties, b"body" * number))


MESSAGES = [message(number) for number in range(40)]


def table_of(spark: Any, values: list[bytes | None]) -> Any:
    rows = [(number, value) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "id long, octets binary").repartition(3)


def comparable(value: Any) -> Any:
    """A value from Spark or Arrow, in a form in which both compare equal."""
    if hasattr(value, "asDict"):
        return {name: comparable(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: comparable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return dict(value)  # of pairs, a map
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "timestamp"):
        return value.replace(tzinfo=None)
    return value


@pytest.mark.parametrize("table", ["frames", "methods", "messages"])
def test_a_struct_is_the_row_of_its_value(spark: Any, table: str) -> None:
    values = [None, b"", ACK, *MESSAGES[:5], MESSAGES[1][:-2], ACK + ACK, b"odd"]
    df = table_of(spark, values).select("id", from_amqp("octets", table).alias("d")).orderBy("id")
    found = [comparable(row.d) for row in df.collect()]
    rows = [comparable(row) for row in arrow.decode_values(pa.array(values, pa.binary()), table).to_pylist()]
    assert found == [None, *rows[1:]]


def test_the_way_through_pandas_gives_the_same(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None, *MESSAGES[:5], ACK]
    df = table_of(spark, values)
    structs = [df.select("id", from_amqp("octets", "messages").alias("d"))]
    monkeypatch.delattr(functions.sql, "arrow_udf", raising=False)
    structs.append(df.select("id", from_amqp("octets", "messages").alias("d")))
    first, second = ([comparable(row) for row in each.orderBy("id").collect()] for each in structs)
    assert first[0]["d"] is None
    assert first == second


def test_a_function_is_evaluated_once_however_it_is_used(spark: Any, capsys: Any) -> None:
    df = table_of(spark, [ACK]).select(from_amqp("octets", columns=["name", "size"]).alias("d"))
    df.where("d.name = 'basic.ack'").select("d.*").where("size > 1").explain()
    assert capsys.readouterr().out.count("ArrowEvalPython") == 1


def test_a_damaged_value_can_end_the_query(spark: Any) -> None:
    df = table_of(spark, [ACK, b"odd"])
    with pytest.raises(PythonException, match=r"Error: value \d: "):
        df.select(from_amqp("octets", mode="fail")).collect()
    with pytest.raises(ValueError, match="drop' goes with explode only"):
        from_amqp("octets", mode="drop")
    with pytest.raises(ValueError, match="no column"):
        from_amqp("octets", columns=["nothing"])


@pytest.mark.needs("to_amqp")
def test_messages_come_back_as_their_octets(spark: Any) -> None:
    df = table_of(spark, [*MESSAGES, None]).select("id", from_amqp("octets", "messages").alias("d"))
    found = df.select("id", to_amqp("d").alias("octets")).orderBy("id").collect()
    assert [row.octets and bytes(row.octets) for row in found] == [*MESSAGES, None]


@pytest.mark.needs("to_amqp")
def test_workers_are_sent_a_function_that_says_so_if_they_lack_the_package(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def recorded(function: Any) -> Any:
        sent.append(function.__name__)
        return packaged(function)

    for module in (functions, decoding):
        monkeypatch.setattr(module, "packaged", recorded)
    df = table_of(spark, [ACK])
    from_amqp("octets")
    to_amqp("octets")
    decode_frames(df, "octets")
    decode_streams(df, "id", "id", "octets")
    assert sent == ["decode", "encode", "decode", "decode"]


@pytest.mark.needs("to_amqp")
def test_a_message_that_cannot_be_written_is_null_or_ends_the_query(spark: Any) -> None:
    df = spark.createDataFrame([("a",), ("k" * 256,), ("c",)], "routing_key string").coalesce(1)
    found = df.select(to_amqp(sql.struct("routing_key"), mode="permissive").alias("octets")).collect()
    assert [row.octets is None for row in found] == [False, True, False]
    with pytest.raises(PythonException, match="row 1"):
        df.select(to_amqp(sql.struct("routing_key"))).collect()


@pytest.mark.needs("to_amqp")
def test_a_field_that_looks_misspelt_ends_the_query(spark: Any) -> None:
    df = spark.createDataFrame([("orders",)], "exchang string").coalesce(1)
    with pytest.raises(PythonException, match="exchang: no such column; the nearest is 'exchange'"):
        df.select(to_amqp(sql.struct("exchang"), mode="permissive")).collect()


def test_frames_of_a_value_are_rows_behind_its_keys(spark: Any) -> None:
    values = [ACK + MESSAGES[1], None, b"", MESSAGES[2], ACK[:9]]
    df = table_of(spark, values).selectExpr("id", "id * 2 AS twice", "octets")
    found = decode_frames(df, "octets", keys=["twice", "id"]).orderBy("id", "offset").collect()
    rows = arrow.decode_values(pa.array(values, pa.binary()), "frames", explode=True).to_pylist()
    numbers = [row.pop("value") for row in rows]
    keys = [{"twice": 2 * number, "id": number} for number in numbers]
    assert [comparable(row) for row in found] == [key | row for key, row in zip(keys, rows, strict=True)]
    dropped = decode_frames(df, "octets", mode="drop", columns=["_error"])
    assert dropped.count() == len(rows) - 1
    with pytest.raises(ValueError, match="two columns with the name 'offset'"):
        decode_frames(df.withColumnRenamed("id", "offset"), "octets", keys=["offset"])


def test_large_values_are_decoded_in_portions(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    batch = pa.RecordBatch.from_pydict({"octets": MESSAGES})
    monkeypatch.setattr(decoding, "_MOST_OCTETS", 1000)
    parts = list(decoding._portions(iter([batch]), "octets"))
    assert len(parts) > 5
    assert pa.Table.from_batches(parts).to_batches()[0].num_rows < 40
    assert pa.Table.from_batches(parts).column("octets").to_pylist() == MESSAGES


def test_streams_in_chunks_are_read_in_order(spark: Any) -> None:
    source = random.Random(7)
    chunks = []
    for stream in ("a", "b", "c"):
        octets, at = b"".join(MESSAGES if stream != "c" else MESSAGES[:1]), 0
        while at < len(octets):
            size = source.randrange(1, 400)
            chunks.append((stream, 1, at, octets[at : at + size]))
            at += size
        chunks.append((stream, 1, at, None))
    source.shuffle(chunks)
    df = spark.createDataFrame(chunks, "flow string, way int, at long, chunk binary").repartition(3)
    found = decode_streams(df, ["flow", "way"], "at", "chunk").orderBy("flow", "offset").collect()
    names = [name for name in found[0].asDict() if name not in ("flow", "way")]
    rows = [
        {"flow": stream, "way": 1, **comparable(row)}
        for stream, octets in (("a", MESSAGES), ("b", MESSAGES), ("c", MESSAGES[:1]))
        for row in arrow.decode_messages(b"".join(octets), columns=names).to_pylist()
    ]
    assert [comparable(row) for row in found] == rows


def test_no_octets_of_a_stream_are_lost_without_a_word(spark: Any) -> None:
    large = rabbitmq.encode_method(0, rabbitmq.Connection.Secure(b"x" * 200_000))
    chunks = [("cut", 0, ACK + ACK[:-1]), ("large", 0, large[:9]), ("large", 9, large[9:])]
    chunks.append(("odd", 0, b"no frame"))
    df = spark.createDataFrame(chunks, "flow string, at long, chunk binary")
    found = decode_streams(df, "flow", "at", "chunk", table="methods", columns=["name", "_error"])
    assert sorted(found.collect(), key=str) == [
        ("cut", "basic.ack", None), ("cut", None, f"LOST at {len(ACK)}"),
        ("large", "connection.secure", None), ("odd", None, "FRAME_ERROR at 0"),
    ]  # fmt: skip
    cut = df.where("flow = 'cut'")
    with pytest.raises(PythonException, match="in the stream cut"):
        decode_streams(cut, "flow", "at", "chunk", table="methods", mode="fail").collect()


def test_streams_are_not_sorted_twice(spark: Any, capsys: Any) -> None:
    df = spark.createDataFrame([("a", 0, ACK)], "flow string, at long, chunk binary")
    decode_streams(df, "flow", "at", "chunk", table="frames", columns=["name"]).explain()
    plan = capsys.readouterr().out
    assert plan.count("Sort [") == 1
    assert "Sort [flow#" in plan
    assert ", at#" in plan.split("Sort [")[1].split("]")[0]


def test_the_stream_in_error_is_named(spark: Any) -> None:
    df = spark.createDataFrame([("good", 0, ACK), ("bad", 0, CUT_ARGUMENTS)], "flow string, at int, c binary")
    with pytest.raises(PythonException, match="in the stream bad"):
        decode_streams(df, "flow", "at", "c", table="methods", mode="fail").collect()


def test_captures_that_spark_has_read_have_the_rows_of_files(spark: Any, tmp_path: Path) -> None:
    busy(tmp_path / "a b.pcap", 60_000, seed=1)
    (tmp_path / "b.pcap.gz").write_bytes(gzip.compress(busy(tmp_path / "a b.pcap", 40_000, seed=2)))
    (tmp_path / "empty.pcap").write_bytes((tmp_path / "a b.pcap").read_bytes()[:24])
    read = spark.read.format("binaryFile").load(str(tmp_path))
    found = decode_captures(read, columns=["file", "flow", "offset", "body"]).toArrow().to_pylist()
    expected = []
    for path in sorted(tmp_path.iterdir()):
        name = f"file:{path}"
        for batch in arrow.read_capture(path, columns=["flow", "offset", "body"]):
            expected += [{"file": name, **row} for row in batch.to_pylist()]
    assert len(expected) > 100
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    with pytest.raises(ValueError, match="no column 'colour'"):
        decode_captures(read, columns=["colour"])


def test_a_value_that_is_no_capture_is_named(spark: Any) -> None:
    df = spark.createDataFrame(
        [("s3://there/notes", b"hello"), ("none", None)], "path string, content binary"
    )
    with pytest.raises(PythonException, match="s3://there/notes"):
        decode_captures(df).collect()
    assert decode_captures(df.where("content is null")).count() == 0
