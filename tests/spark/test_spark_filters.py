"""Filters that are pushed down mean on Arrow's columns what they mean in SQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import datasource as spark

from amqpcodec.spark.versions import lack

if message := lack("pushdown"):
    pytest.skip(message, allow_module_level=True)

from amqpcodec.spark.filters import expression

TABLE = pa.table({"name": ["a", None, "b"], "size": pa.array([1, None, 3], pa.int64())})


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        (spark.In(("name",), ("a", "c")), [0]),
        (spark.Not(spark.In(("name",), ("a",))), [2]),
        (spark.Not(spark.Not(spark.In(("name",), ("a",)))), [0]),
        (spark.Not(spark.EqualTo(("name",), "a")), [2]),
        (spark.Not(spark.IsNull(("name",))), [0, 2]),
        (spark.GreaterThan(("size",), 1), [2]),
        (spark.EqualTo(("size",), None), []),
    ],
)
def test_rows_are_kept_as_in_sql(given: Any, rows: list[int]) -> None:
    keep = expression(given, TABLE.schema)
    assert keep is not None
    assert TABLE.filter(keep).to_pylist() == [TABLE.to_pylist()[row] for row in rows]


@pytest.mark.parametrize(
    "given",
    [
        spark.In(("name",), ("a", None)),
        spark.In(("size",), (1, 1 << 64)),
        spark.EqualTo(("size",), 1.5),
        spark.In(("size",), (1.5,)),
        spark.EqualTo(("size",), "1"),
        spark.StringContains(("name",), "a"),
    ],
)
def test_what_a_column_cannot_say_is_left_to_spark(given: Any) -> None:
    assert expression(given, TABLE.schema) is None
