"""The package for the specification of `own_spec`: generated, and compiled, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_spec import SPEC
from support.compilers import fast_compiler
from support.implementation import wanted

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
Outcomes = dict[str, Any]
Run = Callable[..., Outcomes]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package `own` as text."""
    folder = tmp_path_factory.mktemp("own")
    spec = folder / "own.xml"
    spec.write_text(SPEC, encoding="utf-8")
    tool = str(ROOT / "tools" / "gen_codec.py")
    options = ("--spec", str(spec), "--out", str(folder / "out"), "--package", "own")
    subprocess.run([sys.executable, tool, *options], check=True, capture_output=True, timeout=60)
    return folder / "out"


@pytest.fixture(scope="session")
def compiled(package: Path) -> Path:
    """A copy of that folder in which its own setup.py has compiled the package."""
    if "c" not in wanted():
        pytest.skip("only the pure build is being tested")
    folder = package.with_name("compiled")
    shutil.copytree(package, folder, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=environment("py") | {"CC": str(fast_compiler(package.parent))},
        capture_output=True,
        encoding="utf-8",
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs own_outcomes.py, or a script beside it, in a build of amqpcodec, on the package in a folder."""

    def outcomes(build: str, folder: Path, script: str = "own_outcomes.py") -> Outcomes:
        done = subprocess.run(
            [sys.executable, str(HERE / script)],
            env=environment(build, folder), capture_output=True, encoding="utf-8", timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        found: Outcomes = json.loads(done.stdout)
        return found

    return outcomes


@pytest.fixture(scope="session")
def pure_outcomes(package: Path, run: Run) -> Outcomes:
    return run("py", package)


@pytest.fixture(scope="session")
def compiled_outcomes(compiled: Path, run: Run) -> Outcomes:
    return run("c", compiled)


def environment(build: str, *folders: Path) -> dict[str, str]:
    """Ours, with the package in the tree and further folders on the path, and one build demanded."""
    path = os.pathsep.join(map(str, (*folders, ROOT / "src", ROOT / "tests")))
    return {**os.environ, "PYTHONPATH": path, "AMQPCODEC_IMPL": build}
