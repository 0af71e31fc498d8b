"""Whose turn it is at a decoder, in pure Python. The twin of turn_c.pyx."""

from __future__ import annotations

import sys
from _thread import RLock, get_ident

from .._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType


class _PlainTurn:
    """Taken by one caller at a time: `take` tells whether it was free, `end` frees it.

    CPython hands its global lock on at calls and backward jumps only, so that nobody comes between looking at
    `taken` and setting it, unless it is a trace function; where calls count, that may be done in place.

    An interrupt can keep a call from ending its turn, whatever is written there. So whoever takes a turn has
    it in a variable `turn` before, and until it has ended. A call that is over has no variables: `take_over`
    goes by that.
    """

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken: object = False

    def take(self) -> bool:
        if self.taken:
            return False
        self.taken = True
        return True

    def take_over(self) -> bool:
        """Take the turn from a call that was broken off, where no other has it; not for each frame."""
        self.taken = mark = object()
        caller = sys._getframe(1)
        tops = {**sys._current_frames(), get_ident(): caller.f_back}
        # Behind the mark, somebody may have ended a turn, and somebody else have taken one.
        if _is_held(self, tops.values()) or self.taken is not mark:
            return False
        self.taken = True
        return True

    def end(self) -> None:
        self.taken = False


class _LockedTurn:
    """The same where there is no such lock: one that is tried, never waited for.

    The lock knows its thread, which may take it again: `_busy` refuses that, and only its thread looks there.
    `taken` is always set, so that nobody takes a turn in place.
    """

    __slots__ = ("_busy", "_lock")

    taken = True

    def __init__(self) -> None:
        self._lock = RLock()
        self._busy = False

    def take(self) -> bool:
        if not self._lock.acquire(False):
            return False
        if self._busy:
            self._lock.release()
            return False
        self._busy = True
        return True

    def take_over(self) -> bool:
        """Take the turn from a call of this thread that was broken off; frames of others cannot be seen."""
        if not self._lock.acquire(False):
            return False
        if self._busy and _is_held(self, [sys._getframe(1).f_back]):
            self._lock.release()
            return False
        self._busy = True
        return True

    def end(self) -> None:
        self._busy = False
        # Also as often as calls that were broken off have taken it.
        while self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.release()


def _is_held(turn: object, tops: Iterable[FrameType | None]) -> bool:
    """Whether one of these frames, or of their callers, has a turn in its variable `turn`."""
    for top in tops:
        frame = top
        while frame is not None:
            if "turn" in frame.f_code.co_varnames and frame.f_locals.get("turn") is turn:
                return True
            frame = frame.f_back
    return False


def _has_global_lock() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)  # of Python 3.13
    return sys.implementation.name == "cpython" and (enabled is None or enabled())


Turn = _PlainTurn if _has_global_lock() else _LockedTurn
