"""Whose turn it is at a decoder, in pure Python. The twin of turn_c.pyx."""

from __future__ import annotations

import sys
from _thread import allocate_lock


class _PlainTurn:
    """Taken by one caller at a time: `take` tells whether it was free, `end` frees it.

    CPython hands its global lock on at calls and backward jumps only, so that nobody comes between looking at
    `taken` and setting it, unless it is a trace function; where calls count, that may be done in place.
    """

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = False

    def take(self) -> bool:
        if self.taken:
            return False
        self.taken = True
        return True

    def end(self) -> None:
        self.taken = False


class _LockedTurn:
    """The same where there is no such lock: one that is tried, never waited for.

    `taken` is always set, so that nobody takes a turn in place.
    """

    __slots__ = ("_lock",)

    taken = True

    def __init__(self) -> None:
        self._lock = allocate_lock()

    def take(self) -> bool:
        return self._lock.acquire(False)

    def end(self) -> None:
        self._lock.release()


def _has_global_lock() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)  # of Python 3.13
    return sys.implementation.name == "cpython" and (enabled is None or enabled())


Turn = _PlainTurn if _has_global_lock() else _LockedTurn
