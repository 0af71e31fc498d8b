"""The programs for connections are short, typed, and need nothing but the package."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys

import pytest
from support.examples import EXAMPLES, ROOT

PROGRAMS = ("client", "broker", "proxy", "blocking")
LINES = 250


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_enough_to_be_read(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < LINES


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_the_package_and_the_standard_library_alone(name: str) -> None:
    found = set()
    for node in ast.walk(ast.parse((EXAMPLES / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    assert found <= {"amqpcodec", *PROGRAMS} | sys.stdlib_module_names


def test_a_type_checker_finds_nothing() -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--follow-imports", "silent"]
        + [str(EXAMPLES / f"{name}.py") for name in PROGRAMS],
        cwd=EXAMPLES, env={**os.environ, "MYPYPATH": f"{ROOT / 'src'}:{EXAMPLES}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
