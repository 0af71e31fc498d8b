"""From the ids on the wire to the generated class, in pure Python. The twin of dispatch_c.pyx."""

from __future__ import annotations

from collections.abc import Mapping

from .._typing import Any


class Dispatch:
    """Makes an empty instance of the class registered under a number."""

    __slots__ = ("classes",)

    def __init__(self, classes: Mapping[int, type[Any]]) -> None:
        self.classes = dict(classes)

    def create(self, index: int) -> Any:
        """A new, unfilled instance, or None where nothing is registered."""
        cls = self.classes.get(index)
        return None if cls is None else object.__new__(cls)
