"""A tree in which nothing was compiled: its tests run, and say what they leave out and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# One that cannot be collected without compiled modules, and three that test these in different ways.
FILES = (
    "compat/test_client_frames.py",
    "compat/test_pamqp.py",
    "codec/test_backend.py",
    "codec/test_fixed_methods.py",
)


@pytest.mark.slow("runs pytest in a copy")
def test_a_tree_without_compiled_modules_runs_its_tests_and_says_what_it_skips(tmp_path: Path) -> None:
    pytest.importorskip("pamqp")
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.egg-info", "__pycache__", "data")
    for name in ("src", "tests", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    left_alone = {name: value for name, value in os.environ.items() if not name.startswith("AMQPCODEC_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{file}" for file in FILES)],
        cwd=tmp_path, env={**left_alone, "PYTHONPATH": "src"},
        capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    why = "nothing is compiled here; make build does that"
    assert f"amqpcodec: builds tested: py ({why}); build in use: py\n" in done.stdout
    for reason in (
        f"test_fixed_methods.py:[0-9]+: {why}",
        r"test_client_frames.py:[0-9]+: the pure build replaces nothing",
    ):
        assert re.search(rf"SKIPPED .*{reason}$", done.stdout, re.MULTILINE)
    assert " passed, " in done.stdout
