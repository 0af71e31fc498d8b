"""A user's use of the broker for tests."""

from __future__ import annotations

import ssl
from typing import Any, assert_type

from hypothesis.strategies import SearchStrategy

import amqpcodec
from amqpcodec import Method, Properties, rabbitmq, testing
from amqpcodec.testing import Broker, Fault, Message, running_broker, strategies
from amqpcodec.testing import faults as wrong


async def looks(context: ssl.SSLContext) -> None:
    """Look at a broker."""
    async with Broker(users={"ann": "s3cret"}, virtual_hosts=["/", "other"], tls=context, kept=5) as broker:
        assert_type(broker.url, str)
        assert_type(broker.url_of("ann", "other"), str)
        assert_type(broker.port, int)
        assert_type(broker.queue("q"), testing.QueueState)
        assert_type(broker.queues(), dict[str, testing.QueueState])
        assert_type(broker.exchanges("other"), dict[str, testing.ExchangeState])
        assert_type(broker.bindings(), list[testing.BindingState])
        assert_type(broker.consumers(), list[testing.ConsumerState])
        assert_type(broker.connections(), list[testing.ConnectionState])
        assert_type(broker.published(exchange="", routing_key="q"), list[Message])
        assert_type(broker.assert_published(1, message_id="m", settled="acknowledged"), list[Message])
        assert_type(broker.assert_queue("q", ready=[b"body"], consumers=1), None)
        assert_type(broker.publish("", "q", b"body", message_id="m").settled, dict[str, str])
        assert_type(broker.clock, testing.Clock)
        broker.clock.advance(60)
        broker.add_user("app", "token", seconds=60, configure="", write="", read=".*")
        broker.block("low on memory")
        broker.unblock()
        broker.close_connections(320, "CONNECTION_FORCED")
        broker.stop_listening()
        broker.listen()
        broker.restart(after=5)
        broker.reset()
        goes_wrong(broker.faults)


def goes_wrong(asked: wrong.Faults) -> None:
    """Ask for all faults that there are."""
    assert_type(asked, testing.Faults)
    fault = asked.add(wrong.close_channel(405), method="queue.declare", queue="q", times=1, skip=2)
    assert_type(fault, Fault)
    assert_type(fault.fired, int)
    for action in (
        wrong.close_connection(541, "INTERNAL_ERROR"), wrong.drop(), wrong.late(2), wrong.stall(5),
        wrong.raw(b"HTTP"), wrong.cut(3), wrong.lose_heartbeats(), wrong.block(), own,
    ):  # fmt: skip
        asked.add(action, sent=1000, connection=1)
    asked.add(wrong.refuse(), method="basic.publish")
    asked.add(wrong.ignore(), method="basic.publish")
    asked.add(wrong.twice(), method="basic.deliver")
    asked.add(wrong.drop(), received=8)
    asked.add(wrong.drop(), seconds=5)
    assert_type(asked.assert_fired(), None)
    asked.clear()
    assert_type(wrong.Fault, type[Fault])


def own(session: Any, event: Any) -> bool:
    """Let something of one's own happen."""
    return False


def blocks() -> None:
    """Have a broker on a thread."""
    with running_broker(port=0, heartbeat=0) as broker:
        assert_type(broker, Broker)


def draws() -> None:
    """Draw of everything."""
    assert_type(strategies.tables(rabbitmq, profile="qpid"), SearchStrategy[dict[str, Any]])
    assert_type(strategies.values(rabbitmq), SearchStrategy[Any])
    assert_type(strategies.methods(rabbitmq, "queue", validate=True), SearchStrategy[Method])
    assert_type(strategies.properties(rabbitmq, "basic"), SearchStrategy[Properties])
    assert_type(strategies.messages(rabbitmq, "basic.get-ok", max_size=5), SearchStrategy[amqpcodec.Message])
    assert_type(strategies.pieces(b"octets", max_cuts=3), SearchStrategy[tuple[bytes, ...]])
    assert_type(strategies.streams(rabbitmq, max_items=3), SearchStrategy[strategies.Stream])
    assert_type(strategies.broken_streams(rabbitmq, max_size=5), SearchStrategy[strategies.Stream])
    assert_type(strategies.Stream((), (b"",)).octets, bytes)
