"""Refusals of what may not be sent now. Both builds share this class."""

from __future__ import annotations

from .._typing import NamedTuple


class Refusal(NamedTuple):
    """A method that may not be sent at this point.

    Attributes:
        code: the reply code.
        text: what is wrong.
    """

    code: int
    text: str


__all__ = ["Refusal"]
