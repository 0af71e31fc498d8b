"""Time as the broker has it: it runs by itself, and tests may move it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush
from itertools import count
from time import time
from typing import Any

from .threads import on_the_loop

FORGOTTEN = 64  # cancelled timers that may stay, beyond as many as run


class Timer:
    """A call that is due at a time of a clock."""

    __slots__ = ("_call", "_clock", "_when")

    def __init__(self, clock: Clock, when: float, call: Callable[[], object]) -> None:
        self._clock = clock
        self._when = when
        self._call: Callable[[], object] | None = call

    def when(self) -> float:
        """Return the time at which it is due."""
        return self._when

    def cancel(self) -> None:
        """Do not call."""
        if self._call is not None:
            self._call = None
            self._clock.forget()

    def run(self) -> None:
        """Call, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Clock:
    """The clock of a broker: it has all that is timed, so that moving it makes due what it passes.

    Streams take it for their event loop: it has those calls of a loop that they make.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._moved = 0.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Run by the running loop."""
        self.loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Forget all timers."""
        self._timers.clear()
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def time(self) -> float:
        """Return seconds: those of the loop, and by how much tests have moved the clock."""
        return self._running().time() + self._moved

    def now(self) -> datetime:
        """Return the date and time, to the second; it is moved as well."""
        return datetime.fromtimestamp(int(time() + self._moved), UTC)

    @on_the_loop
    def advance(self, seconds: float) -> None:
        """Move the clock on, and do what becomes due in its order, each at its time.

        Args:
            seconds: how far; the time that passes by itself comes on top.

        Raises:
            ValueError: seconds are negative.
        """
        if seconds < 0:
            raise ValueError(f"a clock runs forwards, not by {seconds!r} seconds")
        loop = self._running()
        until = self.time() + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, timer = heappop(self._timers)
            self._moved = max(self._moved, when - loop.time())
            timer.run()
        self._moved = max(self._moved, until - loop.time())
        self._schedule()

    def call_at(self, when: float, call: Callable[..., object], *arguments: Any) -> Timer:
        """Call once the clock shows a time."""
        timer = Timer(self, when, (lambda: call(*arguments)) if arguments else call)
        heappush(self._timers, (when, next(self._numbers), timer))
        if self._timers[0][2] is timer:
            self._schedule()
        return timer

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: Any) -> Timer:
        """Call once so many seconds have passed."""
        return self.call_at(self.time() + seconds, call, *arguments)

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> asyncio.Handle:
        """Call in the next turn of the loop."""
        return self._running().call_soon(call, *arguments)

    def forget(self) -> None:
        """Count a timer that was cancelled; drop those where they outnumber the others."""
        self._cancelled += 1
        if self._cancelled > FORGOTTEN + len(self._timers) // 2:
            self._cancelled = 0
            self._timers = [entry for entry in self._timers if entry[2]._call is not None]
            heapify(self._timers)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            raise RuntimeError("the broker does not run")
        return self.loop

    def _schedule(self) -> None:
        """Have the loop come back when the first timer is due."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._timers:
            self._next = self._running().call_at(self._timers[0][0] - self._moved, self._run_due)

    def _run_due(self) -> None:
        self._next = None
        try:
            now = self.time()
            while self._timers and self._timers[0][0] <= now:
                heappop(self._timers)[2].run()
        finally:
            self._schedule()


__all__ = ["Clock", "Timer"]
