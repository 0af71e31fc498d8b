"""A user's program type-checks, and does what its types say."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import consumer
from support.checkers import Errors, mypy, pyright

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
OPTIONS = """
from typing import Unpack

from amqpcodec import arrow, capture
from amqpcodec.options import CaptureOptions


def messages(file: str, **options: Unpack[CaptureOptions]) -> int:
    reader = arrow.read_capture(file, "messages", **options)
    return sum(reader.faults.values())


messages("a.pcap", port=[5672, 5671], columns=("ts", "body"), mode="drop", batch_rows=7, flow_timeout=5)
for item in capture.read_frames("a.pcap", port=None, dialect="auto", out_of_order_bytes=1 << 20):
    print(item.offset)
session = arrow.CaptureSession("frames", state=None, include_credentials=True, max_body_bytes=5)
decoder = arrow.BatchDecoder("methods", direction=1)
"""
WRONG_OPTIONS = """
from amqpcodec import arrow, capture

arrow.read_capture("a.pcap", max_frame=5)
arrow.read_capture("a.pcap", frame_max="16m")
arrow.CaptureSession("frames", mode="quiet")
capture.read_frames("a.pcap", columns=["ts"])
arrow.BatchDecoder("frames", port=5672)
arrow.read_capture("a.pcap", _impl="py")
"""
PROGRAMS = {
    "consumer": CONSUMER.read_text(encoding="utf-8"),
    "faulty": FAULTS,
    "options": OPTIONS,
    "wrong_options": WRONG_OPTIONS,
}


@pytest.fixture(scope="module", params=[mypy, pyright])
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """Return the findings of a type checker in the programs, which it reads at once."""
    found: Errors = request.param(tmp_path_factory.mktemp("programs"), PROGRAMS)
    return found


@pytest.mark.slow("runs type checkers over the package")
def test_a_type_checker_accepts_the_program(errors: Errors) -> None:
    assert errors["consumer"] == {}


@pytest.mark.slow("runs type checkers over the package")
def test_a_type_checker_sees_the_types(errors: Errors) -> None:
    assert set(errors["faulty"]) == {4, 5, 6, 8}


@pytest.mark.slow("runs type checkers over the package")
def test_a_type_checker_knows_the_options(errors: Errors) -> None:
    assert errors["options"] == {}
    assert set(errors["wrong_options"]) == set(range(4, 10))


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
