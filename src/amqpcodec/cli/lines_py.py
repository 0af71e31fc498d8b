"""Lines of frames that wait to be written.

The compiled build has its own, lines_c.
"""

from __future__ import annotations

from ..capture import Item
from .forms import Form

__all__ = ["Lines"]


class Lines:
    """Collects lines.

    Args:
        form: makes the line of a frame or fault.
    """

    def __init__(self, form: Form) -> None:
        self._line = form.line
        self._waiting: list[str] = []

    def add(self, item: Item) -> int:
        """Add the line of a frame or fault; how many lines wait now."""
        self._waiting.append(self._line(item))
        return len(self._waiting)

    def put(self, line: str) -> int:
        """Add a line, with its line end; how many wait now."""
        self._waiting.append(line)
        return len(self._waiting)

    def take(self) -> str:
        """The lines that wait; none do any more."""
        text = "".join(self._waiting)
        self._waiting.clear()
        return text
