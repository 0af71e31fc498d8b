"""Reasons that hold publishers back: channel.flow, connection.blocked, and a broker that does not read.

Calls and acknowledgements go on meanwhile, and nobody's message is lost.
"""

from __future__ import annotations

import asyncio
import logging

import pytest
from support.scripted_broker import Received, deliver, hold
from world import World, cut, numbers, outcomes, published

from amqpcodec.aio import Channel, Client, link
from amqpcodec.connection import ConnectionLimits, Unblocked

SEND_BUFFER = 2000


async def test_blocked_publishers_wait_while_other_channels_call(world: World) -> None:
    def react(received: Received) -> None:
        received.ack()
        if received.number == 50:
            received.peer.block()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        channel, other = await client.channel(window=20), await client.channel()
        sent = published(channel, 200)
        await world.broker.got("basic.publish", 50)
        for caller in (other, client, channel):
            await caller.call(world.amqp.Queue.Declare("q"))
        held = len(world.broker.bodies())
        assert 50 <= held <= 70
        await channel.call(world.amqp.Queue.Declare("q"))
        assert len(world.broker.bodies()) == held
        assert sum(task.done() for task in sent) == held
        world.broker.peers[0].unblock()
        await asyncio.gather(*sent)
    assert numbers(world.broker.bodies()) == [*range(1, 201)]


async def test_the_log_says_once_that_messages_are_held_back_and_once_that_they_are_not(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "amqpcodec")
    async with world.client() as client:
        await client.call(world.amqp.Queue.Purge("q"))
        for _ in range(2):
            for _ in range(50):
                world.broker.peers[0].block("memory")
            for _ in range(50):
                world.broker.peers[0].unblock()
        await client.call(world.amqp.Queue.Purge("q"))
    blocked, unblocked = "the broker takes no messages for now: memory", "the broker takes messages again"
    assert [record.getMessage() for record in caplog.records][1:] == [blocked, unblocked] * 2


async def test_a_broker_that_blocks_for_long_takes_all_in_the_end(world: World) -> None:
    async with world.client() as client:
        channels = [await client.channel(window=4) for _ in range(3)]
        await channels[0].call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].block("memory")
        while not client._link.is_blocked:
            await asyncio.sleep(0)
        sent = [task for channel in channels for task in published(channel, 10)]
        deferred = [asyncio.ensure_future(channel.publish_soon(b"11")) for channel in channels]
        done, _ = await asyncio.wait((*sent, *deferred), timeout=0.05)
        assert not done
        sent[3].cancel()
        sent[13].cancel()
        world.broker.peers[0].unblock()
        ends = await outcomes(*sent)
        await asyncio.gather(*[await task for task in deferred])
        stats = client.stats()
    assert ends.count("ok") == 28
    assert (stats.withdrawn, stats.abandoned, stats.confirmed) == (2, 0, 31)


