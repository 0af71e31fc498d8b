"""A broker for each test, of either build; coroutine functions run beside it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from support.coroutines import run
from support.implementation import Implementation

from amqpcodec import _backend
from amqpcodec.testing import Broker
from amqpcodec.testing import broker as broker_module


@pytest.fixture
def options(impl: Implementation, amqp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a broker of the build is made with."""
    machine = _backend.load("amqpcodec.connection.machine", impl.name)
    monkeypatch.setattr(broker_module, "Connection", machine.Connection)
    return {"dialect": amqp}


@pytest.fixture
def broker(options: dict[str, Any]) -> Broker:
    """A broker that runs while a coroutine function does."""
    return Broker(**options)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine functions."""
    return run(pyfuncitem, 30)
