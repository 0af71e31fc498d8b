"""Calls from other threads than the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def on_the_loop(method: _F) -> _F:
    """Let a method be called from any thread: its work is done on the thread of the object's `loop`."""

    @wraps(method)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        loop: asyncio.AbstractEventLoop | None = self.loop
        if loop is None or not loop.is_running() or _is_own(loop):
            return method(self, *arguments, **options)

        async def work() -> Any:
            return method(self, *arguments, **options)

        return asyncio.run_coroutine_threadsafe(work(), loop).result()

    return cast("_F", called)


def _is_own(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this thread runs the loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


__all__ = ["on_the_loop"]
