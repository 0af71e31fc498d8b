"""Fixtures for pytest: a broker in memory, on a thread. Until one is used, only pytest is imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from amqpcodec.testing import Broker


@pytest.fixture(scope="session")
def amqp_broker_options() -> dict[str, Any]:
    """Return options of `Broker` for the fixtures below; a suite may have a fixture of this name instead."""
    return {}


@pytest.fixture
def amqp_broker(amqp_broker_options: dict[str, Any]) -> Iterator[Broker]:
    """Run a broker of its own for each test."""
    from amqpcodec.testing import running_broker

    with running_broker(**amqp_broker_options) as broker:
        yield broker


@pytest.fixture(scope="session")
def amqp_broker_session(amqp_broker_options: dict[str, Any]) -> Iterator[Broker]:
    """Run one broker for all tests; `Broker.reset` empties it."""
    from amqpcodec.testing import running_broker

    with running_broker(**amqp_broker_options) as broker:
        yield broker
