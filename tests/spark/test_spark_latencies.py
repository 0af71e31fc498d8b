"""The example on latencies gives the numbers of `amqpcodec stats`; tests/examples has the other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.answered import REPLIES, as_stats_has_them, capture
from support.examples import EXAMPLES
from support.spark_jobs import SETTINGS, run

SCRIPT = """
sys.path.insert(0, given["examples"])
from latencies import with_spark
from amqpcodec.spark import register
spark = session().master("local[1]").getOrCreate()
register(spark)
slow, replies = with_spark(spark, given["capture"])
report(slow=slow, replies=replies)
"""


@pytest.mark.spark
def test_both_questions_are_answered_on_spark(java: None, tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(capture())
    found = run(SCRIPT, SETTINGS, capture=str(path), examples=str(EXAMPLES))
    as_stats_has_them(found["slow"], path)
    assert found["replies"] == REPLIES
