"""The example of a pipeline answers its questions about captures of publishers in trouble."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.examples import EXAMPLES, example
from support.publishers import EXCHANGES, MISSING, make_captures

pytest.importorskip("pyspark")

from amqpcodec.spark import register


@pytest.mark.spark
def test_the_example_answers_its_questions(spark: Any, tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    lost = make_captures(captures, connections=11, bursts=6, octets=60_000)
    assert len(list(captures.iterdir())) > 3
    register(spark)
    pipeline = example("spark_pipeline")
    pipeline.make_tables(spark, str(captures), str(tmp_path))
    traffic, unconfirmed, errors = (spark.sql(text).collect() for text in pipeline.QUESTIONS.values())
    assert {row.exchange for row in traffic} == {*EXCHANGES, MISSING}
    assert sorted(row.exchange for row in unconfirmed) == [MISSING] * 3 + [EXCHANGES[0]] * 3
    assert len(unconfirmed) == lost == 6
    closed = sorted((row.client, row.name, row.reply_code) for row in errors)
    forced = [("10.1.0.10:40000", "connection.close", 320), ("10.1.0.3:40000", "connection.close", 320)]
    missing = [(f"10.1.0.{number}:40000", "channel.close", 404) for number in (0, 5, 10)]
    assert closed == sorted(forced + missing)
    before = [row.before for row in errors if row.name == "channel.close"]
    assert [names[-2:] for names in before] == [["basic.publish", "basic.publish"]] * 3
    pipeline.write_replay(spark, str(tmp_path))
    replay = spark.read.format("amqp").options(dialect="rabbitmq-0-9-1", columns="routing_key")
    assert replay.load(f"{tmp_path}/replay").count() == sum(row.messages for row in traffic)


@pytest.mark.spark
def test_the_program_prints_the_answers(java: None, tmp_path: Path) -> None:
    program = [sys.executable, str(EXAMPLES / "spark_pipeline.py")]
    done = subprocess.run(
        [*program, str(EXAMPLES / "real-bunny.pcap"), str(tmp_path)],
        capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(f"{question}\n" in done.stdout for question in example("spark_pipeline").QUESTIONS)
    assert done.stdout.count("|channel.close|") == 3
    assert {"messages", "deliveries", "methods", "replay"} <= {path.name for path in tmp_path.iterdir()}
