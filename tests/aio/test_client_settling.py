"""Settling deliveries amid transactions and basic.recover, and from threads: nothing is taken along."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from support.scripted_broker import Received, deliver, hold
from world import World, outcomes

from amqpcodec.aio import AlreadySettledError, Channel, Client, Consumer
from amqpcodec.errors import LocalProtocolError


def acknowledged(world: World) -> list[tuple[int, ...]]:
    """Return what each basic.ack has settled at the broker."""
    return [each.tags for each in world.broker.received("basic.ack")]


# -- transactions


async def test_what_was_settled_in_a_transaction_is_open_again_after_its_rollback(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3", b"4"))
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        await channel.call(world.amqp.Tx.Select())
        async with channel.consume("q") as deliveries:
            four = [await anext(deliveries) for _ in range(4)]
            assert four[0].ack()
            assert four[1].nack()
            await channel.call(world.amqp.Tx.Rollback())
            assert four[2].ack()
            assert four[3].ack()
            await channel.call(world.amqp.Tx.Commit())
            assert acknowledged(world) == [(1,), (3,), (4,)]  # by no "multiple" that takes 1 and 2 along
            assert four[0].ack()
            assert four[1].reject()
            await channel.call(world.amqp.Tx.Commit())
            await channel.call(world.amqp.Tx.Rollback())  # of nothing
            for delivery in four:
                with pytest.raises(AlreadySettledError):
                    delivery.ack()
    assert acknowledged(world)[3:] == [(1,)]


async def test_a_transaction_ends_where_the_broker_has_its_end(world: World) -> None:
    """A delivery settled after tx.rollback is of the next one, though tx.rollback-ok has not come."""
    for name in ("tx.select", "tx.rollback"):
        world.broker.on(name, hold)
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    amqp = world.amqp
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        async with channel.consume("q") as deliveries:
            three = [await anext(deliveries) for _ in range(3)]
            waiting = [channel._request(amqp.Tx.Select())]
            three[0].ack()
            waiting.append(channel._request(amqp.Tx.Select()))  # which begins no other
            waiting.append(channel._request(amqp.Tx.Rollback()))
            three[1].ack()
            three[2].ack()
            await world.broker.got("basic.ack", 3)
            for name in ("tx.select", "tx.rollback"):
                for received in world.broker.received(name):
                    received.answer()
            assert await outcomes(*waiting) == ["ok"] * 3
            assert three[0].ack()
            with pytest.raises(AlreadySettledError):
                three[1].ack()
    assert acknowledged(world) == [(1,), (2,), (3,), (1,)]


async def test_a_rollback_opens_what_was_settled_before_recovering(world: World) -> None:
    """Its delivery is stale by then, and it comes again with the end of the channel."""
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    world.broker.on(
        "basic.recover", lambda received: (received.answer(), consume.deliver(b"2", b"3", redelivered=True))
    )
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        await channel.call(world.amqp.Tx.Select())
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            first = await anext(deliveries)
            assert first.ack()
            await channel.call(world.amqp.Basic.Recover(requeue=True))
            await channel.call(world.amqp.Tx.Rollback())
            assert all([(await anext(deliveries)).ack() for _ in range(2)])
            await channel.call(world.amqp.Tx.Commit())
            assert first.ack() is False
    assert acknowledged(world) == [(1,), (3,), (4,)]  # by no "multiple" that takes 1 along


# -- basic.recover


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


async def test_what_is_settled_before_the_answer_to_recover_is_late(world: World) -> None:
    """The broker takes back what it has delivered until it reads basic.recover: to settle that is 406."""

    def recover(received: Received) -> None:
        consume.deliver(b"crossing")

    world.broker.on("basic.consume", deliver(b"1", b"2"))
    world.broker.on("basic.recover", recover)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            first, second = await anext(deliveries), await anext(deliveries)
            assert first.ack()  # in the turn before
            waiting = [channel._request(world.amqp.Basic.Recover(requeue=True)) for _ in range(2)]
            assert second.ack() is False
            crossing = await anext(deliveries)
            assert crossing.ack() is False
            [one, two] = await world.broker.got("basic.recover", 2)
            one.answer()
            consume.deliver(b"crossing the second")
            await waiting[0]
            assert (await anext(deliveries)).nack() is False
            two.answer()
            consume.deliver(b"2", redelivered=True)
            await waiting[1]
            last = await anext(deliveries)
            assert last.body == b"2"
            assert last.ack()
            await world.broker.got("basic.ack", 2)
    assert acknowledged(world) == [(1,), (last.method.delivery_tag,)]
    assert world.broker.received("basic.nack") == []


# -- threads


@pytest.mark.parametrize("how", ["ack", "nack", "reject"])
async def test_a_thread_that_settles_is_told_how_and_the_delivery_stays_open(world: World, how: str) -> None:
    """Nothing would wake the event loop to send what the thread has settled."""
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            settle = getattr(await anext(deliveries), how)
            with pytest.raises(LocalProtocolError, match=r"use loop\.call_soon_threadsafe\(delivery\.ack\)"):
                await asyncio.to_thread(settle)
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(partial(loop.call_soon_threadsafe, settle))
            await world.broker.got(f"basic.{how}")
            with pytest.raises(AlreadySettledError):
                settle()


Use = Callable[[Client, Channel, Consumer], Awaitable[object]]
USES: dict[str, Use] = {
    "publish": lambda client, channel, consumer: channel.publish(b""),
    "publish_soon": lambda client, channel, consumer: channel.publish_soon(b""),
    "a call of the client": lambda client, channel, consumer: client.call(client._dialect.Queue.Declare("q")),
    "a call of a channel": lambda client, channel, consumer: channel.call(client._dialect.Queue.Declare("q")),
    "get": lambda client, channel, consumer: channel.get("q"),
    "another channel": lambda client, channel, consumer: client.channel(),
    "another consumer": lambda client, channel, consumer: channel.consume("q").__aenter__(),
    "the next delivery": lambda client, channel, consumer: anext(consumer),
    "closing the channel": lambda client, channel, consumer: channel.close(),
    "closing the client": lambda client, channel, consumer: client.close(),
}


@pytest.mark.parametrize("use", USES)
async def test_a_client_on_the_loop_of_another_thread_is_refused_before_it_does_anything(
    world: World, use: str
) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            before = len(world.broker.log)

            async def refused() -> None:
                with pytest.raises(LocalProtocolError, match=r"use asyncio\.run_coroutine_threadsafe"):
                    await USES[use](client, channel, deliveries)

            await asyncio.to_thread(asyncio.run, refused())
            await client.call(world.amqp.Exchange.Declare("e"))
            names = [each.name for each in world.broker.log[before:] if each.name != "channel.open"]
            assert names == ["exchange.declare"]
        assert client.stats().published == 0


async def test_a_thread_publishes_on_the_loop_of_the_client(world: World) -> None:
    def work(loop: asyncio.AbstractEventLoop, channel: Channel) -> Any:
        return asyncio.run_coroutine_threadsafe(channel.publish(b"1"), loop).result(10)

    async with world.client() as client:
        channel = await client.channel()
        await asyncio.to_thread(work, asyncio.get_running_loop(), channel)
        assert (world.broker.bodies(), client.stats().confirmed) == ([b"1"], 1)
