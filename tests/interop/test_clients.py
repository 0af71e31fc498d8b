"""Clients in other languages at the broker for tests, and at a RabbitMQ: all say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brokerj
import pytest
from support.implementation import Implementation
from support.recording import recording

from amqpcodec.capture import Fault, read_frames

from .building import Program, go, java, node, rust, said, serving

MESSAGES = 21
# The session of each: messages are published and confirmed, one is returned, one is put back, and so on.
SEEN = {
    "confirmed": MESSAGES,
    "returned": 312,
    "consumed": MESSAGES,
    "redelivered": 1,
    "headers": MESSAGES,
    "largest": 1 << 20,
    "empty": True,
    "closed": 404,
}
# What the capture has to have of it. Clients may acknowledge several at once, and so may the broker.
CLIENT = {"basic.publish": MESSAGES + 1, "basic.nack": 1, "basic.consume": 1, "basic.get": 1, "basic.qos": 1}
SERVER = {"basic.deliver": MESSAGES + 1, "basic.return": 1, "basic.get-empty": 1, "channel.close": 1}
PROGRAMS = {
    "java": Program(
        "RabbitMQ's Java client 5.37.1", lambda: java("Session.java", "com.rabbitmq:amqp-client:5.37.1")
    ),
    "go": Program("amqp091-go 1.16.0", go),
    "rust": Program("lapin 4.12.3", rust),
    "amqplib": Program("amqplib 2.3.1 for Node", lambda: node("amqplib.js")),
    "rabbitmq-client": Program("rabbitmq-client 5.0.8 for Node", lambda: node("rabbitmq-client.js")),
}


@pytest.fixture(scope="session", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> tuple[Program, list[str]]:
    """Each program, built; skips where its compiler or interpreter is missing."""
    found = PROGRAMS[request.param]
    try:
        return found, found.command()
    except brokerj.NotInstalledError as reason:
        pytest.skip(str(reason))


def test_a_client_sees_at_the_broker_for_tests_what_it_should(
    program: tuple[Program, list[str]],
    impl: Implementation,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    record_property("peer", program[0].name)
    record_property("dialect", "rabbitmq-0-9-1")
    record_property("role", "the broker for tests")
    path = tmp_path / "session.pcap"
    with (
        serving(impl.name, "amqpcodec.testing", "--port", "0") as port,
        recording("--to", f"amqp://127.0.0.1:{port}", path, build=impl.name) as (listening, _),
    ):
        assert said(program[1], f"amqp://guest:guest@127.0.0.1:{listening}/%2F", "interop") == SEEN
    check(path)


def check(path: Path) -> None:
    """The capture can be read, and has what the client says that it has done."""
    found: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    largest = 0
    for item in read_frames(path):
        assert not isinstance(item, Fault), item
        payload: Any = item.frame.payload
        if hasattr(payload, "spec"):
            found[item.direction][payload.spec.name] += 1
        largest = max(largest, getattr(payload, "body_size", 0) or 0)
    for counts, wanted in zip(found, (CLIENT, SERVER), strict=True):
        assert {name: counts[name] for name in wanted} == wanted
    assert largest == 1 << 20


def test_a_client_sees_the_same_at_a_rabbitmq(program: tuple[Program, list[str]], rabbitmq: str) -> None:
    assert said(program[1], f"{rabbitmq}%2F", "interop") == SEEN
