"""Examples are short, and run by tests; those for connections are typed, and need nothing but the package."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import EXAMPLES, ROOT

HERE = Path(__file__).parent
ALL = sorted(path.stem for path in EXAMPLES.glob("*.py"))
PROGRAMS = ("client", "service", "tracing", "blocking")
OPTIONAL = {"opentelemetry"}  # which programs do without where it is not there
# By which tests those are run that have no tests in this folder.
ELSEWHERE = {
    "frame_receiver": "compat/test_frame_receiver.py",
    "seam": "support/compat/seam.py",
    "spark_pipeline": "spark/test_spark_example.py",
}


@pytest.mark.parametrize("name", ALL)
def test_an_example_is_short_enough_to_be_read(name: str) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 80


@pytest.mark.parametrize("name", ALL)
def test_an_example_says_what_to_change_first(name: str) -> None:
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))) or ""
    told = text.partition("Change first: ")[2]
    named = re.findall(r"`(\w+)`", told.partition(".")[0])
    module = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").replace(text, "")
    assert told
    assert [each for each in named if not re.search(rf"\b{each}\b", module)] == []


@pytest.mark.parametrize("name", ALL)
def test_an_example_is_run_by_a_test(name: str) -> None:
    paths = [ROOT / "tests" / ELSEWHERE[name]] if name in ELSEWHERE else HERE.glob("test_*.py")
    texts = [path.read_text(encoding="utf-8") for path in paths if path != Path(__file__)]
    assert any(re.search(rf"[\"'(]{name}(\.py)?[\"')]", text) for text in texts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_the_package_and_the_standard_library_alone(name: str) -> None:
    found = set()
    for node in ast.walk(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    assert found <= {"amqpcodec", *PROGRAMS} | OPTIONAL | sys.stdlib_module_names


@pytest.mark.slow("runs a type checker over the package")
def test_a_type_checker_finds_nothing() -> None:
    for needed in ("mypy", *OPTIONAL):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--follow-imports", "silent"]
        + [str(EXAMPLES / f"{name}.py") for name in PROGRAMS],
        cwd=EXAMPLES, env={**os.environ, "MYPYPATH": os.pathsep.join(map(str, (ROOT / "src", EXAMPLES)))},
        capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
