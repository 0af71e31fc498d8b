"""The builds that docs/releasing.md promises are those that cibuildwheel makes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from amqpcodec import __version__

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = {
    "linux": ("manylinux_x86_64", "manylinux_aarch64", "musllinux_x86_64", "musllinux_aarch64"),
    "macos": ("macosx_x86_64", "macosx_arm64"),
    "windows": ("win_amd64",),
}


def promised_pythons() -> list[str]:
    """The tags of the rows of the table of wheels."""
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (cp\d+t?)\b.*?\|(.*)\|$", page, re.MULTILINE)
    assert all(set(cells.split()) - {"|"} == {"yes"} for _, cells in rows)
    return [tag for tag, _ in rows]


def test_the_topmost_release_of_the_changelog_is_the_version_of_the_package() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    if sections[0] == "[Unreleased]":
        del sections[0]
    assert re.fullmatch(rf"\[{re.escape(__version__)}\] - (unreleased|\d{{4}}-\d\d-\d\d)", sections[0])
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_table_of_wheels_and_the_configuration_name_the_same_pythons() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"][
        "build"
    ]
    assert [f"{tag}-*" for tag in promised_pythons()] == configured


@pytest.mark.slow("runs cibuildwheel")
@pytest.mark.parametrize("platform", PLATFORMS)
def test_cibuildwheel_lists_exactly_the_promised_builds(platform: str) -> None:
    if find_spec("cibuildwheel") is None:
        pytest.skip("cibuildwheel is not installed")
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    promised = {f"{tag}-{target}" for tag in promised_pythons() for target in PLATFORMS[platform]}
    assert set(done.stdout.split()) == promised


@pytest.mark.slow("builds a source archive")
def test_the_source_archive_holds_the_tests_and_what_they_read(tmp_path: Path) -> None:
    options = ("-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "setup.py", *options],
        cwd=ROOT, env={**os.environ, "AMQPCODEC_BUILD": "skip"},
        capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [path] = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("tests", "examples", "docs", "benchmarks", "fuzz"):
        for kept in (ROOT / folder).rglob("*.py"):
            assert kept.relative_to(ROOT).as_posix() in names
    assert {"Makefile", "CHANGELOG.md", "examples/real-bunny.pcap"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
