"""Channels that come back after the broker has closed them, where the program wants it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.scripted_broker import Received, close_channel, deliver, hold
from world import World, outcomes, published

from amqpcodec.aio import opened
from amqpcodec.reply_errors import AmqpNotFound, AmqpPreconditionFailed


def closes(received: Received, *, of: Any = None, code: int = 406) -> None:
    """Close a channel, for a method of it."""
    spec = (of or received.method).spec
    received.peer.connection.close_channel(
        received.channel, code, "as the test says", spec.class_id, spec.method_id
    )


async def test_a_channel_comes_back_with_its_prefetch_and_consumers(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """RabbitMQ closes a channel whose consumer is late with an acknowledgement, by 406."""
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel(prefetch=7, reopen=1)
        async with channel.consume("a") as first, channel.consume("b", no_ack=True) as second:
            late = await anext(first)
            await anext(second)
            world.broker.received("basic.consume")[0].close_channel(406, "delivery acknowledgement timed out")
            again = await anext(first)
            assert late.ack() is False
            assert again.ack()
            await anext(second)
            await channel.call(world.amqp.Queue.Declare("q"))
        stats = client.stats()
    assert [each.method.queue for each in world.broker.received("basic.consume")] == ["a", "b", "a", "b"]
    assert [each.method.prefetch_count for each in world.broker.received("basic.qos")] == [7, 7]
    assert (stats.reopened, stats.connections, stats.stale) == (1, 1, 1)
    assert "opening a channel again in 0.0" in caplog.text
    assert "delivery acknowledgement timed out" in caplog.text


async def test_publishes_that_are_not_confirmed_raise_the_error_and_those_that_wait_go_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker may have them, and may have closed the channel for one of them."""
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(reopen=1)
        sent = published(channel, 2)
        [first, _] = await world.broker.got("basic.publish", 2)
        world.broker.on("basic.publish", Received.answer)
        first.close_channel(404, "no exchange")
        assert await outcomes(*sent) == ["AmqpNotFound"] * 2
        await channel.publish(b"3")
        stats = client.stats()
    assert world.broker.bodies() == [b"1", b"2", b"3"]
    assert (stats.unconfirmed, stats.republished, stats.confirmed) == (2, 0, 1)
    assert "messages not confirmed: 2; no exchange" in caplog.text


async def test_calls_raise_the_error_and_those_that_come_later_wait(world: World) -> None:
    world.broker.on("queue.declare", close_channel(406))
    async with world.client() as client:
        channel = await client.channel(reopen=1)
        with pytest.raises(AmqpPreconditionFailed):
            await channel.call(world.amqp.Queue.Declare("q"))
        assert await channel.call(world.amqp.Queue.Purge("q")) == world.amqp.Queue.PurgeOk()


async def test_the_consumer_for_which_a_channel_is_closed_ends_and_others_go_on(world: World) -> None:
    def consume(received: Received) -> None:
        if received.method.queue == "none":
            closes(received, code=404)
        else:
            deliver(b"1")(received)

    world.broker.on("basic.consume", consume)
    async with world.client() as client:
        channel = await client.channel(reopen=1)
        async with channel.consume("q") as deliveries:
            await anext(deliveries)
            with pytest.raises(AmqpNotFound):
                await channel.consume("none").__aenter__()
            assert (await anext(deliveries)).ack()


async def test_a_consumer_whose_queue_is_gone_by_then_ends(world: World) -> None:
    def gone(received: Received) -> None:
        closes(received, code=404)

    async with world.client() as client:
        channel = await client.channel(reopen=2)
        async with channel.consume("a") as first, channel.consume("b") as second:
            world.broker.on(
                "basic.consume", lambda each: (gone if each.method.queue == "a" else deliver(b"1"))(each)
            )
            world.broker.received("basic.consume")[0].close_channel(406)
            with pytest.raises(AmqpNotFound):
                await anext(first)
            assert (await anext(second)).ack()
        assert client.stats().reopened == 2


@pytest.mark.parametrize("reopen", [0, 1, 3])
async def test_a_channel_that_is_closed_more_often_in_a_row_stays_closed(
    world: World, monkeypatch: pytest.MonkeyPatch, reopen: int
) -> None:
    """Each time as its consumer has begun; the method that is named is another."""

    def consume(received: Received) -> None:
        received.answer()
        closes(received, of=world.amqp.Basic.Ack())

    monkeypatch.setattr(opened, "LASTING_SECONDS", 60.0)
    world.broker.on("basic.consume", consume)
    async with world.client() as client:
        channel = await client.channel(reopen=reopen)
        with pytest.raises(AmqpPreconditionFailed):
            async with channel.consume("q") as deliveries:
                await anext(deliveries)
        assert client.stats().reopened == reopen
        with pytest.raises(AmqpPreconditionFailed):
            await channel.publish(b"")
    assert len(world.broker.received("basic.consume")) == reopen + 1


async def test_a_channel_that_has_lasted_begins_anew(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(reopen=1)
        async with channel.consume("q"):
            for count in range(1, 4):
                [*asked] = await world.broker.got("basic.consume", count)
                channel._opened_at -= 2  # seconds
                asked[-1].close_channel(406)
            await world.broker.got("basic.consume", 4)
        assert client.stats().reopened == 3


@pytest.mark.parametrize("how", ["channel", "client", "connection"])
async def test_what_ends_while_a_channel_waits_to_be_opened_again(world: World, how: str) -> None:
    async with world.client() as client:
        channel = await client.channel(reopen=1)
        channel._opened_at, channel._waits = float("inf"), iter((60.0,))  # however long this takes
        await asyncio.gather(*published(channel, 1))
        world.broker.received("basic.publish")[0].close_channel(406)
        while channel._link is not None:
            await asyncio.sleep(0)
        waiting = published(channel, 1)
        await asyncio.sleep(0)
        if how == "channel":
            await channel.close(0)
        elif how == "client":
            await client.close(0)
        else:
            world.broker.peers[0].abort()
        ended = {"channel": "LocalProtocolError", "client": "ConnectionLostError", "connection": "ok"}
        assert await outcomes(*waiting) == [ended[how]]
        assert client.stats().reopened == 0


@pytest.mark.parametrize("reopen", [-1, 1.5, None])
async def test_a_number_of_times_is_one(world: World, reopen: Any) -> None:
    async with world.client() as client:
        with pytest.raises(ValueError, match="reopen must be a number from 0"):
            await client.channel(reopen=reopen)