async def test_acknowledgements_go_out_while_blocked(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        world.broker.peers[0].block()
        async with channel.consume("q") as deliveries:
            (await anext(deliveries)).ack()
            await world.broker.got("basic.ack")


async def test_a_new_connection_is_not_blocked(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].block()
        await channel.call(world.amqp.Queue.Declare("q"))
        [sent] = published(channel, 1)
        await cut(client, world.broker.peers[0])
        await sent
    assert world.broker.bodies(connection=1) == []


async def test_flow_stops_a_channel_and_lets_it_go_on(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel, other = await client.channel(), await client.channel()
        [first] = published(channel, 1)
        [came] = await world.broker.got("basic.publish")
        came.flow(False)
        [ok] = await world.broker.got("channel.flow-ok")
        assert ok.method.active is False
        world.broker.on("basic.publish", Received.ack)
        came.ack()
        await first
        sent = published(channel, 10)
        await asyncio.gather(*published(other, 5))
        await channel.call(world.amqp.Queue.Declare("q"))
        assert len(world.broker.bodies()) == 6
        assert not any(task.done() for task in sent)
        came.flow(True)
        await asyncio.gather(*sent)
    assert numbers(world.broker.bodies())[6:] == [*range(1, 11)]


async def test_flow_that_stops_a_channel_amid_confirms_loses_nothing(world: World) -> None:
    def react(received: Received) -> None:
        received.ack()
        if received.number % 10 == 0:
            received.flow(False)
            received.flow(True)

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        await asyncio.gather(*published(await client.channel(window=7), 100))
    assert numbers(world.broker.bodies()) == [*range(1, 101)]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_flow_while_the_program_sets_up_holds_afterwards(world: World, goes_on: bool) -> None:
    """The channels are opened again before on_connect: the broker may stop one already."""

    async def declare(client: Client) -> None:
        if len(world.broker.peers) == 2:
            [opened] = await world.broker.got("channel.open", 1, connection=2)
            opened.flow(False)
            await world.broker.got("channel.flow-ok")
            if goes_on:
                opened.flow(True)
                await world.broker.got("channel.flow-ok", 2)

    async with world.client(on_connect=declare) as client:
        channel = await client.channel()
        await cut(client, world.broker.peers[0])
        sent = published(channel, 3)
        await client.call(world.amqp.Queue.Declare("q"))
        assert client.stats().connections == 2
        if not goes_on:
            assert not any(task.done() for task in sent)
            world.broker.received("channel.open", connection=2)[0].flow(True)
        assert await outcomes(*sent) == ["ok"] * 3


async def test_flow_ends_with_its_connection(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        [opened] = await world.broker.got("channel.open")
        opened.flow(False)
        await world.broker.got("channel.flow-ok")
        sent = published(channel, 3)
        await cut(client, world.broker.peers[0])
        assert await outcomes(*sent) == ["ok"] * 3


@pytest.mark.parametrize("window", [1, 1000])
async def test_what_a_broker_does_not_read_stays_small_and_is_published_once_it_reads(
    world: World, window: int
) -> None:
    body = bytes(100_000)
    async with world.client() as client:
        channel = await client.channel(window=window)
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].stop_reading()
        sent = [asyncio.ensure_future(channel.publish(body)) for _ in range(300)]
        await asyncio.wait(sent, timeout=0.05)
        transport = client._link.stream._transport
        queued = transport.get_write_buffer_size() + client._link.connection.bytes_to_send
        assert queued < 4 * link.OUT_BYTES + len(body)
        assert client.stats().published < 300
        world.broker.peers[0].read_again()
        assert await outcomes(*sent) == ["ok"] * 300


async def test_publishers_wait_for_a_small_send_buffer(world: World) -> None:
    limits = ConnectionLimits(send_buffer=10_000)
    async with world.client(connection_limits=limits) as client:
        channel = await client.channel()
        sent = [asyncio.ensure_future(channel.publish(bytes(4000))) for _ in range(50)]
        assert await outcomes(*sent) == ["ok"] * 50


async def test_a_broker_that_does_not_read_acknowledgements_is_left(world: World) -> None:
    """They cannot wait without end; the deliveries come again by the next connection."""
    world.broker.on("basic.consume", deliver(*[b""] * 2000))
    limits = ConnectionLimits(send_buffer=2000)
    async with world.client(connection_limits=limits) as client:
        channel = await client.channel(confirm=False)
        async with channel.consume("q") as deliveries:
            taken = [await anext(deliveries) for _ in range(2000)]
            client._link.stream.pause_writing()  # as the transport does where the peer does not read
            for delivery in taken[::2]:  # none of them together
                assert delivery.ack()
            await world.broker.connected(2)
            again = [await anext(deliveries) for _ in range(2000)]
            for delivery in again:
                delivery.ack()
            await world.broker.got("basic.ack", 1, connection=2)
    assert client.stats().connections == 2


def fill(channel: Channel) -> None:
    """Have so much wait for a broker that does not read that nothing more can be sent."""
    stream = channel._link.stream  # type: ignore[union-attr]
    stream.pause_writing()  # as the transport does
    while stream.connection.bytes_to_send < SEND_BUFFER:
        stream.connection.send(channel._number, stream.connection.dialect.Basic.Qos(prefetch_count=5))


@pytest.mark.parametrize("acknowledges", [True, False])
@pytest.mark.parametrize("leaves", ["consumer", "channel"])
async def test_a_broker_that_does_not_read_that_something_is_left_is_left_itself(
    world: World, leaves: str, acknowledges: bool
) -> None:
    """Else it would deliver without end to a consumer of which no one reads."""
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    async with world.client(connection_limits=ConnectionLimits(send_buffer=SEND_BUFFER)) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            first = await anext(deliveries)
            fill(channel)
            if acknowledges:
                assert first.ack()
            if leaves == "channel":
                await channel.close()
        await world.broker.connected(2)
        await client.call(world.amqp.Queue.Declare("q"))
    assert [each.connection for each in world.broker.received("basic.consume")] == [1]


async def test_publishers_of_a_broker_that_does_not_read_can_be_cancelled(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(window=1000)
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].stop_reading()
        sent = [asyncio.ensure_future(channel.publish(bytes(100_000))) for _ in range(300)]
        await asyncio.wait(sent, timeout=0.02)
        for task in sent:
            task.cancel()
        assert await outcomes(*sent) == ["CancelledError"] * 300
        stats = client.stats()
        assert stats.abandoned == stats.published
        assert stats.abandoned + stats.withdrawn == 300
        world.broker.peers[0].read_again()
        await channel.publish(b"after all")


async def test_channels_that_wait_for_the_transport_take_turns(world: World) -> None:
    async with world.client() as client:
        channels = [await client.channel(window=100) for _ in range(3)]
        await channels[0].call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].stop_reading()
        sent = [
            asyncio.ensure_future(channel.publish(bytes(50_000))) for channel in channels for _ in range(100)
        ]
        await asyncio.wait(sent, timeout=0.02)
        world.broker.peers[0].read_again()
        assert await outcomes(*sent) == ["ok"] * 300


# -- the window, and those who give up


async def test_the_window_is_whole_after_half_of_those_who_wait_are_cancelled(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=8)
        sent = published(channel, 40)
        came = await world.broker.got("basic.publish", 8)
        for task in sent[::2]:
            task.cancel()
        await asyncio.wait(sent[::2])
        world.broker.on("basic.publish", Received.ack)
        came[-1].ack(multiple=True)
        assert await outcomes(*sent) == ["CancelledError", "ok"] * 20
        stats = client.stats()
        assert (stats.abandoned, stats.withdrawn, stats.confirmed) == (4, 16, 24)
        world.broker.on("basic.publish", hold)
        sent = published(channel, 20)
        came = await world.broker.got("basic.publish", 24 + 8)
        await client.call(world.amqp.Queue.Declare("q"))
        assert len(world.broker.bodies()) == 24 + 8  # neither more nor less than the window
        world.broker.on("basic.publish", Received.ack)
        came[-1].ack(multiple=True)
        await asyncio.gather(*sent)


async def test_those_who_wait_for_room_give_it_on_if_they_are_cancelled(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=1)
        await channel.publish_soon(b"1")
        waiting = [asyncio.ensure_future(channel.publish_soon(b"%d" % number)) for number in range(2, 6)]
        [came] = await world.broker.got("basic.publish")
        came.ack()
        while client.stats().confirmed == 0:
            await asyncio.sleep(0)
        waiting[0].cancel()  # it was about to publish
        waiting[2].cancel()
        world.broker.on("basic.publish", Received.ack)
        for task in (waiting[1], waiting[3]):
            await (await task)
    assert numbers(world.broker.bodies()) == [1, 3, 5]


async def test_a_publish_that_is_cancelled_says_whether_it_was_written(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = published(await client.channel(window=1), 2)
        await world.broker.got("basic.publish")
        texts = []
        for task in sent:
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                texts.append(str(error))
        stats = client.stats()
        world.broker.received("basic.publish")[0].ack()
    assert "the broker may have it" in texts[0]
    assert texts[1] == "it was not sent, and never will be"
    assert (stats.abandoned, stats.withdrawn) == (1, 1)


async def test_without_confirms_all_who_wait_for_room_go_on_once_it_is_there(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(confirm=False, window=1)
        await hold_back(client, world)
        first = await channel.publish_soon(b"", routing_key="x" * 300)
        waiting = [asyncio.create_task(channel.publish_soon(b"")) for _ in range(4)]
        await asyncio.sleep(0)
        world.broker.peers[0].unblock()
        assert await outcomes(first, *waiting) == ["EncodeError"] + ["ok"] * 4


async def test_a_message_that_cannot_be_encoded_gives_its_room_on(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=1)
        first = await channel.publish_soon(b"1")
        wrong = asyncio.create_task(channel.publish_soon(b"2", routing_key="x" * 300))
        right = asyncio.create_task(channel.publish_soon(b"3"))
        [received] = await world.broker.got("basic.publish")
        world.broker.on("basic.publish", Received.answer)
        received.ack()
        assert await outcomes(first, wrong, right, await right) == ["ok", "EncodeError", "ok", "ok"]


async def test_messages_that_are_withdrawn_make_room_at_once(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(window=2)
        await hold_back(client, world)
        queued = published(channel, 2)
        await asyncio.sleep(0)
        waiting = asyncio.create_task(channel.publish_soon(b"3"))
        await asyncio.sleep(0)
        for task in queued:
            task.cancel()
        assert not (await waiting).done()
        world.broker.peers[0].unblock()
        assert await outcomes(waiting.result(), *queued) == ["ok", "CancelledError", "CancelledError"]


async def test_without_confirms_too_a_cancelled_publish_says_whether_it_was_written(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        link = await hold_back(client, world)
        [task] = published(channel, 1)
        await asyncio.sleep(0)
        link.event_received(Unblocked())  # which writes the message, in the turn in which it is cancelled
        task.cancel()
        with pytest.raises(asyncio.CancelledError, match="the broker may have it"):
            await task
        assert (client.stats().abandoned, client.stats().withdrawn) == (1, 0)
        await world.broker.got("basic.publish")


async def hold_back(client: Client, world: World) -> link.Link:
    """Have the broker block a client, and wait until it is."""
    connection = client._link
    assert connection is not None
    world.broker.peers[0].block()
    while not connection.is_blocked:
        await asyncio.sleep(0.001)
    return connection
