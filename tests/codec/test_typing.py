"""A user's program type-checks, and does what its types say."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import consumer
from support.checkers import Check, mypy, pyright

from amqpcodec import rabbitmq as amqp

CONSUMER = Path(consumer.__file__)


FAULTS = """
from amqpcodec import rabbitmq as amqp

amqp.Basic.Publish(exchange=5)
text: str = amqp.encode_heartbeat()
amqp.Basic.Ack(no_such_field=1)
for value in amqp.FrameDecoder().feed(b""):
    value.no_such_attribute
"""
FAULTY_LINES = (4, 5, 6, 8)


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_type_checker_accepts_the_program(tmp_path: Path, check: Check) -> None:
    finished = check(tmp_path, CONSUMER.read_text())
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_type_checker_sees_the_types(tmp_path: Path, check: Check) -> None:
    finished = check(tmp_path, FAULTS)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    for line in FAULTY_LINES:
        assert f"consumer.py:{line}:" in finished.stdout


def test_the_program_runs() -> None:
    octets = b"".join(consumer.open_connection()) + consumer.publish(1, b"body", {"k": "v"})
    shown = list(consumer.frames(octets + amqp.encode_heartbeat()))
    assert shown[0] == "0: version (0, 0, 9, 1)"
    assert shown[-2:] == ["1: 4 octets", "0: heartbeat"]
    deliver = amqp.encode_message(1, amqp.Basic.Deliver("tag", 5, routing_key="key"), None, b"body")
    assert consumer.bodies(deliver) == [("key", b"body")]
    assert next(consumer.frames(deliver)) == "1: delivery 5 to tag by key"
    assert list(consumer.frames(b"\x01\0\x01\0\0\0\0\xce")) == ["501 frame-error at 7"]
    receiver = consumer.Receiver()
    receiver.get_buffer(8)[:8] = amqp.encode_heartbeat()
    receiver.buffer_updated(8)
    assert receiver.seen == ["heartbeat"]
    assert consumer.facts(amqp.Basic.Ack()) == ["basic.ack 60.80", "delivery-tag", "multiple"]
    assert consumer.refused({"a": [object()]}) == ("a", 0)
    assert b"".join(consumer.publish_parts(1, memoryview(b"x")))[-2:] == b"x\xce"
