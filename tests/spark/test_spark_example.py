"""The example of a pipeline answers its questions about the captures that it makes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from amqpcodec.spark import register

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "spark_pipeline.py"))


@pytest.mark.spark
def test_the_example_runs(spark: Any, tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    lost = EXAMPLE["make_captures"](captures, connections=11, bursts=6, octets=60_000)
    assert len(list(captures.iterdir())) > 3
    register(spark)
    EXAMPLE["make_tables"](spark, str(captures), str(tmp_path))
    traffic, unconfirmed, errors = (answer.collect() for answer in EXAMPLE["answers"](spark).values())
    published = sum(row.messages for row in traffic)
    assert {row.exchange for row in traffic} == {*EXAMPLE["EXCHANGES"], EXAMPLE["MISSING"]}
    assert [row.exchange for row in unconfirmed] == [EXAMPLE["MISSING"], EXAMPLE["EXCHANGES"][0]] * 3
    assert len(unconfirmed) == lost == 6
    closed = sorted((row.client, row.name, row.reply_code) for row in errors)
    forced = [("10.1.0.10:40000", "connection.close", 320), ("10.1.0.3:40000", "connection.close", 320)]
    missing = [(f"10.1.0.{number}:40000", "channel.close", 404) for number in (0, 5, 10)]
    assert closed == sorted(forced + missing)
    before = [row.before for row in errors if row.name == "channel.close"]
    assert [names[-2:] for names in before] == [["basic.publish", "basic.publish"]] * 3
    assert EXAMPLE["write_replay"](spark, str(tmp_path)) == published
