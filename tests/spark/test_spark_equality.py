"""Rows of a damaged capture through Spark are those made without it, in parts of any size.

`make spark-equality` does it at a thousand times the size, by hashes; these have to distinguish all rows.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import spark_equality as equality
from pyspark.sql import functions, types

from amqpcodec._columns.schemas import TABLES

ROOT = Path(__file__).parents[2]
VALUES = {
    types.BooleanType: True,
    types.ByteType: 1,
    types.ShortType: 1,
    types.IntegerType: 1,
    types.LongType: 1,
    types.StringType: "1",
    types.BinaryType: b"1",
    types.TimestampType: datetime(2026, 1, 1, tzinfo=UTC),
    types.MapType: {"1": "1"},
}
KINDS = (
    "text string, octets binary, flag boolean, number int, pairs map<string,string>,"
    " part struct<a:string,b:string>"
)
EMPTY = ("", b"", False, 0, {}, (None, None))
DIFFERENT_ROWS = [
    EMPTY,
    *((*EMPTY[:at], None, *EMPTY[at + 1 :]) for at in range(len(EMPTY))),
    (None,) * len(EMPTY),
    *((*EMPTY[:4], pairs, EMPTY[5]) for pairs in ({"": None}, {"": ""}, {"a": None}, {"a": ""}, {"": "a"})),
    *((*EMPTY[:4], pairs, EMPTY[5]) for pairs in ({"a": "b", "c": "d"}, {"a": "d", "c": "b"}, {"ab": "cd"})),
    *(
        (*EMPTY[:5], part)
        for part in (("", None), (None, ""), ("", ""), ("a", None), (None, "a"), ("a", "a"))
    ),
]


def row_hashes(frame: Any) -> list[int]:
    hashes = ", ".join(equality.hashes(frame.schema))
    return [row[0] for row in frame.selectExpr(f"xxhash64({hashes})").collect()]


def each_alone(kind: types.DataType) -> list[Any]:
    """Values of a type that has parts, one for each of which nothing else is there, and without any."""
    if not isinstance(kind, types.StructType):
        return [VALUES[type(kind)]]
    nothing = (None,) * len(kind)
    found = [nothing]
    for at, field in enumerate(kind):
        found += [(*nothing[:at], value, *nothing[at + 1 :]) for value in each_alone(field.dataType)]
    return found


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_a_row_counts(spark: Any, table: str) -> None:
    from amqpcodec.spark.schemas import table_schema

    schema = table_schema(table, columns=equality.columns_of(table))
    rows = each_alone(schema)
    assert len(rows) > len(schema)
    assert len(set(row_hashes(spark.createDataFrame(rows, schema)))) == len(rows)


def test_null_and_empty_and_where_a_value_stands_count(spark: Any) -> None:
    found = row_hashes(spark.createDataFrame(DIFFERENT_ROWS, KINDS))
    assert len(set(found)) == len(DIFFERENT_ROWS)


@pytest.fixture(scope="module")
def stored(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Rows as the benchmark stores them, in some of their columns, and their digest."""
    path = tmp_path_factory.mktemp("stored") / "rows.parquet"
    equality.store("methods", [ROOT / "examples" / "real-bunny.pcap"], path)
    frame = spark.read.parquet(str(path)).select("client", "server", "offset", "args").coalesce(1).cache()
    return frame, equality.digest(frame)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"offset": "IF(offset = 1582, 1583, offset)"}, "offset"),
        ({"client": "IF(offset = 1582, upper(client) || '.', client)"}, "client"),
        ({"args": "IF(offset = 1582, NULL, args)"}, "args"),
        ({"client": "IF(offset = 1582, server, client)", "server": "IF(offset = 1582, client, server)"},
         "client, server"),
        ({"offset": "CAST(offset AS int)"}, "offset"),
        ({"offset": "IF(offset IN (458, 597), 1055 - offset, offset)"}, "what stands together in a row"),
    ],
)  # fmt: skip
def test_a_planted_value_is_reported_and_its_column_named(
    stored: tuple[Any, Any], changed: dict[str, str], named: str
) -> None:
    frame, wanted = stored
    planted = frame.withColumns({name: functions.expr(text) for name, text in changed.items()})
    assert equality.difference(planted, frame, wanted) == f"101 rows that differ in {named}"


@pytest.mark.parametrize(("lost", "doubled"), [(1, 0), (0, 1), (1, 1), (0, 2)])
def test_a_row_that_is_lost_or_doubled_is_reported(stored: tuple[Any, Any], lost: int, doubled: int) -> None:
    frame, wanted = stored
    planted = frame.where("offset != 1582") if lost else frame
    for _ in range(doubled):
        planted = planted.union(frame.where("offset = 1537"))
    found = equality.digest(planted)
    assert found != wanted
    assert found[0] == 101 - lost + doubled


def test_the_order_of_rows_does_not_count(stored: tuple[Any, Any]) -> None:
    frame, wanted = stored
    assert equality.difference(frame.orderBy("server", "offset"), frame, wanted) == ""


@pytest.mark.spark
def test_all_rows_are_equal_whatever_the_parts(java: None, tmp_path: Path) -> None:
    """What `make spark-equality` does, but for its size and the other tables."""
    command = [sys.executable, "tools/spark_equality.py", "--mb", "1"]
    command += ["--folder", str(tmp_path), "--tables", "messages", "errors"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("local[")]
    assert len(lines) == 2 * 4
    assert all("rows equal" in line and " 0 rows" not in line for line in lines), done.stdout
