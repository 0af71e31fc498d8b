"""The client and RabbitMQ 3.10, 4.0 and 4.3, where their queues differ."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from world import World

from amqpcodec.aio import Channel, Client, ConsumerCancelledError, connect
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import AmqpNotFound, AmqpNotImplemented, AmqpPreconditionFailed

pytestmark = pytest.mark.slow("needs a RabbitMQ")
COUNT = 60  # messages, each of which goes back more often than a quorum queue takes by default


async def version_of(url: str) -> tuple[int, int]:
    """Return the version of a RabbitMQ."""
    async with await connect(url) as stream:
        major, minor, *_ = str(stream.server_properties["version"]).split(".")
    return int(major), int(minor)


async def declared(client: Client, world: World, kind: str, **arguments: Any) -> str:
    """Declare a queue, and return its name."""
    queue = f"amqpcodec-{uuid4()}"
    every = {
        "x-queue-type": kind,
        **{f"x-{name.replace('_', '-')}": each for name, each in arguments.items()},
    }
    await client.call(world.amqp.Queue.Declare(queue=queue, durable=True, arguments=every))
    return queue


async def fill(client: Client, queue: str, count: int) -> None:
    async with await client.channel() as channel:
        await asyncio.gather(
            *[await channel.publish_soon(b"%d" % number, routing_key=queue) for number in range(count)]
        )


async def take_one(channel: Channel, queue: str) -> int | None:
    """Take one message by a consumer of its own; None where there is none."""
    try:
        async with asyncio.timeout(1), channel.consume(queue) as deliveries:
            delivery = await anext(deliveries)
            delivery.ack()
            return int(delivery.body)
    except TimeoutError:
        return None


async def take_all(take: Callable[[], Awaitable[int | None]]) -> list[int]:
    taken = []
    while len(taken) < COUNT and (number := await take()) is not None:
        taken.append(number)
    return sorted(taken)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_consumers_of_a_channel_that_take_one_message_each_lose_none(
    world: World, rabbitmq: str, kind: str
) -> None:
    async with world.client(rabbitmq) as client:
        queue = await declared(client, world, kind)
        await fill(client, queue, COUNT)
        channel = await client.channel(prefetch=COUNT)
        assert await take_all(lambda: take_one(channel, queue)) == [*range(COUNT)]
        assert client.stats().dropped == 0
        await client.call(world.amqp.Queue.Delete(queue=queue))


@pytest.mark.parametrize("how", ["channel", "client"])
async def test_channels_and_clients_that_take_one_message_each_lose_none_uncounted(
    world: World, rabbitmq: str, how: str
) -> None:
    """RabbitMQ 4.0 to 4.2 count each return, whichever way it goes."""
    counts = (4, 0) <= await version_of(rabbitmq) < (4, 3)
    dropped = 0

    async def take() -> int | None:
        nonlocal dropped
        async with world.client(rabbitmq) as own:
            async with await (own if how == "client" else client).channel(prefetch=COUNT) as channel:
                number = await take_one(channel, queue)
            dropped += own.stats().dropped
        return number

    async with world.client(rabbitmq) as client:
        queue = await declared(client, world, "quorum")
        await fill(client, queue, COUNT)
        taken = await take_all(take)
        dropped += client.stats().dropped
        await client.call(world.amqp.Queue.Delete(queue=queue))
    assert (len(taken), dropped) == ((21, COUNT - 21) if counts else (COUNT, 0))


async def test_a_consumer_cancelled_for_its_delay_takes_no_message_with_it(
    world: World, rabbitmq: str
) -> None:
    if await version_of(rabbitmq) < (4, 3):
        pytest.skip("before 4.3, the channel is closed")
    async with world.client(rabbitmq) as client:
        queue = await declared(client, world, "quorum", consumer_timeout=1000)
        await fill(client, queue, 2)
        channel, other = await client.channel(prefetch=1), await client.channel(prefetch=1)
        async with channel.consume(queue) as deliveries:
            late = await anext(deliveries)
            with pytest.raises(ConsumerCancelledError):
                await anext(deliveries)
            assert late.ack()
            assert await take_all(lambda: take_one(other, queue)) == [0, 1]
        assert client.stats().stray == 0
        await client.call(world.amqp.Queue.Delete(queue=queue))


async def test_a_call_for_which_rabbitmq_closes_the_connection_ends_no_other(
    world: World, rabbitmq: str
) -> None:
    async with world.client(rabbitmq) as client:
        queue = await declared(client, world, "quorum")
        await fill(client, queue, 1)
        channel = await client.channel(prefetch=1)
        async with channel.consume(queue) as deliveries:
            with pytest.raises(AmqpNotImplemented, match="if-unused"):
                await client.call(world.amqp.Queue.Delete(queue=queue, if_unused=True))
            assert (await anext(deliveries)).body == b"0"
        assert client.stats().connections == 2
        await client.call(world.amqp.Queue.Delete(queue=queue))


async def test_a_channel_comes_back_after_a_call_for_which_rabbitmq_closes_it(
    world: World, rabbitmq: str
) -> None:
    async with world.client(rabbitmq) as client:
        queue = await declared(client, world, "quorum")
        channel = await client.channel(prefetch=1, reopen=3)
        async with channel.consume(queue) as deliveries:
            await fill(client, queue, 3)
            late = await anext(deliveries)
            with pytest.raises(AmqpNotFound):
                await channel.call(world.amqp.Queue.Declare(queue=f"{queue}-none", passive=True))
            assert late.ack() is False
            taken = []
            while len(taken) < 3:
                delivery = await anext(deliveries)
                assert delivery.ack()
                taken.append(delivery.body)
            assert sorted(taken) == [b"0", b"1", b"2"]
        assert client.stats().reopened == 1
        await client.call(world.amqp.Queue.Delete(queue=queue))


@pytest.mark.parametrize("begin", ["first", "next", 3])
async def test_a_consumer_of_a_stream_skips_and_repeats_nothing(
    world: World, rabbitmq: str, begin: Any
) -> None:
    async with world.client(rabbitmq) as client, world.client(rabbitmq) as publisher:
        queue = await declared(publisher, world, "stream")
        await fill(publisher, queue, 10)
        channel = await client.channel(prefetch=5)
        offsets = []
        async with channel.consume(queue, arguments={"x-stream-offset": begin}) as deliveries:
            await fill(publisher, queue, 3)
            for count in range(6 if begin == "next" else 12):
                delivery = await anext(deliveries)
                assert delivery.ack()
                offsets.append(delivery.properties.headers["x-stream-offset"])
                if count == 2:
                    client._link.stream._transport.abort()  # type: ignore[union-attr]
                    await fill(publisher, queue, 3)
        first = {"first": 0, "next": 10, 3: 3}[begin]
        assert offsets == [*range(first, first + len(offsets))]
        assert deliveries.offset == offsets[-1] + 1
        await publisher.call(world.amqp.Queue.Delete(queue=queue))


async def test_frames_that_are_too_small_are_named(world: World, rabbitmq: str) -> None:
    if await version_of(rabbitmq) < (4, 1):
        pytest.skip("before 4.1, frames of 4096 octets do")
    with pytest.raises(
        ConnectionLostError, match="after frame-max 8191 was agreed: RabbitMQ takes none below"
    ):
        await connect(rabbitmq, frame_max=8191)
    await (await connect(rabbitmq, frame_max=8192)).close()


async def test_a_message_over_the_limit_closes_its_channel(world: World, rabbitmq: str) -> None:
    if await version_of(rabbitmq) < (4, 0):
        pytest.skip("before 4.0, the limit is higher")
    async with world.client(rabbitmq) as client:
        channel, other = await client.channel(), await client.channel()
        with pytest.raises(AmqpPreconditionFailed, match="larger than configured max size 16777216"):
            await channel.publish(bytes((16 << 20) + 1), exchange="amq.fanout", mandatory=False)
        await other.publish(bytes(16 << 20), exchange="amq.fanout", mandatory=False)
