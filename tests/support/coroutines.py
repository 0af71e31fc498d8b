"""Runs tests that are coroutine functions, each in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import nullcontext
from typing import Any

import pytest


def arguments_of(test: pytest.Function) -> dict[str, Any] | None:
    """Return what a coroutine function is called with; None for another function."""
    if not inspect.iscoroutinefunction(test.obj):
        return None
    return {name: test.funcargs[name] for name in inspect.signature(test.obj).parameters}


def run(test: pytest.Function, seconds: float) -> bool | None:
    """Run a test, beside the broker that it asks for; what goes wrong behind its back is a failure.

    Returns:
        Whether it was run, as ``pytest_pyfunc_call`` has to say.
    """
    given = arguments_of(test)
    if given is None:
        return None
    broker = given.get("broker")

    async def talk() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with asyncio.timeout(seconds), broker or nullcontext():
            await test.obj(**given)
        assert reported == []
        assert broker is None or broker.errors == []

    asyncio.run(talk())
    return True
