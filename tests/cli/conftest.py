"""What tests of commands share: the builds, and captures made for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import make_capture as make
from support.busy import busy
from support.command import Run
from support.implementation import Implementation

from amqpcodec import capture
from amqpcodec import rabbitmq as amqp
from amqpcodec._backend import load
from amqpcodec.capture.model import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter

SECOND = 1_000_000_000
NOON = 1_795_348_800 * SECOND  # 2026-11-22 12:00 UTC


@pytest.fixture
def build(impl: Implementation, monkeypatch: pytest.MonkeyPatch) -> Implementation:
    """Has commands read captures and write lines by each build in turn."""
    for module in ("streams", "events"):
        layer = impl.capture(module)
        for name in layer.__all__:
            monkeypatch.setattr(capture, name, getattr(layer, name))
    state = impl.capture("direction_state").DirectionState
    monkeypatch.setattr("amqpcodec.capture.frames.DirectionState", state)
    monkeypatch.setattr("amqpcodec.cli.decode.Lines", impl.cli("lines").Lines)
    for module in ("decode", "problems"):
        monkeypatch.setattr(f"amqpcodec.cli.{module}.Messages", impl.cli("messages").Messages)
    following = load("amqpcodec._columns.following", impl.name)
    for name in ("Follower", "Message"):
        monkeypatch.setattr(f"amqpcodec.cli.settling.{name}", getattr(following, name))
    return impl


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command `amqpcodec decode`."""
    return Run(capsys)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two connections, a second between two things said: a consumer of two queues, and a publisher."""
    path = tmp_path_factory.mktemp("captures") / "broker.pcap"
    with path.open("wb") as file:
        _talk(PacketWriter(file))
    return path


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations of several users, whole."""
    path = tmp_path_factory.mktemp("captures") / "busy.pcap"
    path.write_bytes(make.pcap(busy(7).packets, nanos=True))
    return path


@pytest.fixture(scope="session")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, of which some packets are missing."""
    path = tmp_path_factory.mktemp("captures") / "lossy.pcap"
    path.write_bytes(make.pcap(make.disturb(busy(7).packets, 3, loss=0.05)[0]))
    return path


def content(method: object, body: bytes, channel: int = 1) -> bytes:
    """The frames of a message."""
    properties = amqp.BasicProperties(content_type="text/plain")
    frames = amqp.encode_method(channel, method), amqp.encode_header(channel, properties, len(body))
    return b"".join((*frames, amqp.encode_body(channel, body) if body else b""))


def _talk(packets: PacketWriter) -> None:
    server = Endpoint(bytes((10, 0, 0, 9)), 5672)
    ends = [Endpoint(bytes((10, 0, 0, number)), 40000 + number) for number in (1, 2)]
    consumer, publisher = (
        Conversation(packets, end, server, NOON, number) for number, end in enumerate(ends, 1)
    )
    method, header = amqp.encode_method, amqp.DIALECT.protocol_header
    steps = [
        (consumer, 0, header),
        (publisher, 0, header),
        (consumer, 0, method(1, amqp.Queue.Declare(queue="orders"))),
        (consumer, 1, method(1, amqp.Queue.DeclareOk(queue="orders"))),
        (consumer, 0, method(1, amqp.Basic.Consume(queue=""))),
        (consumer, 1, method(1, amqp.Basic.ConsumeOk(consumer_tag="first"))),
        (consumer, 0, method(1, amqp.Basic.Consume(queue="audit", consumer_tag="second", no_wait=True))),
        (publisher, 0, content(amqp.Basic.Publish(exchange="events", routing_key="a.b"), b"one")),
        (publisher, 0, content(amqp.Basic.Publish(exchange="", routing_key="orders"), b"two")),
        (consumer, 1, content(amqp.Basic.Deliver(consumer_tag="first", exchange="events"), b"one")),
        (consumer, 1, content(amqp.Basic.Deliver(consumer_tag="second", exchange="events"), b"three")),
        (consumer, 0, method(1, amqp.Basic.Get(queue="audit"))),
        (consumer, 1, content(amqp.Basic.GetOk(exchange="events"), b"")),
        (publisher, 0, content(amqp.Basic.Publish(exchange="events", routing_key="a.b"), b"cut off")[:-4]),
    ]
    for number, (conversation, direction, octets) in enumerate(steps, 1):
        conversation.send(direction, octets, NOON + number * SECOND)
    for conversation in (consumer, publisher):
        conversation.close(NOON + 60 * SECOND)
