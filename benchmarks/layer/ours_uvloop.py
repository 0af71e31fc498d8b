"""`aio.Client` on uvloop, as `ours`."""

from __future__ import annotations

import asyncio

import uvloop

from . import Clock
from .ours import consumed, published


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(published(url, queue, count, clock))


def consume(url: str, queue: str, count: int, clock: Clock) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(consumed(url, queue, count, clock))
