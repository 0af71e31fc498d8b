"""Rows of a damaged capture through Spark are those made without it, in parts of any size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = ("messages", "errors")


@pytest.mark.spark
def test_all_rows_are_equal_whatever_the_parts(java: None, tmp_path: Path) -> None:
    """What `make spark-equality` does at a thousand times the size, for all tables and numbers of cores."""
    command = [sys.executable, str(ROOT / "benchmarks" / "spark_equality.py"), "--mb", "1", "--cores", "2"]
    command += ["--folder", str(tmp_path), "--tables", *TABLES]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("local[2] ")]
    assert len(lines) == 5 * len(TABLES)
    assert all("rows equal" in line and " 0 rows" not in line for line in lines), done.stdout
