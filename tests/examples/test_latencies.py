"""The example on latencies: two libraries give the same numbers, and `amqpcodec stats` does, too.

tests/spark has the third one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.answered import REPLIES, as_stats_has_them, capture
from support.examples import EXAMPLES, example

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_both_questions_are_answered(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    path = tmp_path / "trace.pcap"
    path.write_bytes(capture())
    slow, replies = getattr(example("latencies"), f"with_{library}")(str(path))
    as_stats_has_them(slow, path)
    assert replies == REPLIES


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_the_program_prints_both_answers(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    path = tmp_path / "trace.pcap"
    path.write_bytes(capture())
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "latencies.py"), str(path), library],
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert {f"{request}: a reply after {waited} ns" for request, waited in REPLIES.items()} < set(
        done.stdout.splitlines()
    )
