"""A release is what its tag says; what a package index shows leads somewhere and installs that release."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import prepare_release
import pytest
from support.documents import ROOT

from amqpcodec import __version__

ADDRESS = "https://example.org/owner/amqpcodec"
TAG = f"v{__version__}"
FILES = ("README.md", "pyproject.toml", "src/amqpcodec/_version.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which README may be changed; its links lead to files that are there."""
    for path in prepare_release.linked_files((ROOT / "README.md").read_text(encoding="utf-8")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [{__version__}] - 2026-12-01\n", encoding="utf-8"
    )
    return tmp_path


def test_links_and_pictures_become_absolute_and_nothing_else_changes(checkout: Path) -> None:
    assert prepare_release.main([f"{ADDRESS}/", TAG], checkout) == 0
    before, after = (
        (ROOT / "README.md").read_text(encoding="utf-8"),
        (checkout / "README.md").read_text(encoding="utf-8"),
    )
    assert f"![time per operation beside other codecs]({ADDRESS}/raw/{TAG}/docs/benchmarks.svg)" in after
    assert f"({ADDRESS}/blob/{TAG}/docs/reliability.md#threads)" in after
    assert prepare_release.linked_files(after) == []
    assert "    pip install 'amqpcodec[arrow]'   # with columns" in after
    assert "pip install ." not in after
    assert re.sub(rf"{ADDRESS}/(blob|raw)/{TAG}/", "", after) == prepare_release.by_name(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pip install .\n", "pip install amqpcodec\n"),
        ("pip install .  # in a checkout\n", "pip install amqpcodec\n"),
        ("so `pip install .` does", "so `pip install amqpcodec` does"),
        ('pip install ".[arrow,cli]"\n', 'pip install "amqpcodec[arrow,cli]"\n'),
        ("pip install '.[spark-local]' # one machine", "pip install 'amqpcodec[spark-local]' # one machine"),
        ('env/bin/pip install ".[spark]" venv-pack', 'env/bin/pip install "amqpcodec[spark]" venv-pack'),
        ("pip install ./other\n", "pip install ./other\n"),
        ("pip install .venv\n", "pip install .venv\n"),
    ],
)
def test_a_release_is_installed_by_its_name(before: str, after: str) -> None:
    assert prepare_release.by_name(before) == after


@pytest.mark.parametrize(
    ("changelog", "tag", "said"),
    [
        (f"[{__version__}] - 2026-12-01", "v9.9.9", f"the tag is v9.9.9, the version is {__version__}"),
        (
            f"[{__version__}] - unreleased",
            TAG,
            f"CHANGELOG.md begins with [{__version__}] - unreleased, not with [{__version__}] and a date",
        ),
        ("[Unreleased]", TAG, f"CHANGELOG.md begins with [Unreleased], not with [{__version__}] and a date"),
        (
            "[9.9.9] - 2026-12-01",
            TAG,
            f"CHANGELOG.md begins with [9.9.9] - 2026-12-01, not with [{__version__}] and a date",
        ),
    ],
)
def test_a_tag_that_is_not_the_version_ends_the_release(
    changelog: str, tag: str, said: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n## {changelog}\n", encoding="utf-8")
    before = (checkout / "README.md").read_text(encoding="utf-8")
    assert prepare_release.main([ADDRESS, tag], checkout) == 1
    assert capsys.readouterr().err == f"{said}\n"
    assert (checkout / "README.md").read_text(encoding="utf-8") == before


def test_the_index_gets_the_addresses_of_the_project(checkout: Path) -> None:
    assert prepare_release.main([ADDRESS, TAG], checkout) == 0
    made = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    urls = made["project"].pop("urls")
    assert made == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert urls["Source"] == ADDRESS
    assert urls["Issues"] == f"{ADDRESS}/issues"
    for name in ("Documentation", "Changelog"):
        path = urls[name].removeprefix(f"{ADDRESS}/blob/{TAG}/")
        assert (ROOT / path).is_file()


def test_a_link_to_a_missing_file_ends_the_release(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "LICENSE").unlink()
    before = (checkout / "README.md").read_text(encoding="utf-8")
    assert prepare_release.main([ADDRESS, TAG], checkout) == 1
    assert capsys.readouterr().err == "README.md has links to what is not there: LICENSE\n"
    assert (checkout / "README.md").read_text(encoding="utf-8") == before


def test_a_second_run_is_refused(checkout: Path) -> None:
    assert prepare_release.main([ADDRESS, TAG], checkout) == 0
    with pytest.raises(ValueError, match="already"):
        prepare_release.main([ADDRESS, TAG], checkout)
