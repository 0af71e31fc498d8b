"""From a folder of captures to tables, three questions about them, and a corpus to replay, on Spark.

    python examples/spark_pipeline.py CAPTURES WORK          # on this machine
    spark-submit examples/spark_pipeline.py CAPTURES WORK    # on a cluster, whose machines share both folders

Change first: the questions, in SQL. WORK gets the tables `messages` (by day and exchange), `deliveries` and
`methods`, and `replay`: streams of frames with an index. CAPTURES has to be one recording, since `flow`
numbers the connections of each anew.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from amqpcodec.spark import register
from amqpcodec.spark.java import local_java

QUESTIONS = {
    "Traffic by exchange and minute": """
SELECT exchange, date_trunc('minute', ts) AS minute, count(*) AS messages, sum(body_size) AS octets
FROM messages WHERE kind = 'publish' GROUP BY ALL ORDER BY minute, exchange""",
    "Published, but never confirmed": """
SELECT flow, channel, delivery_tag, ts, exchange, routing_key
FROM deliveries WHERE kind = 'publish' AND outcome IN ('none', 'refused') ORDER BY ts_ns""",
    "Closed with an error, and what came before": """
WITH told AS (
  SELECT *, collect_list(name) OVER (
    PARTITION BY flow ORDER BY ts_ns, packet, offset ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING) AS before
  FROM methods)
SELECT flow, client, ts, name, args.reply_code, args.reply_text, before
FROM told WHERE name IN ('connection.close', 'channel.close') AND args.reply_code >= 300 ORDER BY ts""",
}
METHODS = "flow,client,direction,ts,ts_ns,offset,packet,channel,name,args"  # without columns, all


def make_tables(spark: SparkSession, captures: str, work: str) -> None:
    """Make the tables of captures, as Parquet and as views."""

    def read(table: str, **options: str) -> DataFrame:
        return spark.read.format("amqp").options(table=table, **options).load(captures)

    by_day = read("messages").withColumn("day", sql.to_date("ts")).write.partitionBy("day", "exchange")
    by_day.mode("overwrite").parquet(f"{work}/messages")
    read("deliveries").write.mode("overwrite").parquet(f"{work}/deliveries")
    read("methods", columns=METHODS).write.mode("overwrite").parquet(f"{work}/methods")
    for table in ("messages", "deliveries", "methods"):
        spark.read.parquet(f"{work}/{table}").createOrReplaceTempView(table)


def write_replay(spark: SparkSession, work: str) -> None:
    """Write what was published, in order, as streams of frames with an index of their times."""
    published = spark.sql("SELECT * FROM messages WHERE kind = 'publish' AND complete")
    in_order = published.repartition(2, "flow").sortWithinPartitions("ts_ns", "packet", "offset")
    in_order.write.format("amqp").mode("overwrite").option("output", "stream").save(f"{work}/replay")


def main(captures: str, work: str) -> None:
    """Make tables, answer, and write what is to be replayed."""
    with ExitStack() as stack:
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # without spark-submit, on this machine
            stack.enter_context(local_java())
        spark = SparkSession.builder.appName("AMQP pipeline").getOrCreate()
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        register(spark)
        make_tables(spark, captures, work)
        for question, answer in QUESTIONS.items():
            print(question)
            spark.sql(answer).show(10, truncate=60)
        write_replay(spark, work)


if __name__ == "__main__":
    main(*sys.argv[1:])
