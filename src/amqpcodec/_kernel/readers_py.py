"""Readers for calls that bring one payload each; the compiled twin, readers_c.pyx, lends them again."""

from __future__ import annotations

from .reader_py import Reader, ReaderRules


class ReaderPool:
    """Lends readers by the same rules."""

    __slots__ = ("_rules",)

    def __init__(self, rules: ReaderRules) -> None:
        self._rules = rules

    def take(self) -> Reader:
        """A reader that nobody else uses."""
        return self._rules.reader(False)

    def give_back(self, reader: Reader) -> None:
        """Let others have the reader."""
