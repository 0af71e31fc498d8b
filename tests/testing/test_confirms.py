"""Publishes that come together are confirmed together, and none of those that are open."""

from __future__ import annotations

import asyncio
from typing import Any

from probes import queue
from probing import publish
from support.hello import OPEN
from talking import talk

from amqpcodec import rabbitmq as amqp
from amqpcodec.testing import Broker
from amqpcodec.testing.faults import ignore

Basic, Confirm = amqp.Basic, amqp.Confirm
CONFIRMING = OPEN + amqp.encode_method(1, queue()) + amqp.encode_method(1, Confirm.Select())


def published(routing_key: str = "q", exchange: str = "") -> bytes:
    """Return the octets of a message on channel 1."""
    return amqp.encode_message(1, Basic.Publish(exchange, routing_key), None, b"x")


async def answers(broker: Broker, octets: bytes) -> list[Any]:
    """Send octets at once, and nothing more; return what has come on channel 1 behind confirm.select-ok."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(octets)
    writer.write_eof()
    frames = amqp.FrameDecoder().feed(await reader.read())
    writer.close()
    methods = [frame.payload for frame in frames if frame.channel == 1]
    return methods[methods.index(Confirm.SelectOk()) + 1 :]


async def test_publishes_that_come_together_are_confirmed_together(broker: Broker) -> None:
    assert await answers(broker, CONFIRMING + published() * 3) == [Basic.Ack(3, True)]
    broker.assert_published(routing_key="q", confirm="ack", count=3)


async def test_confirms_come_before_the_answer_to_what_follows(broker: Broker) -> None:
    found = await answers(broker, CONFIRMING + published() * 2 + amqp.encode_method(1, queue()) + published())
    assert found == [Basic.Ack(2, True), amqp.Queue.DeclareOk("q", 2, 0), Basic.Ack(3)]


async def test_confirms_come_before_the_close_of_their_channel(broker: Broker) -> None:
    acked, closed = await answers(broker, CONFIRMING + published() * 2 + published(exchange="none"))
    assert acked == Basic.Ack(2, True)
    assert closed.reply_code == 404


async def test_a_publish_that_is_ignored_is_not_confirmed_by_those_behind_it(broker: Broker) -> None:
    broker.faults.add(ignore(), method="basic.publish", times=1)
    async with talk(broker) as client:
        await client.say(queue(), Confirm.Select(), publish("", "q"))
        broker.faults.clear()
        said = await client.say(publish("", "q"), publish("", "q"))
        assert said == [(1, "basic.ack", 2), (1, "basic.ack", 3)]
        assert client.stream.connection.unconfirmed(1) == (1,)
