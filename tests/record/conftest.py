"""Proxies before brokers, captures that are read back, and sessions of clients in their own way."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine functions; what goes wrong behind their back is a failure."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def run() -> None:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with asyncio.timeout(60):
            await pyfuncitem.obj(**given)
        assert reported == []

    asyncio.run(run())
    return True


@pytest.fixture
def freed() -> Iterator[None]:
    """Free what loops that have ended leave of TLS connections, here and not in a later test.

    There its warning would be an error, and one inside of `ast.parse` breaks CPython 3.11.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
