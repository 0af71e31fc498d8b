"""Consumers in the hands of programs that make mistakes, and of several tasks: nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from support.scripted_broker import Received, deliver
from world import World, outcomes

from amqpcodec.aio import Consumer
from amqpcodec.errors import LocalProtocolError


async def test_a_consumer_that_was_not_entered_is_not_iterated_over(world: World) -> None:
    """Without ``async with`` nothing would ever come."""
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(LocalProtocolError, match="enter"):
            await asyncio.wait_for(anext(channel.consume("q")), 5)


async def test_tasks_that_iterate_end_as_the_consumer_is_left(world: World) -> None:
    async def work(deliveries: Consumer) -> None:
        async for _ in deliveries:
            pass

    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            workers = [asyncio.ensure_future(work(deliveries)) for _ in range(3)]
            await asyncio.sleep(0)
        done, left = await asyncio.wait(workers, timeout=5)
        for worker in left:
            worker.cancel()
        assert len(done) == 3
        assert set(await outcomes(*workers)) <= {"ok", "LocalProtocolError"}


async def test_a_consumer_that_was_left_is_not_iterated_over(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            pass
        with pytest.raises((LocalProtocolError, StopAsyncIteration)):
            await asyncio.wait_for(anext(deliveries), 5)


async def test_a_consumer_is_entered_once(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        consumer = channel.consume("q")
        async with consumer:
            with pytest.raises(LocalProtocolError, match="once"):
                await consumer.__aenter__()
        with pytest.raises(LocalProtocolError, match="once"):
            await consumer.__aenter__()
    assert len(world.broker.received("basic.consume")) == 1


async def test_recovering_takes_back_what_was_not_settled(world: World) -> None:
    def recover(received: Received) -> None:
        received.answer()
        consume.deliver(b"1", b"2", redelivered=True)

    world.broker.on("basic.consume", deliver(b"1", b"2"))
    world.broker.on("basic.recover", recover)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            old = await anext(deliveries)
            await channel.call(world.amqp.Basic.Recover(requeue=True))
            assert old.ack() is False
            again = [await anext(deliveries) for _ in range(2)]
            assert [(each.body, each.method.redelivered) for each in again] == [(b"1", True), (b"2", True)]
            assert all(each.ack() for each in again)
            [ack] = await world.broker.got("basic.ack")
            assert ack.tags == (3, 4)
        assert client.stats().stale == 1


async def test_many_consumers_of_a_channel_are_told_apart(world: World) -> None:
    def react(received: Received) -> None:
        received.answer()
        received.deliver(received.method.queue.encode())

    world.broker.on("basic.consume", react)
    async with world.client() as client:
        channel = await client.channel()

        async def consume(queue: str) -> None:
            async with channel.consume(queue) as deliveries:
                delivery = await anext(deliveries)
                assert delivery.body == queue.encode()
                delivery.ack()

        await asyncio.gather(*(consume(f"q{number}") for number in range(30)))
    tags = [each.method.consumer_tag for each in world.broker.received("basic.consume")]
    assert len({*tags}) == 30
