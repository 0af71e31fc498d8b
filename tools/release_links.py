"""Puts the address of the repository where a release needs it: into README's links, and into pyproject.toml.

A package index shows README.md on a page of its own, where relative links and pictures lead nowhere. No
file of the repository knows its address, so the workflow that builds a release runs this in its checkout:

    python tools/release_links.py https://example.org/owner/amqpcodec v0.1.0
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = (".svg", ".png")
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_BEFORE = "[project.optional-dependencies]\n"


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Change README.md and pyproject.toml of a checkout; 0 is success, 1 a link to what is not there."""
    parser = argparse.ArgumentParser(prog="release_links.py", description=__doc__)
    parser.add_argument("address", help="of the repository, as a browser shows it")
    parser.add_argument("ref", help="the tag of the release")
    options = parser.parse_args(argv)
    address = options.address.rstrip("/")
    readme, project = root / "README.md", root / "pyproject.toml"
    text = readme.read_text(encoding="utf-8")
    if missing := [path for path in linked_files(text) if not (root / path).exists()]:
        print(f"README.md has links to what is not there: {', '.join(missing)}", file=sys.stderr)
        return 1
    readme.write_text(absolute(text, address, options.ref), encoding="utf-8")
    project.write_text(with_urls(project.read_text(encoding="utf-8"), address, options.ref), encoding="utf-8")
    return 0


def linked_files(markdown: str) -> list[str]:
    """The files that relative links name."""
    return [path for path, _ in _LINK.findall(markdown)]


def absolute(markdown: str, address: str, ref: str) -> str:
    """Markdown whose relative links lead to files of a tag: of pictures the file itself, else its page."""

    def changed(found: re.Match[str]) -> str:
        kind = "raw" if found[1].endswith(PICTURES) else "blob"
        return f"]({address}/{kind}/{ref}/{found[1]}{found[2] or ''})"

    return _LINK.sub(changed, markdown)


def with_urls(project: str, address: str, ref: str) -> str:
    """The text of pyproject.toml with `[project.urls]`, which a package index shows beside the README.

    Raises:
        ValueError: it has such a table already, or none that this one could stand before.
    """
    if "[project.urls]" in project or project.count(_BEFORE) != 1:
        raise ValueError("pyproject.toml has [project.urls] already, or no optional dependencies")
    urls = {
        "Source": address,
        "Documentation": f"{address}/blob/{ref}/docs/index.md",
        "Changelog": f"{address}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return project.replace(_BEFORE, f"[project.urls]\n{lines}\n{_BEFORE}")


if __name__ == "__main__":
    sys.exit(main())
