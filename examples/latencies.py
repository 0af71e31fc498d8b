"""Two questions about captures, in Polars, in DuckDB and on Spark.

How long do messages of each queue take to be acknowledged? How long do requests wait for replies?

    python examples/latencies.py trace.pcap [polars|duckdb]     # on Spark: with_spark(session, path)

Change first: the columns by which they group and join, which are those of the table `deliveries`
(docs/columns.md). All three give the same numbers, and `amqpcodec stats` gives them, too.
"""

from __future__ import annotations

import sys
from typing import Any

from amqpcodec import arrow

# The 99th percentile is the least latency that 99 of 100 messages do not exceed.
ACKNOWLEDGED = """
SELECT queue, {percentile} AS p99_us FROM deliveries
WHERE kind IN ('deliver', 'get-ok') AND latency_us IS NOT NULL GROUP BY queue
"""
# Who asks names a queue for the reply; who answers publishes to it by its name, with the same correlation id.
REPLIES = """
SELECT request.correlation_id, reply.ts_ns - request.ts_ns AS waited_ns
FROM deliveries AS request JOIN deliveries AS reply
ON reply.routing_key = request.reply_to AND reply.correlation_id = request.correlation_id
WHERE request.kind = 'publish' AND reply.kind = 'publish' AND reply.ts_ns >= request.ts_ns
"""

Answers = tuple[dict[str, int], dict[str, int]]  # microseconds by queue; nanoseconds by correlation id


def with_polars(path: str) -> Answers:
    """Return both answers from the Polars library."""
    import polars
    from polars import col

    deliveries = polars.DataFrame(arrow.read_capture(path, "deliveries"))
    answered = deliveries.filter(col("kind").is_in(["deliver", "get-ok"]), col("latency_us").is_not_null())
    slow = answered.group_by("queue").agg(col("latency_us").quantile(0.99, "equiprobable").cast(polars.Int64))
    published = deliveries.filter(col("kind") == "publish")
    both = published.join(
        published, left_on=["reply_to", "correlation_id"], right_on=["routing_key", "correlation_id"]
    )
    replies = both.filter(col("ts_ns_right") >= col("ts_ns"))
    waited = replies.select("correlation_id", col("ts_ns_right") - col("ts_ns"))
    return dict(slow.iter_rows()), dict(waited.iter_rows())


def with_duckdb(path: str) -> Answers:
    """Return both answers from DuckDB."""
    import duckdb

    deliveries = arrow.read_capture(path, "deliveries").reader().read_all()
    assert deliveries.num_rows  # DuckDB finds the table by the name of this variable
    slow = duckdb.sql(ACKNOWLEDGED.format(percentile="quantile_disc(latency_us, 0.99)"))
    return dict(slow.fetchall()), dict(duckdb.sql(REPLIES).fetchall())


def with_spark(spark: Any, path: str) -> Answers:
    """Return both answers from a session of Spark, in which the data source is registered."""
    spark.read.format("amqp").option("table", "deliveries").load(path).createOrReplaceTempView("deliveries")
    percentile = "percentile_disc(0.99) WITHIN GROUP (ORDER BY latency_us)"
    slow = spark.sql(ACKNOWLEDGED.format(percentile=percentile)).collect()
    return {queue: int(p99) for queue, p99 in slow}, dict(map(tuple, spark.sql(REPLIES).collect()))


if __name__ == "__main__":
    capture, library = [*sys.argv[1:], "polars"][:2]
    by_queue, by_request = {"polars": with_polars, "duckdb": with_duckdb}[library](capture)
    for queue, microseconds in by_queue.items():
        print(f"{queue}: {microseconds} us until 99 % are acknowledged")
    for request, nanoseconds in by_request.items():
        print(f"{request}: a reply after {nanoseconds} ns")
