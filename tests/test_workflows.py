"""What the workflows run is there: targets, files, and every interpreter that the documents name."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TESTED = ROOT / ".github" / "workflows" / "test.yml"
MAKEFILES = (ROOT / "Makefile", ROOT / "benchmarks" / "bench.mk", ROOT / "fuzz" / "fuzz.mk")


def versions(text: str) -> set[str]:
    """The interpreters that steps and matrices ask for, as `actions/setup-python` calls them."""
    named = re.findall(r"^ *(?:python-version|python): *(\[.*\]|\S+)$", text, re.MULTILINE)
    return {version for line in named for version in re.findall(r"(?:pypy-)?3\.\d+t?", line)}


pytestmark = pytest.mark.skipif(not TESTED.exists(), reason="a source archive has no workflows")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_and_files_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = set(
        re.findall(
            r"^([a-z-]+):", "\n".join(file.read_text(encoding="utf-8") for file in MAKEFILES), re.MULTILINE
        )
    )
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    for name in re.findall(r"\b(?:tests|tools|benchmarks)/[\w./-]*", text):
        assert (ROOT / name).exists(), name


def test_every_promised_python_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "classifiers"
    ]
    wanted = {line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line)}
    tags = re.findall(
        r"^\| cp3(\d+)(t?)\b", (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    wanted |= {f"3.{minor}{suffix}" for minor, suffix in tags} | {"pypy-3.11"}
    assert versions(TESTED.read_text(encoding="utf-8")) == wanted


def test_make_help_names_every_target() -> None:
    named = set(re.findall(r"^make ([a-z-]+) ", _make_help(), re.MULTILINE))
    targets = {target for file in MAKEFILES for target in _phony(file.read_text(encoding="utf-8"))}
    assert named == targets


def _make_help() -> str:
    done = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    return done.stdout


def _phony(text: str) -> list[str]:
    return [target for line in re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE) for target in line.split()]
