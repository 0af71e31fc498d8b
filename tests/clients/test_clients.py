"""Whole clients against a RabbitMQ: what is published arrives, and nothing falls back meanwhile.

`make test-all` has one client send a few messages with read loops replaced. ``AMQPCODEC_CLIENT_MESSAGES``
says how many; from 5,000 on the clients run in every state (`make test-clients`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aio_pika")
pytest.importorskip("amqpstorm")
pytest.importorskip("celery")
pytest.importorskip("kombu")
pytest.importorskip("pika")
pytest.importorskip("rabbitpy")

from support.clients import CLIENTS, LEFT_ALONE, PEERS
from support.clients.play import lines, play, played, queue, worker
from support.clients.samples import task
from support.marks import replaces

SLOW = pytest.mark.slow("needs a RabbitMQ")
OTHERS = [client for client in CLIENTS if client != "pika_select"]
MESSAGES = int(os.environ.get("AMQPCODEC_CLIENT_MESSAGES", "600"))
LONG = MESSAGES >= 5000
MODES = ("stock", "accelerated", "loops") if LONG else ("loops",)
POOLS = [(pool, mode) for pool in ("solo", "prefork") for mode in MODES] if LONG else [("prefork", "loops")]
TASKS = MESSAGES if LONG else 100


def peers(client: str, mode: str) -> str:
    return {"stock": "", "accelerated": PEERS[client], "loops": f"{PEERS[client]}+loops"}[mode]


def check(status: dict[str, Any], peer: str, mode: str, least: int) -> None:
    """The peer was replaced, and its replacements did all the work; or it was not."""
    if mode == "stock":
        assert status == {}
        return
    found = status[peer]
    assert (found["active"], found["why"], found["fallbacks"]) == (True, "", {})
    assert found["stock"].keys() <= LEFT_ALONE
    assert found["fast"] >= least


@replaces
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("client", [pytest.param("pika_select", marks=SLOW), *OTHERS])
def test_all_messages_arrive_and_nothing_falls_back(client: str, mode: str, rabbitmq: str) -> None:
    with queue(rabbitmq) as name:
        published = play(client, "publish", rabbitmq, name, MESSAGES, peers(client, mode))
        consumed = play(client, "consume", rabbitmq, name, MESSAGES, peers(client, mode))
    check(published.status, PEERS[client], mode, MESSAGES)
    check(consumed.status, PEERS[client], mode, MESSAGES)
    times = f"{published.microseconds:.0f} us to publish, {consumed.microseconds:.0f} us to consume"
    print(f"{client}, {mode}: {times}")


@replaces
@pytest.mark.parametrize(("pool", "mode"), POOLS)
def test_all_tasks_are_done_and_nothing_falls_back(
    pool: str, mode: str, rabbitmq: str, tmp_path: Path
) -> None:
    with queue(rabbitmq) as name:
        variables = {"AMQP_URL": rabbitmq, "AMQPCODEC_QUEUE": name, "AMQPCODEC_FOLDER": str(tmp_path)}
        with worker(pool, peers("kombu", mode), **variables):
            published = played(["support.clients.celery_app", str(TASKS)], peers("kombu", mode), **variables)
            found = lines(tmp_path, TASKS, 30 + TASKS / 50)
    assert found == [task(number) for number in range(TASKS)]
    check(published.status, "amqp", mode, TASKS)
    statuses = [json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("status-*")]
    assert len(statuses) == {"solo": 1, "prefork": 3}[pool]
    for status in statuses:
        check(status, "amqp", mode, 0)
    if mode != "stock":
        assert sum(status["amqp"]["fast"] for status in statuses) >= 3 * TASKS  # the frames of each task
