"""Bodies of any size: what is sent is what was given, and frames are as large as was agreed."""

from __future__ import annotations

from typing import Any

import pytest
from support.connections import ROLES, Pair
from support.implementation import Implementation

from amqpcodec import EncodeError, Limits
from amqpcodec.connection import ConnectionLimits, MessageReceived, Violation


@pytest.mark.parametrize("size", [10, 65535, 65536, 300_000])
def test_a_body_that_changes_after_it_was_given_is_sent_as_it_was(impl: Implementation, size: int) -> None:
    pair = Pair(impl).opened()
    body = bytearray(b"a" * size)
    pair.client.send_message(1, pair.amqp.Basic.Publish(routing_key="q"), None, body)
    body[:] = b"b" * size
    pair.talk()
    [event] = pair.taken("server")
    assert event.body == b"a" * size


@pytest.mark.parametrize(
    ("role", "strict", "beyond", "taken"),
    [
        ("server", False, 0, True), ("server", False, 8, True), ("server", False, 9, False),
        ("server", True, 0, True), ("server", True, 1, False),
        ("client", False, 0, True), ("client", False, 1, False),
    ],
)  # fmt: skip
def test_a_server_that_is_not_strict_takes_frames_of_eight_octets_more(
    impl: Implementation, role: str, strict: bool, beyond: int, taken: bool
) -> None:
    """Some clients count the frame without its envelope, as brokers know."""
    sides = {"client": {"frame_max": 4096}, "server": {"frame_max": 4096}}
    sides[role]["strict"] = strict
    pair = Pair(impl, **sides).opened()
    amqp = pair.amqp
    if role == "client":
        pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct"))
        pair.talk()
        pair.server.send(1, amqp.Basic.ConsumeOk(consumer_tag="ct"))
        pair.talk()
    method = amqp.Basic.Publish() if role == "server" else amqp.Basic.Deliver("ct", 1, False, "", "q")
    pair.taken(role)
    octets = amqp.encode_message(1, method, amqp.BasicProperties(), bytes(4096 - 8 + beyond), frame_max=8192)
    pair.deliver(role, octets)
    found = pair.taken(role)
    assert isinstance(found[0], Violation) is not taken


def delivered(impl: Implementation, size: int, cut: int, body: bytes = b"body", **options: Any) -> list[Any]:
    """Return the outcome of a message whose content header is a frame of so many octets, in pieces."""
    role = options.pop("role", "client")
    pair = Pair(impl, client={"frame_max": 4096, **options}, server=options).opened()
    amqp = pair.amqp
    if role == "client":
        pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    method = amqp.Basic.Publish() if role == "server" else amqp.Basic.Deliver("ct", 1, False, "", "q")
    properties = amqp.BasicProperties(headers={"x": "y" * (size - 33)})
    octets = amqp.encode_message(1, method, properties, body, frame_max=0)
    header = amqp.encode_header(1, properties, len(body), frame_max=0)
    assert len(header) == size
    assert header in octets
    connection = getattr(pair, role)
    found = [
        event for at in range(0, len(octets), cut) for event in connection.receive_data(octets[at : at + cut])
    ]
    for event in found:
        if isinstance(event, MessageReceived):
            assert (event.method, event.properties, event.body) == (method, properties, body)
    assert connection.frame_max == 4096
    return found


@pytest.mark.parametrize("cut", [1 << 20, 1000, 7])
@pytest.mark.parametrize("body", [b"", b"body"])
@pytest.mark.parametrize("size", [4097, 10_000])
def test_a_client_reads_content_headers_above_frame_max(
    impl: Implementation, size: int, body: bytes, cut: int
) -> None:
    """RabbitMQ sends them whole, whatever was agreed."""
    [message] = delivered(impl, size, cut, body)
    assert isinstance(message, MessageReceived)


FRAMES, HELD = Limits(frame_size=9000), ConnectionLimits(open_bytes=9000)


@pytest.mark.parametrize("cut", [1 << 20, 1000, 7])
@pytest.mark.parametrize(
    ("size", "options", "said"),
    [
        (9000, {"limits": FRAMES}, None),
        (9001, {"limits": FRAMES}, "frame of 9001 octets, frame_size 9000"),
        (9000, {"connection_limits": HELD}, None),
        (9001, {"connection_limits": HELD}, "frame of 9001 octets, open_bytes 9000"),
        (4096, {"strict": True}, None),
        (4097, {"strict": True}, "frame of 4097 octets, frame_max 4096"),
        (4104, {"role": "server"}, None),
        (4105, {"role": "server"}, "frame of 4105 octets, frame_max + frame_max_slack 4104"),
    ],
)
def test_content_headers_have_limits(
    impl: Implementation, size: int, options: dict[str, Any], said: str | None, cut: int
) -> None:
    found = delivered(impl, size, cut, **options)
    texts = [event.reply_text for event in found if isinstance(event, Violation)]
    assert texts == ([] if said is None else [f"FRAME_ERROR - {said}"])


@pytest.mark.parametrize("role", ROLES)
def test_what_is_sent_obeys_frame_max(impl: Implementation, role: str) -> None:
    pair = Pair(impl, client={"frame_max": 4096}).opened()
    amqp = pair.amqp
    pair.client.send(1, amqp.Basic.Consume(queue="q", consumer_tag="ct", no_wait=True))
    pair.talk()
    method = amqp.Basic.Publish() if role == "client" else amqp.Basic.Deliver("ct", 1, False, "", "q")
    properties = amqp.BasicProperties(headers={"x": "y" * 4096})
    with pytest.raises(EncodeError, match="frame of 4129 octets, frame_max 4096"):
        getattr(pair, role).send_message(1, method, properties, b"")
