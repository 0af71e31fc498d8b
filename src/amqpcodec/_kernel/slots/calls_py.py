"""Calls of encoders in the pure build, which need nothing. The twin of calls_c.pyx."""

from __future__ import annotations

from ..._typing import Any


def quicken(cls: type[Any]) -> None:
    """Leave the functions of a class as they are."""
