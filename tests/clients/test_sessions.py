"""Ordinary clients work with the broker for tests, and through the recording proxy with RabbitMQ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.clients.sessions import CLIENTS, SEEN
from support.examples import serving
from support.implementation import Implementation
from support.recording import recording
from support.tiers import few

from amqpcodec.capture import CapturedFrame, read_frames

SLOW = pytest.mark.slow("needs a RabbitMQ")
OTHERS = [client for client in CLIENTS if client != "pika"]  # by `make test-clients`
TESTS = Path(__file__).resolve().parents[1]


def session(client: str, url: str) -> dict[str, Any]:
    """Run one; what it has seen."""
    pytest.importorskip(client)
    done = subprocess.run(
        [sys.executable, "-m", "support.clients.sessions", client, url],
        env={**os.environ, "PYTHONPATH": str(TESTS), "AMQPCODEC_COMPAT": ""},
        capture_output=True, encoding="utf-8", timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="module")
def own_broker(impl: Implementation) -> Iterator[str]:
    with serving(impl.name) as (port, log):
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
        assert log.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_works_with_rabbitmq_as_the_sessions_say(client: str, rabbitmq: str) -> None:
    assert session(client, rabbitmq) == SEEN


@pytest.mark.parametrize("client", few(CLIENTS, 2, "further clients"))
def test_a_client_works_with_the_broker_for_tests(client: str, own_broker: str) -> None:
    assert session(client, own_broker) == SEEN


@pytest.mark.parametrize("client", [pytest.param("pika", marks=SLOW), *OTHERS])
def test_a_client_works_through_the_proxy(
    client: str, impl: Implementation, rabbitmq: str, tmp_path: Path
) -> None:
    place = urlsplit(rabbitmq)
    broker = f"amqp://{place.hostname}:{place.port or 5672}"
    with recording("--to", broker, tmp_path / "t.pcap", build=impl.name) as (port, _):
        url = rabbitmq.replace(place.netloc.rpartition("@")[2], f"127.0.0.1:{port}")
        assert session(client, url) == SEEN
    frames = [each for each in read_frames(tmp_path / "t.pcap") if isinstance(each, CapturedFrame)]
    methods = [each.frame.payload.spec.name for each in frames if each.frame.type == 1]
    assert [methods.count(f"basic.{name}") for name in ("publish", "return", "get-ok", "deliver")] == [
        6,
        1,
        2,
        5,
    ]
    assert [each.frame.payload.body_size for each in frames if each.frame.type == 2].count(300_000) == 2
