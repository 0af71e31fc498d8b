"""``spark.read.format("amqp")`` gives the rows of `amqpcodec.arrow`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from support.rotations import busy, write_rotated
from support.spark_jobs import in_spark

from amqpcodec import arrow, rabbitmq
from amqpcodec._columns.schemas import TABLES
from amqpcodec.spark import register


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording in four files."""
    folder = tmp_path_factory.mktemp("captures")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=4)
    return folder / "set"


def read(spark: Any, path: Path, schema: str | None = None, **options: Any) -> Any:
    reader = spark.read.format("amqp").options(**options)
    return (reader.schema(schema) if schema else reader).load(str(path))


def wanted(folder: Path, table: str = "messages", **options: Any) -> pa.Table:
    return in_spark(arrow.CaptureSession(table, **options), sorted(folder.iterdir()))


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_those_of_the_library(spark: Any, folder: Path, table: str) -> None:
    found = read(spark, folder, table=table, maxGroupBytes=100_000).toArrow()
    assert found.equals(wanted(folder, table))


@pytest.mark.slow("needs a session of Spark")
def test_a_file_is_divided_and_gives_the_same_rows(spark: Any, folder: Path) -> None:
    path = sorted(folder.iterdir())[-1]
    found = read(spark, path, table="frames", maxPartitionBytes=path.stat().st_size // 5)
    assert found.select("offset").toArrow().num_rows
    assert found.toArrow().equals(in_spark(arrow.CaptureSession("frames"), [path]))


def test_the_source_is_found_without_being_registered_and_may_be(spark: Any, folder: Path) -> None:
    rows = read(spark, folder).count()
    register(spark)
    assert read(spark, folder).count() == rows == wanted(folder).num_rows


def test_a_schema_chooses_columns(spark: Any, folder: Path) -> None:
    schema = "exchange string, properties struct<message_id: string>, bad binary, ts timestamp"
    found = read(spark, folder, schema, columnNameOfCorruptRecord="bad").toArrow()
    columns = ["exchange", "properties.message_id", "_corrupt_record", "ts"]
    assert found.equals(
        wanted(folder, columns=columns).rename_columns(["exchange", "properties", "bad", "ts"])
    )


def test_columns_can_be_named_by_an_option(spark: Any, folder: Path) -> None:
    found = read(spark, folder, table="frames", columns="payload, offset")
    assert found.columns == ["payload", "offset"]
    assert found.toArrow().equals(wanted(folder, "frames", columns=["payload", "offset"]))


def test_a_column_that_is_not_there_is_named_with_those_that_are(spark: Any, folder: Path) -> None:
    with pytest.raises(
        PySparkException,
        match=r"no column 'exchnage'; there are file, recording, flow, .*; the nearest name is 'exchange'",
    ):
        read(spark, folder, "exchnage string").count()


def test_an_option_that_is_not_there_is_refused(spark: Any, folder: Path) -> None:
    with pytest.raises(PySparkException, match="no option 'tabel'; there are path"):
        read(spark, folder, tabel="frames")


def test_a_path_without_files_is_named(spark: Any, folder: Path) -> None:
    with pytest.raises(PySparkException, match=r"there is no file .*/nothing"):
        read(spark, folder / "nothing").count()


def test_sql_reads_it(spark: Any, folder: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW traffic USING amqp OPTIONS (path '{folder}', table 'messages')")
    found = spark.sql("SELECT exchange, sum(body_size) AS octets FROM traffic GROUP BY exchange")
    expected: Counter[str] = Counter()
    for row in wanted(folder, columns=["exchange", "body_size"]).to_pylist():
        expected[row["exchange"]] += row["body_size"]
    assert {row.exchange: row.octets for row in found.collect()} == expected


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A stream with a method that is not known in its midst."""
    ack = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(7))
    unknown = b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x99\x99\xce"
    (tmp_path / "stream.amqp").write_bytes(ack + unknown + ack)
    return tmp_path / "stream.amqp"


def test_streams_are_read_and_rows_in_error_kept(spark: Any, damaged: Path) -> None:
    found = read(
        spark, damaged, "file string, name string, _error string, _corrupt_record binary", table="methods"
    )
    rows = [row.asDict() for row in found.collect()]
    assert {row["file"] for row in rows} == {str(damaged)}
    assert [row["name"] for row in rows] == ["basic.ack", None, "basic.ack"]
    assert rows[1]["_error"] == "COMMAND_INVALID at 28"
    assert bytes(rows[1]["_corrupt_record"]) == damaged.read_bytes()[21:33]


def test_rows_in_error_can_be_dropped(spark: Any, damaged: Path) -> None:
    found = read(spark, damaged, table="methods", mode="DROPMALFORMED")
    assert [row.name for row in found.collect()] == ["basic.ack", "basic.ack"]


def test_a_row_in_error_can_fail_the_query(spark: Any, damaged: Path) -> None:
    with pytest.raises(PySparkException, match=rf"COMMAND_INVALID|503[\s\S]*in '{damaged}'"):
        read(spark, damaged, table="methods", mode="FAILFAST").collect()


def test_the_pure_build_is_used_when_asked_for(spark: Any, folder: Path) -> None:
    path = sorted(folder.iterdir())[0]
    assert read(spark, path, impl="py").toArrow().equals(in_spark(arrow.CaptureSession(), [path]))


def test_a_table_in_the_catalog_is_refused_and_a_view_keeps_its_options(spark: Any, folder: Path) -> None:
    register(spark)
    options = f"OPTIONS (path '{folder}', table 'frames')"
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW name USING amqp"):
        spark.sql(f"CREATE TABLE captured USING amqp {options}")
    spark.sql(f"CREATE TEMPORARY VIEW captured USING amqp {options}")
    expected = sum(batch.num_rows for batch in wanted(folder, "frames").to_batches())
    assert spark.sql("SELECT * FROM captured").count() == expected > 0
