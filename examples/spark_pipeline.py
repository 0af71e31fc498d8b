"""From a folder of captures to a table, three questions about it, and a corpus to replay, on Spark.

    python examples/spark_pipeline.py WORK            # on this machine, with a capture made here from a seed
    spark-submit examples/spark_pipeline.py WORK --captures /data/captures      # on a cluster, with others

WORK has to be a folder that all machines share. In it come to be `captures` (unless there are others), the
tables `messages` (by day and exchange) and `methods`, and `replay`: streams of frames with an index. Captures
have to be one recording: each numbers its connections anew, and the questions know them by that number.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.spark import register
from amqpcodec.spark.java import local_java

CLIENT, BROKER = 0, 1
EXCHANGES = ("orders", "payments", "telemetry")
MISSING = "no-such-exchange"
START_NS = 1_763_712_000 * 10**9
SECOND = 10**9

TRAFFIC = """
SELECT exchange, date_trunc('minute', ts) AS minute, count(*) AS messages, sum(body_size) AS octets
FROM messages WHERE kind = 'publish' GROUP BY ALL ORDER BY minute, exchange
"""
# A broker confirms the n-th message that is published on a channel behind confirm.select with the delivery
# tag n, or several at once: all up to that one.
UNCONFIRMED = """
WITH lives AS (
  SELECT *, sum(int(name = 'channel.open'))
    OVER (PARTITION BY flow, channel ORDER BY ts_ns, packet, offset) AS life
  FROM methods
), modes AS (
  SELECT *, sum(int(name = 'confirm.select'))
    OVER (PARTITION BY flow, channel, life ORDER BY ts_ns, packet, offset) AS mode
  FROM lives
), published AS (
  SELECT *, row_number()
    OVER (PARTITION BY flow, channel, life, mode ORDER BY ts_ns, packet, offset) AS number
  FROM modes WHERE mode > 0 AND name = 'basic.publish'
), confirmed AS (
  SELECT flow, channel, life, mode, args.delivery_tag AS number, args.multiple
  FROM modes WHERE direction = 1 AND name = 'basic.ack'
), together AS (
  SELECT flow, channel, life, mode, max(number) AS last FROM confirmed WHERE multiple GROUP BY ALL
)
SELECT flow, channel, number, ts, args.exchange, args.routing_key
FROM published LEFT JOIN together USING (flow, channel, life, mode)
  LEFT ANTI JOIN confirmed USING (flow, channel, life, mode, number)
