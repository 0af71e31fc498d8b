"""Markdown as the generated pages use it: tables, links, places to link to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where there are no rows. Cells are Markdown."""
    lines = ["| " + " | ".join(each.replace("|", "\\|") for each in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *lines])


def code(text: object) -> str:
    """Text in the letters of programs."""
    return f"`{text}`"


def link(text: str, target: str) -> str:
    """A link; the text is Markdown."""
    return f"[{text}]({target})"


def place(name: str) -> str:
    """Return the anchor for links to `#name`, inside of a table."""
    return f'<a id="{name}"></a>'


def anchor(name: str) -> str:
    """Return the anchor for links from docstrings, which mkdocstrings makes by names."""
    return f"[](){{ #{name} }}"


def heading(level: int, text: str, name: str) -> str:
    """A heading that links to `#name` lead to."""
    return f"{'#' * level} {text} {{ #{name} }}"


def document(title: str, *blocks: str) -> str:
    """A whole page; empty blocks are left out."""
    return "\n\n".join([f"# {title}", *filter(None, blocks)]) + "\n"


def sentence(label: str) -> str:
    """The few words of a label, as a sentence."""
    return f"{label[:1].upper()}{label[1:]}." if label else ""
