"""A RabbitMQ for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.broker import NoBrokerError, broker


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    try:
        with broker() as found:
            yield found
    except NoBrokerError as reason:
        pytest.skip(str(reason))
