"""Where the broker is: fixtures that aiormq's tests take from a file outside of its distribution."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from yarl import URL


@pytest.fixture(scope="session")
def rabbitmq_container() -> Any:
    """The ports of the broker."""
    ports = {
        "5671/tcp": int(os.environ["RABBITMQ_5671_TCP"]),
        "5672/tcp": int(os.environ["RABBITMQ_5672_TCP"]),
    }
    return SimpleNamespace(ports=ports, host="127.0.0.1")


@pytest.fixture(scope="session")
def amqp_direct_url() -> URL:
    """Its address."""
    return URL(os.environ["RABBITMQ_URL"])
