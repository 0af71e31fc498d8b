"""Installs what `python -m build` left in dist/ into empty environments, and runs the codec's tests there.

Wheels, pure and compiled, are tested from a folder that holds no sources. The source archive is unpacked,
installed from its own files, and its tests run there.

    python tools/check_dist.py [dist]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = "tests/codec"
NEEDED = ("pytest>=8", "hypothesis>=6.100")


def main(dist: Path) -> None:
    """Check every archive in a folder; the first failure ends the run."""
    wheels, archives = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    if not wheels or not archives:
        raise SystemExit(f"{dist} must hold a wheel and a source archive; `python -m build` makes them")
    for wheel in wheels:
        print(f"== {wheel.name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder), wheel, ROOT, impl="py" if wheel.name.endswith("-none-any.whl") else "c")
    for archive in archives:
        print(f"== {archive.name}", flush=True)
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
            [source] = Path(folder).iterdir()
            check(Path(folder), source, source, impl="py")


def check(folder: Path, target: Path, tests: Path, *, impl: str) -> None:
    """Install a wheel or a folder of sources into an environment of its own, and run tests on it."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    variables = {"AMQPCODEC_IMPL": impl, "PATH": str(python.parent)}
    if impl == "py":
        variables |= {"AMQPCODEC_BUILD": "skip", "AMQPCODEC_TEST_IMPLS": "py"}
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    subprocess.run([*pip, str(target), *NEEDED], check=True, cwd=folder, env={**inherited(), **variables})
    test = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests / TESTS))
    subprocess.run(test, check=True, cwd=folder, env={**inherited(), **variables})


def inherited() -> dict[str, str]:
    """The environment without what chooses a build or adds modules; the caller says those."""
    ours = ("AMQPCODEC_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
