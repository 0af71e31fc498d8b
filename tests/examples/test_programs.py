"""The programs for connections are short, typed, and need nothing but the package."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys

import pytest
from support.examples import EXAMPLES, ROOT

PROGRAMS = ("client", "tracing", "broker", "blocking")
LINES = {"client": 80, "tracing": 80, "blocking": 80}  # else 250
OPTIONAL = {"opentelemetry"}  # which programs do without where it is not there


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_short_enough_to_be_read(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < LINES.get(name, 250)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_the_package_and_the_standard_library_alone(name: str) -> None:
    found = set()
    for node in ast.walk(ast.parse((EXAMPLES / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    assert found <= {"amqpcodec", *PROGRAMS} | OPTIONAL | sys.stdlib_module_names


def test_a_type_checker_finds_nothing() -> None:
    for needed in ("mypy", *OPTIONAL):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--follow-imports", "silent"]
        + [str(EXAMPLES / f"{name}.py") for name in PROGRAMS],
        cwd=EXAMPLES, env={**os.environ, "MYPYPATH": f"{ROOT / 'src'}:{EXAMPLES}"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
