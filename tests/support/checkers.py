"""Type checkers, run on programs of one file each with the options that a strict user would set."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import amqpcodec

Errors = dict[str, dict[int, str]]
"""What is wrong, by program and line."""
SOURCE = Path(amqpcodec.__file__).parent.parent
_ERROR = re.compile(r"(\w+)\.py:(\d+):.*\berror\b.*")


def _errors(tool: str, folder: Path, programs: dict[str, str], *arguments: str) -> Errors:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments],
        cwd=folder, env=os.environ | {"MYPYPATH": str(SOURCE)},
        capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    found: Errors = {name: {} for name in programs}
    for error in _ERROR.finditer(done.stdout):
        assert error[1] in found, error[0]  # it is in the package
        found[error[1]][int(error[2])] = error[0]
    assert done.returncode == any(found.values()), done.stdout + done.stderr
    return found


def mypy(folder: Path, programs: dict[str, str]) -> Errors:
    files = (f"{name}.py" for name in programs)
    return _errors("mypy", folder, programs, "--strict", "--config-file=", *files)


def pyright(folder: Path, programs: dict[str, str]) -> Errors:
    settings = {"include": ["*.py"], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return _errors("pyright", folder, programs, "--project", ".")
