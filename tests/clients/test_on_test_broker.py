"""Whole clients at the broker for tests, as at a RabbitMQ: messages arrive, and tasks of Celery are done.

`make test-clients` has a thousand tasks done in each pool of Celery, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("amqpstorm")
pytest.importorskip("celery")
pytest.importorskip("kombu")
pytest.importorskip("pika")
pytest.importorskip("rabbitpy")

from support.clients import CLIENTS
from support.clients.play import lines, play, played, queue, worker
from support.clients.samples import task

from amqpcodec.testing import running_broker

MESSAGES = 300
TASKS = 1000


@pytest.mark.parametrize("client", CLIENTS)
def test_all_messages_arrive(client: str) -> None:
    with running_broker() as broker, queue(broker.url) as name:
        play(client, "publish", broker.url, name, MESSAGES)
        assert broker.assert_published(MESSAGES, routing_key=name)
        play(client, "consume", broker.url, name, MESSAGES)  # it compares what it gets
        broker.assert_queue(name, ready=0, unacknowledged=0)


@pytest.mark.broker
@pytest.mark.parametrize("pool", ["solo", "prefork", "threads"])
def test_all_tasks_of_celery_are_done(pool: str, tmp_path: Path) -> None:
    with running_broker() as broker, queue(broker.url) as name:
        variables = {"AMQP_URL": broker.url, "AMQPCODEC_QUEUE": name, "AMQPCODEC_FOLDER": str(tmp_path)}
        with worker(pool, "", **variables):
            played(["support.clients.celery_app", str(TASKS)], "", **variables)
            assert lines(tmp_path, TASKS, 60) == [task(number) for number in range(TASKS)]
        broker.assert_queue(name, ready=0, unacknowledged=0)
