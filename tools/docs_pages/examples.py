"""The page of the programs in `examples/`, with their text."""

from __future__ import annotations

import ast
from pathlib import Path

from docs_pages.markup import document, heading


def page(root: Path) -> str:
    """The page: what each program says of itself, and its code."""
    programs = sorted((root / "examples").glob("*.py"))
    return document("Examples", "The programs of `examples/`; the tests run them.", *map(_program, programs))


def _program(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    summary = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].replace("\n", " ")
    return "\n\n".join([heading(2, path.name, path.name), summary, f"```python\n{text}```"])
