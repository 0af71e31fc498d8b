"""`make demo`, as someone who has just cloned the repository runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder without a space in its name, which make would take for two."""
    with TemporaryDirectory(dir="/tmp") as name:
        yield name


@pytest.mark.skipif(shutil.which("make") is None, reason="make is needed")
def test_the_demo_needs_nothing_but_an_interpreter(folder: str) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    arguments = ["make", "demo", f"DEMO={folder}/demo", f"PYTHON3={sys.executable}"]
    done = subprocess.run(arguments, cwd=ROOT, env=kept, capture_output=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "protocol  AMQP 0.0.9.1" in lines[0]
    assert "frames       155, 105677 bytes in 2.982 s" in lines
    assert lines[-1] == "README.md shows the codec in Python, docs/capture.md the command."
    done = subprocess.run(
        [f"{folder}/demo/bin/amqpcodec", "--version"], capture_output=True, encoding="utf-8"
    )
    assert done.stdout.startswith("amqpcodec 0.")
