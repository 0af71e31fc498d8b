"""Consumers of streams: after a lost connection they go on after what was settled, and skip nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.scripted_broker import Received, deliver
from world import World, cut


def of_stream(world: World, *offsets: int) -> Callable[[Received], None]:
    """Begin a consumer, and deliver the messages of a stream that have these offsets."""

    def begin(received: Received) -> None:
        received.answer()
        for offset in offsets:
            properties = world.amqp.BasicProperties(headers={"x-stream-offset": offset})
            received.deliver(b"%d" % offset, properties=properties)

    return begin


def asked(world: World) -> list[Any]:
    """Return the offsets that the broker was asked for, in order."""
    return [each.method.arguments["x-stream-offset"] for each in world.broker.received("basic.consume")]


@pytest.mark.parametrize("options", [{}, {"tables": "raw"}, {"properties": "raw"}], ids=str)
@pytest.mark.parametrize(
    ("settled", "goes_on"), [([], 7), ([7], 8), ([7, 8], 9), ([8], 7), ([9, 8], 7), ([7, 8, 9], 10)], ids=str
)
async def test_a_consumer_of_a_stream_goes_on_after_what_was_settled(
    world: World, settled: list[int], goes_on: int, options: dict[str, Any]
) -> None:
    world.broker.on("basic.consume", of_stream(world, 7, 8, 9), connection=1)
    arguments = {"x-stream-offset": "next", "x-priority": 1}
    async with world.client(**options) as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("s", arguments=arguments) as deliveries:
            three = {int((delivery := await anext(deliveries)).body): delivery for _ in range(3)}
            assert all(three[offset].ack() for offset in settled)
            assert deliveries.offset == goes_on
            await cut(client, world.broker.peers[0])
            assert three[9].ack() is False  # which comes again, where it was not settled before
            await world.broker.got("basic.consume", 2)
            assert deliveries.offset == goes_on
    assert asked(world) == ["next", goes_on]
    assert arguments == {"x-stream-offset": "next", "x-priority": 1}
    assert world.broker.received("basic.consume")[1].method.arguments["x-priority"] == 1


async def test_a_consumer_that_has_received_nothing_asks_for_the_same_again(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("s", arguments={"x-stream-offset": "first"}) as deliveries:
            assert deliveries.offset is None
            await cut(client, world.broker.peers[0])
            await world.broker.got("basic.consume", 2)
    assert asked(world) == ["first", "first"]


async def test_what_was_unread_as_a_consumer_of_a_stream_is_left_is_not_settled(world: World) -> None:
    """It is acknowledged, which takes nothing from a stream. The next process may begin there."""
    world.broker.on("basic.consume", of_stream(world, 7, 8, 9))
    async with world.client() as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("s", arguments={"x-stream-offset": "first"}) as deliveries:
            assert (await anext(deliveries)).ack()
        await world.broker.until(lambda: sum(len(each.tags) for each in world.broker.log) == 3)
        assert deliveries.offset == 8


async def test_a_consumer_of_another_queue_has_no_offset(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("q", arguments={"x-stream-offset": "first"}) as deliveries:
            assert (await anext(deliveries)).ack()
            assert deliveries.offset is None
        async with channel.consume("q") as deliveries:
            await anext(deliveries)
            assert deliveries.offset is None
