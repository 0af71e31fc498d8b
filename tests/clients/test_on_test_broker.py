"""Whole clients at the broker for tests, as at a RabbitMQ: messages arrive, and tasks of Celery are done.

`make test-clients` has each scenario done at both.
"""

from __future__ import annotations

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("amqpstorm")
pytest.importorskip("celery")
pytest.importorskip("kombu")
pytest.importorskip("pika")
pytest.importorskip("rabbitpy")

from support.clients import CLIENTS
from support.clients.play import play, queue
from support.clients.scenarios import SCENARIOS, NotInstalledError
from support.tiers import few

from amqpcodec.testing import running_broker

MESSAGES = 300


@pytest.mark.parametrize("client", few(CLIENTS, 3, "further clients"))
def test_all_messages_arrive(client: str) -> None:
    with running_broker() as broker, queue(broker.url) as name:
        play(client, "publish", broker.url, name, MESSAGES)
        assert broker.assert_published(MESSAGES, routing_key=name)
        play(client, "consume", broker.url, name, MESSAGES)  # it compares what it gets
        broker.assert_queue(name, ready=0, unacknowledged=0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_client_sees_at_the_broker_for_tests_what_it_sees_at_a_rabbitmq(name: str, rabbitmq: str) -> None:
    with running_broker() as broker:
        try:
            assert SCENARIOS[name](broker.url) == SCENARIOS[name](rabbitmq)
        except NotInstalledError as reason:
            pytest.skip(f"not installed: {reason}")
