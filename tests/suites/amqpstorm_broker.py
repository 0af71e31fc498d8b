"""Where the broker is: AMQPStorm's tests take its host from variables, and its port from the library."""

from __future__ import annotations

import os

import amqpstorm
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Say it, before the tests are imported."""
    host, port = os.environ["RABBITMQ_HOST"], int(os.environ["RABBITMQ_5672_TCP"])
    os.environ |= {
        "AMQP_HOST": host,
        "AMQP_USERNAME": "guest",
        "AMQP_PASSWORD": "guest",
        "AMQP_URI": os.environ["RABBITMQ_URL"],
        "AMQP_HTTP_URL": f"http://{host}:{os.environ['RABBITMQ_15672_TCP']}",
    }
    amqpstorm.Connection.__init__.__defaults__ = (port,)
