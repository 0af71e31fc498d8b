"""A world for the tests of the client; a coroutine function runs in it, in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
from types import ModuleType

import pytest
from support.implementation import Implementation
from world import World

from amqpcodec import _backend
from amqpcodec.aio import connecting


@pytest.fixture
def world(impl: Implementation, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> World:
    """Both ends of each connection are of one build."""
    machine = _backend.load("amqpcodec.connection.machine", impl.name)
    monkeypatch.setattr(connecting, "Connection", machine.Connection)
    return World(amqp)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine functions that ask for the world in it."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or "world" not in pyfuncitem.funcargs:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.funcargs["world"].run(pyfuncitem.obj(**given)))
    return True
