"""Lines of ``decode --errors``, of problems and of frames before them."""

from __future__ import annotations

import json
from typing import NamedTuple

from ..capture import Item
from .forms import Form


class Found(NamedTuple):
    """A frame or fault with what went wrong.

    Attributes:
        item: the frame or fault.
        problem: what went wrong with it; "" where it came before that.
        apart: whether it does not go on from the line before it.
        counts: whether it is a problem of its own, and not the content of one.
    """

    item: Item
    problem: str
    apart: bool
    counts: bool


class FoundLines:
    """Collects the lines of what was found, as `Lines` does those of frames."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._waiting: list[str] = []
        self._is_first = True

    def add(self, found: Found) -> int:
        """Add a line, in text behind an empty one where it stands apart; how many wait now."""
        line = self._form.line(found.item)
        if self._form.json:
            line = f'{line[:-2]}, "problem": {json.dumps(found.problem or None)}}}\n'
        elif found.apart and not self._is_first:
            line = f"\n{line}"
        self._is_first = False
        self._waiting.append(line)
        return len(self._waiting)

    def take(self) -> str:
        """The lines that wait; none do any more."""
        text = "".join(self._waiting)
        self._waiting.clear()
        return text
