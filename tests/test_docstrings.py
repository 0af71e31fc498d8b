"""Docstrings say what a thing is or does from their first word on."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What such a sentence is about stands behind its verb, or nowhere.
_UNCLEAR = re.compile(r'^ *"""(?:What|Whether|The same|Those|That)\b.*', re.MULTILINE)


def test_no_docstring_begins_with_a_word_that_needs_another_sentence() -> None:
    sources = [path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*.p*")]
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in sources
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi")
    }
    assert len(texts) > 200
    assert not [(path.name, line) for path, text in texts.items() for line in _UNCLEAR.findall(text)]
