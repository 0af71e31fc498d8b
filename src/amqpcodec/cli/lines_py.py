"""Lines of frames that wait to be written.

The compiled build has its own, lines_c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..capture import Item
from .forms import Form

if TYPE_CHECKING:
    from .messages_py import ShownMessage

__all__ = ["Lines"]


class Lines:
    """Collects the lines that a form makes."""

    def __init__(self, form: Form) -> None:
        self._line = form.line
        self._waiting: list[str] = []

    def add(self, item: Item | ShownMessage) -> int:
        """Add the line of a frame, fault or message; how many lines wait now."""
        self._waiting.append(self._line(item))
        return len(self._waiting)

    def take(self) -> str:
        """The lines that wait; none do any more."""
        text = "".join(self._waiting)
        self._waiting.clear()
        return text
