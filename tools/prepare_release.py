"""Makes a checkout ready for a release: compares its version with the tag, writes what a release alone knows.

A package index shows README.md on a page of its own, where relative links and pictures lead nowhere. No
file of the repository knows its address, so the workflow that builds a release runs this in its checkout:

    python tools/prepare_release.py https://example.org/owner/amqpcodec v0.1.0
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
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## \[(.+?)\](?: - (.*))?$", re.MULTILINE)
_FROM_CHECKOUT = re.compile(r"(\bpip install )(['\"]?)\.(\[[\w,-]+\])?\2(?=[\s`])( +# in a checkout)?")


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Change README.md and pyproject.toml of a checkout; 0 is success, 1 a release that is not ready."""
    parser = argparse.ArgumentParser(prog="prepare_release.py", description=__doc__)
    parser.add_argument("address", help="of the repository, as a browser shows it")
    parser.add_argument("tag", help="the tag of the release")
    options = parser.parse_args(argv)
    address = options.address.rstrip("/")
    readme, project = root / "README.md", root / "pyproject.toml"
    text = readme.read_text(encoding="utf-8")
    wrong = unready(root, options.tag)
    if missing := [path for path in linked_files(text) if not (root / path).exists()]:
        wrong.append(f"README.md has links to what is not there: {', '.join(missing)}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    readme.write_text(by_name(absolute(text, address, options.tag)), encoding="utf-8")
    project.write_text(with_urls(project.read_text(encoding="utf-8"), address, options.tag), encoding="utf-8")
    return 0


def unready(root: Path, tag: str) -> list[str]:
    """Return what speaks against a tag, a line each: another version, a changelog without its date."""
    version = _VERSION.findall((root / "src/amqpcodec/_version.py").read_text(encoding="utf-8"))[0]
    wrong = [f"the tag is {tag}, the version is {version}"] if tag != f"v{version}" else []
    name, date = _SECTION.findall((root / "CHANGELOG.md").read_text(encoding="utf-8"))[0]
    if name != version or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        begin = f"[{name}] - {date}" if date else f"[{name}]"
        wrong.append(f"CHANGELOG.md begins with {begin}, not with [{version}] and a date")
    return wrong


def linked_files(markdown: str) -> list[str]:
    """Return the files that relative links name."""
    return [path for path, _ in _LINK.findall(markdown)]


def absolute(markdown: str, address: str, tag: str) -> str:
    """Return markdown with absolute links to files of a tag: of pictures the file itself, else its page."""

    def changed(found: re.Match[str]) -> str:
        kind = "raw" if found[1].endswith(PICTURES) else "blob"
        return f"]({address}/{kind}/{tag}/{found[1]}{found[2] or ''})"

    return _LINK.sub(changed, markdown)


def by_name(markdown: str) -> str:
    """Return markdown that installs the release by its name, where it was from a checkout."""
    return _FROM_CHECKOUT.sub(r"\1\2amqpcodec\3\2", markdown)


def with_urls(project: str, address: str, tag: str) -> str:
    """Return the text of pyproject.toml with `[project.urls]`, which a package index shows beside the README.

    Raises:
        ValueError: it has such a table already, or none that this one could stand before.
    """
    if "[project.urls]" in project or project.count(_BEFORE) != 1:
        raise ValueError("pyproject.toml has [project.urls] already, or no optional dependencies")
    urls = {
        "Source": address,
        "Documentation": f"{address}/blob/{tag}/docs/index.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return project.replace(_BEFORE, f"[project.urls]\n{lines}\n{_BEFORE}")


if __name__ == "__main__":
    sys.exit(main())
