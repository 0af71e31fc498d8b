"""The re-entrancy lock of a decoder, in pure Python. The twin of lock_c.pyx.

Nobody waits for it: a second caller is refused, be it another thread or a callback of the first.
"""

from __future__ import annotations

import sys
from _thread import RLock, get_ident

from .._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType


class _GilLock:
    """Held by one caller at a time: `acquire` returns whether it was free, `release` frees it.

    CPython switches threads at calls and backward jumps only. So nobody comes between the test of `locked`
    and its setting, unless it is a trace function. Where calls count, code may do both in place.

    An interrupt can keep a call from releasing the lock, whatever is written there. So a caller has the lock
    in a local variable `lock` before it acquires it, and until it has released it. A call that is over has
    no variables: `reclaim` goes by that.
    """

    __slots__ = ("locked",)

    def __init__(self) -> None:
        self.locked: object = False

    def acquire(self) -> bool:
        if self.locked:
            return False
        self.locked = True
        return True

    def reclaim(self) -> bool:
        """Acquire the lock of a call that was broken off, unless another holds it; not for each frame."""
        self.locked = mark = object()
        caller = sys._getframe(1)
        tops = {**sys._current_frames(), get_ident(): caller.f_back}
        # Since the mark was set, somebody may have released the lock, and somebody else acquired it.
        if _is_held(self, tops.values()) or self.locked is not mark:
            return False
        self.locked = True
        return True

    def release(self) -> None:
        self.locked = False


class _ThreadLock:
    """Guard a decoder where there is no global lock, by a lock of the interpreter.

    That lock knows its thread, which may acquire it again: `_busy` refuses that, and only its thread looks
    there. `locked` is always set, so that nobody acquires this lock in place.
    """

    __slots__ = ("_busy", "_lock")

    locked = True

    def __init__(self) -> None:
        self._lock = RLock()
        self._busy = False

    def acquire(self) -> bool:
        if not self._lock.acquire(False):
            return False
        if self._busy:
            self._lock.release()
            return False
        self._busy = True
        return True

    def reclaim(self) -> bool:
        """Acquire the lock of a call of this thread that was broken off; other threads cannot be seen."""
        if not self._lock.acquire(False):
            return False
        if self._busy and _is_held(self, [sys._getframe(1).f_back]):
            self._lock.release()
            return False
        self._busy = True
        return True

    def release(self) -> None:
        self._busy = False
        # Also as often as calls that were broken off have acquired it.
        while self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock.release()


def _is_held(lock: object, tops: Iterable[FrameType | None]) -> bool:
    """Return whether one of these frames, or of their callers, has a lock in its variable `lock`."""
    for top in tops:
        frame = top
        while frame is not None:
            if "lock" in frame.f_code.co_varnames and frame.f_locals.get("lock") is lock:
                return True
            frame = frame.f_back
    return False


def _has_global_lock() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)  # of Python 3.13
    return sys.implementation.name == "cpython" and (enabled is None or enabled())


Lock = _GilLock if _has_global_lock() else _ThreadLock
