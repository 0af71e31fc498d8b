"""Type checkers, run on a program of one file with the options that a strict user would set."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import amqpcodec

Check = Callable[[Path, str], subprocess.CompletedProcess[str]]
SOURCE = Path(amqpcodec.__file__).parent.parent


def run(tool: str, folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Check a program of one file, named consumer.py, with the options a strict user would set."""
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (folder / "consumer.py").write_text(text)
    command = [sys.executable, "-m", tool, *arguments]
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def mypy(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    return run("mypy", folder, text, "--strict", "--config-file=", "consumer.py")


def pyright(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    settings = {"include": ["consumer.py"], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return run("pyright", folder, text, "--project", ".")
