"""Pages that are written by hand, as the site needs them: they are read in the repository as well."""

from __future__ import annotations

import posixpath
import re

ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "spec/README.md": "spec.md",
    "tests/README.md": "tests.md",
}
"""Pages that are not in `docs`, and where they are in the site."""
GENERATED = {
    "spec": "reference/protocol.md",
    "spec/overlays": "reference/differences.md",
    "src/amqpcodec/reply_errors.py": "reference/reply-codes.md",
    "src/amqpcodec/_columns/schemas.py": "reference/columns.md",
    "src/amqpcodec/options.py": "reference/options.md",
}
"""Sources of the pages that are not stored; other pages link to those, and so to what the repository has."""

_ITEM = re.compile(r"(?:[-*]|\d\.) (?=\S)")
_LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?\)")


def indented(markdown: str) -> str:
    """Text whose lists are as Python-Markdown wants them: what belongs to an item is 4 columns in.

    Elsewhere, as where the repository is read, it begins where the text of the item begins. There, no empty
    line is needed between the last paragraph of an item and the next item.
    """
    lines: list[str] = []
    column, apart, fenced = 0, False, False
    for line in markdown.splitlines():
        if item := None if fenced else _ITEM.match(line):
            if apart and lines[-1]:
                lines.append("")
            column, apart = len(item[0]), False
        elif column and line.startswith(" " * column):
            apart |= not lines[-1]
            line = " " * (4 - column) + line
        elif line.strip():
            column, apart = 0, False
            fenced ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines) + "\n"


def relinked(markdown: str, source: str, path: str) -> str:
    """Text of the repository with links for the site.

    Args:
        markdown: the text.
        source: the file that it is of, in the repository.
        path: its page in the site.
    """

    def changed(found: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        target, anchor = _in_site(file, found[3] or "")
        return f"{found[1]}{posixpath.relpath(target, posixpath.dirname(path) or '.')}{anchor})"

    return _LINK.sub(changed, markdown)


def _in_site(file: str, anchor: str) -> tuple[str, str]:
    """The page of a file of the repository, and the place on it."""
    if file.startswith("examples/") and file.endswith(".py"):
        return "examples.md", f"#{file.removeprefix('examples/')}"
    return (ELSEWHERE | GENERATED).get(file, file.removeprefix("docs/")), anchor
