"""A summary as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .statsections import Section


def text(sections: Iterable[Section]) -> str:
    """All sections, one below the other."""
    return "\n".join("".join(f"{line.rstrip()}\n" for line in _lines(section)) for section in sections)


def _lines(section: Section) -> Iterator[str]:
    yield section.title
    widths = [max(map(len, column)) for column in zip(section.columns, *section.rows, strict=True)]
    left = len(widths) - section.numbers
    for row in (section.columns, *section.rows):
        cells = (
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  " + "  ".join(cells)
    for note in section.notes:
        yield f"  {note}"
