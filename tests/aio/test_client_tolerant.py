"""A client that is tolerant: headers that cannot be read are delivered, once, and so is the next message."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from support.poison import GOOD, POISON, at, delivery, sized
from support.scripted_broker import Received
from world import World

from amqpcodec import AmqpError, UnreadableTable
from amqpcodec.aio import connect
from amqpcodec.connection import ChannelOpened, ConnectionClosed, MessageReceived


def poisoned(amqp: ModuleType, name: str) -> Any:
    """A broker that delivers a table of this name and then a sound one."""

    def react(received: Received) -> None:
        received.answer()
        connection = received.peer.connection
        tag = received.method.consumer_tag.encode()
        tables = (POISON[name].table, b"poison"), (sized(GOOD), b"next")
        for table, body in tables:
            number = connection.next_delivery_tag(received.channel)
            octets = delivery(table, body, number, received.channel, tag)
            [message] = amqp.MessageDecoder(properties="raw").feed(octets)
            connection.send_message(received.channel, message.method, message.properties, body)

    return react


def options(name: str) -> dict[str, Any]:
    return {"strict": True} if POISON[name].strict else {}


@pytest.mark.parametrize("name", POISON)
async def test_a_consumer_gets_the_message_and_the_next(world: World, name: str) -> None:
    world.broker.on("basic.consume", poisoned(world.amqp, name))
    async with world.client(tolerant=True, **options(name)) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            first, following = [await anext(deliveries) for _ in range(2)]
            assert first.ack()
            assert following.ack()
        stats = client.stats()
    assert (first.body, following.body) == (b"poison", b"next")
    assert isinstance(at(first.properties.headers, POISON[name].path), UnreadableTable)
    assert following.properties.headers == {"good": 1}
    assert stats.delivered == 2
    assert len(world.broker.received("basic.consume")) == 1


@pytest.mark.parametrize("name", POISON)
async def test_without_it_the_message_ends_the_client(world: World, name: str) -> None:
    async def consume() -> None:
        async with world.client(**options(name)) as client:
            channel = await client.channel()
            async with channel.consume("q") as deliveries:
                await anext(deliveries)

    world.broker.on("basic.consume", poisoned(world.amqp, name))
    with pytest.raises(AmqpError, match=POISON[name].text):
        await consume()


async def test_a_stream_takes_the_option_too(world: World) -> None:
    world.broker.on("basic.consume", poisoned(world.amqp, "an unknown tag"))
    async with await connect(world.broker.url, dialect=world.amqp, tolerant=True) as stream:
        channel = stream.connection.open_channel()
        bodies = []
        async for event in stream:
            assert not isinstance(event, ConnectionClosed)
            if isinstance(event, MessageReceived):
                bodies.append(event.body)
                if len(bodies) == 2:
                    break
            elif isinstance(event, ChannelOpened):
                stream.connection.send(channel, world.amqp.Basic.Consume(queue="q", consumer_tag="c"))
        assert bodies == [b"poison", b"next"]
