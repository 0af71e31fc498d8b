"""Makes the time of an event loop run faster, for what happens in whole seconds."""

from __future__ import annotations

import asyncio
from typing import Any


def hurry(times: int = 4) -> None:
    """Let seconds of the running loop be shorter by a factor, for timers and who reads its clock."""
    loop: Any = asyncio.get_running_loop()
    began, time, select = loop.time(), loop.time, loop._selector.select

    def select_hurried(timeout: float | None = None) -> Any:
        return select(None if timeout is None else timeout / times)

    loop.time = lambda: began + (time() - began) * times
    loop._selector.select = select_hurried
