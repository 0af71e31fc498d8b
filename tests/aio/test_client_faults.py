"""Faults of the client itself: whatever they are, nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.scripted_broker import hold
from world import World, cut, outcomes, published

from amqpcodec.aio import Channel, Client
from amqpcodec.aio.link import Link


async def everybody(world: World, client: Client) -> list[asyncio.Future[Any]]:
    """Have somebody wait for each thing that can be waited for."""
    for name in ("basic.publish", "queue.declare", "basic.get"):
        world.broker.on(name, hold)
    channel, other = await client.channel(window=1), await client.channel(window=1)
    consumer = await channel.consume("q").__aenter__()
    waiting = [
        *published(channel, 2),
        asyncio.ensure_future(channel.publish_soon(b"")),
        asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
        asyncio.ensure_future(client.call(world.amqp.Queue.Declare("q"))),
        asyncio.ensure_future(channel.get("q")),
        asyncio.ensure_future(anext(consumer)),
        *published(other, 2),
    ]
    await world.broker.got("basic.publish", 2)
    await world.broker.got("queue.declare", 2)
    await world.broker.got("basic.get")
    return waiting


FAULTS = {
    "_on_message": lambda world: world.broker.received("basic.consume")[0].deliver(b"1"),
    "_on_settled": lambda world: world.broker.received("basic.publish")[0].ack(),
    "_on_reply": lambda world: world.broker.received("queue.declare")[0].answer(),
    "_on_cancel": lambda world: world.broker.received("basic.consume")[0].cancel_consumer(),
    "_fail": lambda world: world.broker.received("basic.consume")[0].close_channel(404),
    "_lost": lambda world: world.broker.peers[0].abort(),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_in_what_takes_events_is_raised_to_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with world.client() as client:
        waiting = await everybody(world, client)
        kept = getattr(Channel, name)

        def fail(self: Channel, *given: Any) -> None:
            monkeypatch.setattr(Channel, name, kept)
            raise ZeroDivisionError(name)

        monkeypatch.setattr(Channel, name, fail)
        FAULTS[name](world)
        assert await outcomes(*waiting) == ["ZeroDivisionError"] * 9
        with pytest.raises(ZeroDivisionError):
            await client.channel()
        await world.broker.peers[0].ended.wait()
    assert len(world.broker.peers) == 1


@pytest.mark.parametrize("name", ["_open", "_resume"])
async def test_a_fault_as_a_channel_comes_back_is_raised_to_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with world.client() as client:
        channel = await client.channel(window=1)

        def fail(self: Channel, *given: Any) -> None:
            raise ZeroDivisionError(name)

        monkeypatch.setattr(Channel, name, fail)
        await cut(client, world.broker.peers[0])
        waiting = [
            *published(channel, 2),
            asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
            asyncio.ensure_future(client.channel()),
        ]
        assert await outcomes(*waiting) == ["ZeroDivisionError"] * 4


async def test_a_fault_as_the_transport_takes_more_is_raised_to_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.client() as client:
        channel = await client.channel(window=1000)
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].stop_reading()
        sent = [asyncio.ensure_future(channel.publish(bytes(100_000))) for _ in range(100)]
        await asyncio.wait(sent, timeout=0.02)

        kept = Link.resume_writing

        def fail(self: Link) -> None:
            monkeypatch.setattr(Link, "resume_writing", kept)
            raise ZeroDivisionError

        monkeypatch.setattr(Link, "resume_writing", fail)
        world.broker.peers[0].read_again()
        done, _ = await asyncio.wait(sent, timeout=5)
        assert len(done) == 100
        assert "ZeroDivisionError" in await outcomes(*sent)
        with pytest.raises(ZeroDivisionError):
            await client.channel()
