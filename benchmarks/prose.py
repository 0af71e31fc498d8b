"""Paragraphs and tables of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill

from targets import Verdict


def paragraph(text: str, end: str = "\n") -> Iterator[str]:
    """Yield a paragraph in lines of the width that the documentation has."""
    yield fill(" ".join(text.split()), 108, break_long_words=False, break_on_hyphens=False) + end


def verdict_table(found: Iterable[Verdict]) -> Iterator[str]:
    """Yield the lines of a table of targets."""
    yield "| work | target | reached | |\n| --- | --- | --- | --- |"
    for verdict in found:
        met = {True: "met", False: "**missed**", None: ""}[verdict.met]
        yield f"| {verdict.work} | {verdict.target} | {verdict.reached} | {met} |"
