"""What a package index shows leads somewhere: links and pictures of README, and the addresses beside it."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import release_links
from support.documents import ROOT

ADDRESS = "https://example.org/owner/amqpcodec"
FILES = ("README.md", "pyproject.toml")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which README may be changed; its links lead to files that are there."""
    for path in release_links.linked_files((ROOT / "README.md").read_text()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_links_and_pictures_become_absolute_and_nothing_else_changes(checkout: Path) -> None:
    assert release_links.main([f"{ADDRESS}/", "v0.1.0"], checkout) == 0
    before, after = (ROOT / "README.md").read_text(), (checkout / "README.md").read_text()
    assert f"![time per operation beside other codecs]({ADDRESS}/raw/v0.1.0/docs/benchmarks.svg)" in after
    assert f"({ADDRESS}/blob/v0.1.0/docs/reliability.md#threads)" in after
    assert release_links.linked_files(after) == []
    assert re.sub(rf"{ADDRESS}/(blob|raw)/v0\.1\.0/", "", after) == before


def test_the_index_gets_the_addresses_of_the_project(checkout: Path) -> None:
    assert release_links.main([ADDRESS, "v0.1.0"], checkout) == 0
    made = tomllib.loads((checkout / "pyproject.toml").read_text())
    urls = made["project"].pop("urls")
    assert made == tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert urls["Source"] == ADDRESS
    assert urls["Issues"] == f"{ADDRESS}/issues"
    for name in ("Documentation", "Changelog"):
        path = urls[name].removeprefix(f"{ADDRESS}/blob/v0.1.0/")
        assert (ROOT / path).is_file()


def test_a_link_to_a_missing_file_ends_the_release(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "LICENSE").unlink()
    before = (checkout / "README.md").read_text()
    assert release_links.main([ADDRESS, "v0.1.0"], checkout) == 1
    assert capsys.readouterr().err == "README.md has links to what is not there: LICENSE\n"
    assert (checkout / "README.md").read_text() == before


def test_a_second_run_is_refused(checkout: Path) -> None:
    assert release_links.main([ADDRESS, "v0.1.0"], checkout) == 0
    with pytest.raises(ValueError, match="already"):
        release_links.main([ADDRESS, "v0.1.0"], checkout)
