"""Whose turn it is at a decoder, in pure Python. The twin of turn_c.pyx."""

from __future__ import annotations

from functools import partial
from threading import Lock


class Turn:
    """Taken by one caller at a time: `take` tells whether it was free, `end` frees it.

    A lock that is never waited for: taking it is one step, with or without a global interpreter lock.
    """

    __slots__ = ("end", "take")

    def __init__(self) -> None:
        lock = Lock()
        self.take = partial(lock.acquire, False)
        self.end = lock.release
