"""A filter belongs to one plan: the next one on the same DataFrame or view gives its own rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import lit
from pyspark.sql.types import StructType
from support.rotations import busy

from amqpcodec import arrow

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
COLUMNS = (
    "kind",
    "exchange",
    "routing_key",
    "channel",
    "redelivered",
    "body_size",
    "properties.delivery_mode",
)
ALONE = (
    "exchange = 'orders'",
    "exchange != 'orders'",
    "exchange IN ('orders', 'events')",
    "exchange NOT IN ('orders', 'events')",
    "exchange < 'f'",
    "exchange IS NULL",
    "exchange LIKE '%e%'",
    "routing_key LIKE 'order.%'",
    "kind = 'publish'",
    "kind = 'deliver'",
    "redelivered",
    "NOT redelivered",
    "redelivered IS NULL",
    "redelivered <=> NULL",
    "channel = 1",
    "channel > 1",
    "channel + 1 = 3",
    "body_size > 300",
    "body_size BETWEEN 100 AND 300",
    "properties.delivery_mode = 2",
)
FILTERS = (
    *ALONE,
    *(f"({one}) OR ({other})" for one, other in zip(ALONE[:10], ALONE[10:], strict=True)),
    *(f"({one}) AND NOT ({other})" for one, other in zip(ALONE[:10], ALONE[-1:9:-1], strict=True)),
)


@pytest.fixture
def pushdown(spark: Any) -> Iterator[None]:
    """Have Spark hand filters to sources, where it can."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


@pytest.mark.spark
def test_filters_in_any_order_on_one_dataframe_give_their_own_rows(
    spark: Any, pushdown: None, tmp_path: Path
) -> None:
    busy(tmp_path / "a.pcap", 60_000)
    rows = pa.Table.from_batches(arrow.read_capture(tmp_path / "a.pcap", columns=COLUMNS))
    counted = spark.createDataFrame(rows).selectExpr(*(f"count_if({one})" for one in FILTERS))
    wanted = dict(zip(FILTERS, counted.collect()[0], strict=True))
    assert len(wanted) == 40
    assert len(set(wanted.values())) > 20
    found = spark.read.format("amqp").options(columns=",".join(COLUMNS)).load(str(tmp_path))
    order = random.Random(1).sample(FILTERS, len(FILTERS))
    for one, other in zip(order[::2], order[1::2], strict=True):
        both = (
            found.where(one).withColumn("first", lit(1)).union(found.where(other).withColumn("first", lit(0)))
        )
        counts = both.selectExpr("count_if(first = 1)", "count_if(first = 0)").collect()[0]
        assert tuple(counts) == (wanted[one], wanted[other]), (one, other)
    assert found.count() == rows.num_rows


def counting() -> type[DataSource]:
    """Return a source of ten numbers that takes filters; made here, so that workers get it by value."""

    class Reader(DataSourceReader):
        least = 0

        def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802
            for given in filters:
                if type(given).__name__ == "GreaterThanOrEqual":
                    self.least = given.value
                else:
                    yield given

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((number,) for number in range(self.least, 10))

    class Counting(DataSource):
        @classmethod
        def name(cls) -> str:
            return "counting"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    return Counting


@pytest.mark.skipif(not hasattr(datasource, "Filter"), reason="this PySpark hands over no filters")
@pytest.mark.spark
def test_pyspark_still_keeps_the_filters_of_another_plan(spark: Any, pushdown: None) -> None:
    """The reason why the source takes none. Once this fails, it can: docs/spark.md names the versions."""
    spark.dataSource.register(counting())
    found = spark.read.format("counting").load()
    assert found.where("number >= 8").count() == 2
    assert found.count() == 2
    assert found.where("number >= 8 OR number = 1").count() == 2
