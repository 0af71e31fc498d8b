"""A world for the tests of the client, in which coroutine functions run, and a node of RabbitMQ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import ModuleType

import pytest
from support.broker import NoBrokerError, Node, started
from support.coroutines import arguments_of
from support.implementation import Implementation
from support.soak_faults import HEARTBEAT
from world import World

from amqpcodec import _backend
from amqpcodec.aio import connecting
from amqpcodec.testing import broker


@pytest.fixture
def world(impl: Implementation, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> World:
    """Both ends of each connection are of one build."""
    machine = _backend.load("amqpcodec.connection.machine", impl.name)
    for module in (connecting, broker):
        monkeypatch.setattr(module, "Connection", machine.Connection)
    return World(amqp)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """A node of our own, which tests may stop."""
    try:
        with started(settings=f"heartbeat = {HEARTBEAT}") as found:
            yield found
    except NoBrokerError as reason:
        pytest.skip(str(reason))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine functions that ask for the world in it."""
    given = arguments_of(pyfuncitem)
    if given is None or "world" not in given:
        return None
    asyncio.run(pyfuncitem.funcargs["world"].run(pyfuncitem.obj(**given)))
    return True
