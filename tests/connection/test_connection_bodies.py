"""Bodies of any size: what is sent is what was given, and frames are as large as was agreed."""

from __future__ import annotations

import pytest
from support.connections import Pair
from support.implementation import Implementation

from amqpcodec.connection import Violation


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
