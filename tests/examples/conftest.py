"""A RabbitMQ for the tests of examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.broker import NoBrokerError, broker


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[str]:
    """The URL of a RabbitMQ."""
    try:
        with broker() as url:
            yield url
    except NoBrokerError as reason:
        pytest.skip(str(reason))
