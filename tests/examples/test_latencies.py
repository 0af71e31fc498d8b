"""The example on latencies: two libraries give the same numbers, and `amqpcodec stats` does, too.

tests/spark has the third one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.answered import REPLIES, as_stats_has_them, capture
from support.examples import example

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_both_questions_are_answered(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    path = tmp_path / "trace.pcap"
    path.write_bytes(capture())
    slow, replies = getattr(example("latencies"), f"with_{library}")(str(path))
    as_stats_has_them(slow, path)
    assert replies == REPLIES
