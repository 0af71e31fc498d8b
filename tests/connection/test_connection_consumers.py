"""Consumers that come, go and are answered in whatever order the broker likes."""

from __future__ import annotations

from typing import Any

import pytest
from support.connections import Pair, violations
from support.implementation import Implementation

from amqpcodec import LocalProtocolError
from amqpcodec.connection import ConnectionLimits


def asked(impl: Implementation, *tags: str, **options: Any) -> Pair:
    """A pair whose client has asked for consumers at once; every other one acknowledges nothing."""
    pair = Pair(impl, **options).opened()
    for at, tag in enumerate(tags):
        pair.client.send(1, pair.amqp.Basic.Consume(queue="q", consumer_tag=tag, no_ack=at % 2 == 0))
    pair.talk()
    return pair


def receive(pair: Pair, *methods: Any) -> list[Any]:
    """What the client makes of methods that the broker has sent in this order."""
    octets = [pair.amqp.encode_method(1, method) for method in methods]
    return list(pair.client.receive_data(b"".join(octets)))


def deliver(pair: Pair, delivery_tag: int, consumer_tag: str) -> None:
    method = pair.amqp.Basic.Deliver(consumer_tag, delivery_tag, False, "", "q")
    [_] = pair.client.receive_data(pair.amqp.encode_message(1, method, None, b"body"))


def test_consumers_are_paired_with_their_requests_by_tag(impl: Implementation) -> None:
    pair = asked(impl, "a", "b", "", "c")
    ok = pair.amqp.Basic.ConsumeOk
    events = receive(pair, ok("c"), ok("made"), ok("b"), ok("a"))
    assert [event.request.consumer_tag for event in events] == ["c", "", "b", "a"]
    for number, tag in enumerate(("a", "b", "made", "c"), 1):
        deliver(pair, number, tag)
    assert pair.client.unacknowledged(1) == (2, 4)
    assert pair.client.awaited(1) == ()


def test_cancelled_consumers_are_paired_with_their_requests_by_tag(impl: Implementation) -> None:
    pair = asked(impl, "a", "b")
    receive(pair, pair.amqp.Basic.ConsumeOk("a"), pair.amqp.Basic.ConsumeOk("b"))
    for tag in ("a", "b"):
        pair.client.send(1, pair.amqp.Basic.Cancel(tag))
    [event] = receive(pair, pair.amqp.Basic.CancelOk("b"))
    assert event.request == pair.amqp.Basic.Cancel("b")
    assert pair.client.consumers(1) == ("a",)


def test_a_consumer_that_nobody_asked_for_is_a_violation(impl: Implementation) -> None:
    pair = asked(impl, "a")
    [violation] = violations(receive(pair, pair.amqp.Basic.ConsumeOk("b")))
    assert (violation.reply_code, pair.client.state) == (503, "closing")


def test_a_server_answers_consumers_in_order_and_by_their_tags(impl: Implementation) -> None:
    pair = asked(impl, "a", "", "b")
    for wrong in ("b", "made", ""):
        with pytest.raises(LocalProtocolError, match="answers no request"):
            pair.server.send(1, pair.amqp.Basic.ConsumeOk(wrong))
    for tag in ("a", "made", "b"):
        pair.server.send(1, pair.amqp.Basic.ConsumeOk(tag))
    pair.talk()
    assert pair.client.consumers(1) == pair.server.consumers(1) == ("a", "made", "b")


def test_of_consumers_cancelled_without_waiting_a_client_remembers_so_many(impl: Implementation) -> None:
    tags = ("a", "b", "c", "d")
    pair = Pair(impl, client={"connection_limits": ConnectionLimits(consumers=3)}).opened()
    basic = pair.amqp.Basic
    for tag in (*tags, "b"):
        pair.client.send(1, basic.Consume(queue="q", consumer_tag=tag, no_ack=True, no_wait=True))
        pair.client.send(1, basic.Cancel(tag, no_wait=True))
    for number, tag in enumerate(tags, 1):
        deliver(pair, number, tag)
    assert pair.client.unacknowledged(1) == (1,)


def test_a_server_cancels_consumers_that_there_are(impl: Implementation) -> None:
    pair = asked(impl, "a", "b")
    basic, server = pair.amqp.Basic, pair.server
    for tag in ("a", "nobody"):  # asked for and not there yet; never asked for
        with pytest.raises(LocalProtocolError, match=f"basic.cancel to no consumer: '{tag}'"):
            server.send(1, basic.Cancel(tag, no_wait=True))
    assert server.data_to_send() == b""
    for tag in ("a", "b"):
        server.send(1, basic.ConsumeOk(tag))
    server.send(1, basic.Cancel("a", no_wait=True))
    with pytest.raises(LocalProtocolError, match=r"basic\.cancel to no consumer: 'a'"):
        server.send(1, basic.Cancel("a", no_wait=True))
    pair.talk()
    assert pair.client.consumers(1) == server.consumers(1) == ("b",)


def test_a_server_cancels_a_consumer_whose_tag_it_has_chosen(impl: Implementation) -> None:
    """A client that does not wait for the tag does not know it."""
    pair = Pair(impl).opened()
    basic = pair.amqp.Basic
    pair.client.send(1, basic.Consume(queue="q", no_wait=True))
    pair.talk()
    pair.server.send(1, basic.Cancel("made", no_wait=True))
    pair.talk()
    assert pair.taken("client")[-1].method == basic.Cancel("made", no_wait=True)


@pytest.mark.parametrize("no_wait", [False, True])
def test_a_client_takes_the_cancel_of_a_consumer_that_it_does_not_know(
    impl: Implementation, no_wait: bool
) -> None:
    """It may have cancelled it meanwhile, without waiting."""
    pair = asked(impl, "a")
    client, basic = pair.client, pair.amqp.Basic
    receive(pair, basic.ConsumeOk("a"))
    client.send(1, basic.Cancel("a", no_wait=True))
    for tag in ("a", "nobody"):
        [event] = receive(pair, basic.Cancel(tag, no_wait=no_wait))
        assert (event.method.consumer_tag, event.request) == (tag, None)
        if not no_wait:
            client.send(1, basic.CancelOk(tag))
    assert (client.state, client.channel_state(1), client.consumers(1)) == ("open", "open", ())
