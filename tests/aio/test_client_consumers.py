"""Consumers in the hands of programs that make mistakes, and of several tasks: nobody waits for ever."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from support.scripted_broker import Received, deliver, hold
from world import World, cut, outcomes

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


async def left_at_once(deliveries: Consumer) -> None:
    """Leave a consumer as a task does that is cancelled, or whose time is over."""
    await deliveries.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)


# -- streams, of which RabbitMQ ends the connection where a delivery is returned


@pytest.mark.parametrize("options", [{}, {"tables": "raw"}, {"properties": "raw"}], ids=str)
async def test_leaving_a_consumer_of_a_stream_returns_nothing(world: World, options: dict[str, Any]) -> None:
    """A consumer that asks for an offset reads a stream: an acknowledgement takes nothing from it."""
    of_stream = world.amqp.BasicProperties(headers={"x-stream-offset": 7})

    def consume(received: Received) -> None:
        received.answer()
        received.deliver(b"1", b"2", b"3", properties=of_stream)

    def cancel(received: Received) -> None:
        world.broker.received("basic.consume")[0].deliver(b"late", properties=of_stream)
        received.answer()

    world.broker.on("basic.consume", consume)
    world.broker.on("basic.cancel", cancel)
    async with world.client(**options) as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("s", arguments={"x-stream-offset": "first"}) as deliveries:
            assert (await anext(deliveries)).ack()
            await world.broker.got("basic.ack")
        await world.broker.until(lambda: sum(len(each.tags) for each in world.broker.log) == 4)
    assert {each.name for each in world.broker.log if each.tags} == {"basic.ack"}


@pytest.mark.parametrize("options", [{}, {"tables": "raw"}, {"properties": "raw"}], ids=str)
async def test_who_refuses_a_delivery_of_a_stream_is_refused(world: World, options: dict[str, Any]) -> None:
    def consume(received: Received) -> None:
        received.answer()
        received.deliver(b"1", properties=world.amqp.BasicProperties(headers={"x-stream-offset": 7}))
        received.deliver(b"2", properties=world.amqp.BasicProperties(headers={"x-other": 7}))

    world.broker.on("basic.consume", consume)
    async with world.client(**options) as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("s", arguments={"x-stream-offset": "first"}) as deliveries:
            first, second = await anext(deliveries), await anext(deliveries)
            for refuse in (first.nack, first.reject):
                with pytest.raises(LocalProtocolError, match="a stream takes no delivery back"):
                    refuse()
            assert second.nack()
            assert first.ack()
    assert [(each.name, each.tags) for each in world.broker.log if each.tags] == [
        ("basic.nack", (2,)),
        ("basic.ack", (1,)),
    ]


async def test_what_a_stream_may_have_sent_stays_open(world: World) -> None:
    """A message may be in another queue by now, with the header: to acknowledge it would lose it there."""

    def consume(received: Received) -> None:
        received.answer()
        received.deliver(b"1", properties=world.amqp.BasicProperties(headers={"x-stream-offset": 7}))
        received.deliver(b"2", properties=world.amqp.BasicProperties(headers={"x-other": 7}))

    world.broker.on("basic.consume", consume)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("s"):
            pass
        await channel.call(world.amqp.Queue.Declare("q"))
    assert [(each.name, each.tags) for each in world.broker.log if each.tags] == [("basic.nack", (2,))]


# -- deliveries that need no acknowledgement, and cannot go back


async def test_what_needs_no_acknowledgement_is_read_after_a_lost_connection(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"), connection=1)
    world.broker.on("basic.consume", deliver(b"4"), connection=2)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", no_ack=True) as deliveries:
            read = [await anext(deliveries)]
            await cut(client, world.broker.peers[0])
            read += [await anext(deliveries) for _ in range(3)]
        stats = client.stats()
    assert [each.body for each in read] == [b"1", b"2", b"3", b"4"]
    assert (stats.delivered, stats.dropped) == (4, 0)


async def test_what_needs_no_acknowledgement_is_read_after_recovering(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", no_ack=True) as deliveries:
            await channel.call(world.amqp.Basic.Recover(requeue=True))
            assert [(await anext(deliveries)).body for _ in range(3)] == [b"1", b"2", b"3"]
        assert client.stats().dropped == 0


async def test_what_needs_no_acknowledgement_is_read_before_the_end_of_the_channel(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", no_ack=True) as deliveries:
            await channel.call(world.amqp.Queue.Declare("q"))
            await channel.close()
            assert (await anext(deliveries)).body == b"1"
        assert client.stats().dropped == 1


@pytest.mark.parametrize("at_once", [False, True])
async def test_what_comes_for_a_consumer_that_was_left_is_one_line_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    def cancel(received: Received) -> None:
        consume.deliver(*[b"late"] * 50)
        received.answer()

    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    world.broker.on("basic.cancel", cancel)
    async with world.client() as client:
        channel = await client.channel()
        deliveries = await channel.consume("q", no_ack=True).__aenter__()
        [consume] = await world.broker.got("basic.consume")
        await anext(deliveries)
        await (left_at_once(deliveries) if at_once else deliveries.__aexit__(None, None, None))
        await channel.call(world.amqp.Queue.Declare("q"))
        assert client.stats().dropped == 52
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["deliveries lost that needed no acknowledgement: 52"]


# -- leaving, and what comes after


async def test_a_tag_is_free_once_the_broker_has_cancelled_the_consumer_that_was_left(world: World) -> None:
    """A consumer that is left by a time limit does not wait for that; the next one of its tag does."""
    world.broker.on("basic.cancel", hold)
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), channel.consume("q", consumer_tag="t") as deliveries:
                await anext(deliveries)
        world.broker.on("basic.consume", deliver(b"1"))
        entering = asyncio.ensure_future(channel.consume("q", consumer_tag="t").__aenter__())
        [cancel] = await world.broker.got("basic.cancel")
        await client.call(world.amqp.Queue.Declare("q"))
        assert not entering.done()
        cancel.answer()
        assert (await anext(await entering)).body == b"1"


@pytest.mark.parametrize("how", ["cut", "closed"])
async def test_who_waits_for_a_tag_does_not_wait_for_ever(world: World, how: str) -> None:
    world.broker.on("basic.cancel", hold)
    async with world.client() as client:
        channel = await client.channel()
        await left_at_once(await channel.consume("q", consumer_tag="t").__aenter__())
        entering = asyncio.ensure_future(channel.consume("q", consumer_tag="t").__aenter__())
        [cancel] = await world.broker.got("basic.cancel")
        await (cut(client, cancel.peer) if how == "cut" else channel.close())
        assert await outcomes(entering) == ["ok" if how == "cut" else "LocalProtocolError"]


async def test_leaving_waits_for_the_broker_no_longer_than_closing_does(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """RabbitMQ reads nothing of a connection that has published while it is short of memory."""
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    world.broker.on("basic.cancel", hold)
    async with world.client(close_seconds=0.02) as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="t") as deliveries:
            assert (await anext(deliveries)).ack()
        [nack] = await world.broker.got("basic.nack")
        assert nack.tags == (2,)
    assert "consumer 't' is left: no answer to basic.cancel within 0.02 seconds" in caplog.text


async def test_the_answer_to_a_cancel_that_crossed_the_brokers_own_ends_no_other_consumer(
    world: World,
) -> None:
    def consume_again(received: Received) -> None:
        cancel.answer()
        deliver(b"1")(received)

    world.broker.on("basic.cancel", hold)
    async with world.client() as client:
        channel = await client.channel()
        await left_at_once(await channel.consume("q", consumer_tag="t").__aenter__())
        [cancel] = await world.broker.got("basic.cancel")
        world.broker.received("basic.consume")[0].cancel_consumer()
        world.broker.on("basic.consume", consume_again)
        world.broker.on("basic.cancel", Received.answer)
        async with channel.consume("q", consumer_tag="t") as deliveries:
            assert (await asyncio.wait_for(anext(deliveries), 5)).body == b"1"