WHERE number > coalesce(last, 0) ORDER BY flow, channel, number
"""
ERRORS = """
WITH told AS (
  SELECT *, collect_list(name) OVER (
    PARTITION BY flow ORDER BY ts_ns, packet, offset ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING) AS before
  FROM methods
)
SELECT flow, client, ts, name, args.reply_code, args.reply_text, before
FROM told WHERE name IN ('connection.close', 'channel.close') AND args.reply_code >= 300 ORDER BY ts
"""


# -- a capture to ask about


class RotatingWriter(PacketWriter):
    """Writes packets to one file after another, as a capture that is rotated does."""

    def __init__(self, folder: Path, octets: int) -> None:
        self._folder, self._octets, self._count = folder, octets, 0
        self._begin()

    def record(self, time_ns: int, octets: bytes, length: int | None = None) -> None:
        """Append a packet, to a new file if the last one is full."""
        if self._open.tell() >= self._octets:
            self._open.close()
            self._begin()
        super().record(time_ns, octets, length)

    def close(self) -> None:
        """No more will come."""
        self._open.close()

    def _begin(self) -> None:
        self._open = (self._folder / f"trace_{self._count:05d}.pcap").open("wb")
        self._count += 1
        super().__init__(self._open)


class Publisher:
    """A client that publishes with confirms, as its broker and it are seen on the wire.

    Args:
        packets: where they are seen.
        number: of the connection.
        rng: decides what is published, and what becomes of it.

    Attributes:
        unconfirmed: messages published that the broker never confirms.
        time_ns: when the next thing is said.
    """

    def __init__(self, packets: PacketWriter, number: int, rng: random.Random) -> None:
        self._packets, self._number, self._rng = packets, number, rng
        self._published = self._confirmed = 0
        self._fails = number % 5 == 0  # publishes to an exchange that is not there: its channel is closed
        self._ends = number % 7 == 3  # an operator closes its connection
        self.unconfirmed = 0
        self.time_ns = START_NS + rng.randrange(60 * SECOND)

    def life(self, bursts: int) -> Iterator[None]:
        """All that is said, one thing at a time."""
        ends = Endpoint(struct.pack("!BBH", 10, 1, self._number), 40000), Endpoint(bytes((10, 0, 0, 1)), 5672)
        wire = Conversation(self._packets, *ends, self.time_ns, self._number)
        for end, octets in self._said(bursts):
            wire.send(end, octets, self.time_ns)
            self.time_ns += self._rng.randrange(1, SECOND // 2)
            yield
        wire.close(self.time_ns)
        self.unconfirmed = self._published - self._confirmed

    def _said(self, bursts: int) -> Iterator[tuple[int, bytes]]:
        yield CLIENT, amqp.protocol_header()
        for end, channel, method in _OPENING:
            yield end, amqp.encode_method(channel, method)
        for _ in range(bursts):
            for _ in range(self._rng.randrange(1, 6)):
                yield CLIENT, self._message(self._rng.choice(EXCHANGES))
            yield from self._confirms()
        if self._fails:
            yield CLIENT, self._message(MISSING)
            yield CLIENT, self._message(EXCHANGES[0])
            text = f"NOT_FOUND - no exchange '{MISSING}' in vhost '/'"
            yield BROKER, amqp.encode_method(1, amqp.Channel.Close(404, text, 60, 40))
            yield CLIENT, amqp.encode_method(1, amqp.Channel.CloseOk())
        forced = "CONNECTION_FORCED - Closed via management plugin"
        closer, code, text = (BROKER, 320, forced) if self._ends else (CLIENT, 200, "bye")
        yield closer, amqp.encode_method(0, amqp.Connection.Close(code, text, 0, 0))
        yield 1 - closer, amqp.encode_method(0, amqp.Connection.CloseOk())

    def _message(self, exchange: str) -> bytes:
        key, size = f"{exchange}.created.{self._rng.randrange(20)}", self._rng.randrange(20, 3000)
        properties = amqp.BasicProperties(content_type="application/json", headers={"try": self._published})
        self._published += 1
        return bytes(
            amqp.encode_message(1, amqp.Basic.Publish(exchange, key), properties, self._rng.randbytes(size))
        )

    def _confirms(self) -> Iterator[tuple[int, bytes]]:
        """Of what was published: each alone, or all at once."""
        together = self._rng.random() < 0.7
        for tag in [self._published] if together else range(self._confirmed + 1, self._published + 1):
            yield BROKER, amqp.encode_method(1, amqp.Basic.Ack(tag, together))
        self._confirmed = self._published


_OPENING: tuple[tuple[int, int, Any], ...] = (
    (BROKER, 0, amqp.Connection.Start(0, 9, {"product": "RabbitMQ"}, b"PLAIN", b"en_US")),
    (CLIENT, 0, amqp.Connection.StartOk({"product": "example"}, "PLAIN", b"\0guest\0guest", "en_US")),
    (BROKER, 0, amqp.Connection.Tune(2047, 131072, 60)),
    (CLIENT, 0, amqp.Connection.TuneOk(2047, 131072, 60)),
    (CLIENT, 0, amqp.Connection.Open("/")),
    (BROKER, 0, amqp.Connection.OpenOk()),
    (CLIENT, 1, amqp.Channel.Open()),
    (BROKER, 1, amqp.Channel.OpenOk()),
    (CLIENT, 1, amqp.Confirm.Select()),
    (BROKER, 1, amqp.Confirm.SelectOk()),
)


def make_captures(folder: Path, connections: int, bursts: int, seed: int = 7, octets: int = 4_000_000) -> int:
    """Write rotated captures of publishers side by side; how many messages are never confirmed."""
    folder.mkdir(parents=True)
    packets = RotatingWriter(folder, octets)
    publishers = [Publisher(packets, number, random.Random(seed + number)) for number in range(connections)]
    alive = [(publisher, publisher.life(bursts)) for publisher in publishers]
    while alive:
        now = min(alive, key=lambda each: each[0].time_ns)
        if next(now[1], "ended") == "ended":
            alive.remove(now)
    packets.close()
    return sum(publisher.unconfirmed for publisher in publishers)


# -- the pipeline


def make_tables(spark: SparkSession, captures: str, work: str) -> None:
    """Captures to the tables `messages` and `methods`, as Parquet and as views."""
    read = spark.read.format("amqp")
    messages = read.option("table", "messages").load(captures).withColumn("day", sql.to_date("ts"))
    messages.write.mode("overwrite").partitionBy("day", "exchange").parquet(f"{work}/messages")
    columns = "flow,client,direction,ts,ts_ns,offset,packet,channel,name,args"
    methods = read.option("table", "methods").option("columns", columns).load(captures)
    methods.write.mode("overwrite").parquet(f"{work}/methods")
    for table in ("messages", "methods"):
        spark.read.parquet(f"{work}/{table}").createOrReplaceTempView(table)


def answers(spark: SparkSession) -> dict[str, DataFrame]:
    """The three questions."""
    return {
        "Traffic by exchange and minute": spark.sql(TRAFFIC),
        "Published, but never confirmed": spark.sql(UNCONFIRMED),
        "Closed with an error, and what came before": spark.sql(ERRORS),
    }


def write_replay(spark: SparkSession, work: str) -> int:
    """What was published, in order, as streams of frames with an index of their times; how many messages."""
    published = spark.sql("SELECT * FROM messages WHERE kind = 'publish' AND complete")
    in_order = published.repartition(2, "flow").sortWithinPartitions("ts_ns", "packet", "offset")
    in_order.write.format("amqp").mode("overwrite").option("output", "stream").save(f"{work}/replay")
    back = (
        spark.read.format("amqp")
        .options(dialect="rabbitmq-0-9-1", columns="routing_key")
        .load(f"{work}/replay")
    )
    return back.count()


def main() -> None:
    """The whole of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", help="folder for what comes to be")
    parser.add_argument("--captures", help="folder or pattern of captures; default: some are made")
    parser.add_argument("--connections", type=int, default=40, help="of the captures that are made")
    parser.add_argument("--bursts", type=int, default=60, help="of messages, on each of them")
    given = parser.parse_args()
    captures = given.captures or f"{given.work}/captures"
    if given.captures is None and not Path(captures).exists():
        make_captures(Path(captures), given.connections, given.bursts)
    with ExitStack() as stack:
        if "PYSPARK_GATEWAY_PORT" not in os.environ:  # without spark-submit, on this machine
            stack.enter_context(local_java())
        spark = SparkSession.builder.appName("AMQP pipeline").getOrCreate()
        stack.callback(spark.stop)
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        register(spark)
        make_tables(spark, captures, given.work)
        for question, answer in answers(spark).items():
            print(question)
            answer.show(10, truncate=60)
        print(f"{write_replay(spark, given.work):,} messages to replay in {given.work}/replay")


if __name__ == "__main__":
    main()
