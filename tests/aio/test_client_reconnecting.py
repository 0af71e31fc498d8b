"""Coming back: what was not confirmed is published again, consumers go on, and `on_connect` sets all up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from support.scripted_broker import CONNECT, Peer, Received, close_channel, deliver, hold
from world import World, cut, numbers, outcomes, published

from amqpcodec.aio import Backoff, Client
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import (
    AmqpAccessRefused,
    AmqpConnectionForced,
    AmqpNotFound,
    AmqpResourceLocked,
)

CUTS = {
    "forced": Peer.close,
    "internal error": lambda peer: peer.close(541, "INTERNAL_ERROR"),
    "cut": Peer.abort,
}


@pytest.mark.parametrize("end", CUTS)
async def test_exactly_what_was_not_confirmed_is_published_again_in_order(world: World, end: str) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        channel = await client.channel(window=64)
        sent = published(channel, 100)
        came = await world.broker.got("basic.publish", 64)
        came[19].ack(multiple=True)
        came[24].ack()
        await asyncio.wait(sent[:20])
        await sent[24]
        CUTS[end](came[0].peer)
        assert await outcomes(*sent) == ["ok"] * 100
        stats = client.stats()
    written = len(world.broker.bodies(connection=1))
    assert written >= 64
    assert numbers(world.broker.bodies(connection=2)) == [
        number for number in range(1, 101) if number > 20 and number != 25
    ]
    assert (stats.connections, stats.confirmed, stats.republished) == (2, 100, stats.published - 100)


async def test_acks_that_come_just_before_the_end_count(world: World) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        sent = published(await client.channel(), 10)
        came = await world.broker.got("basic.publish", 10)
        came[6].ack(multiple=True)
        came[0].peer.close()
        await asyncio.gather(*sent)
    assert numbers(world.broker.bodies(connection=2)) == [8, 9, 10]


async def test_cancelled_messages_are_not_published_again(world: World) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        sent = published(await client.channel(window=4), 10)
        came = await world.broker.got("basic.publish", 4)
        for number in (2, 6):
            sent[number - 1].cancel()
        await asyncio.sleep(0)
        came[0].peer.abort()
        ends = await outcomes(*sent)
        stats = client.stats()
    assert [number for number, end in enumerate(ends, 1) if end == "CancelledError"] == [2, 6]
    assert numbers(world.broker.bodies(connection=2)) == [1, 3, 4, 5, 7, 8, 9, 10]
    assert (stats.abandoned, stats.withdrawn, stats.republished) == (1, 1, 3)
    with pytest.raises(asyncio.CancelledError, match="the broker may have it"):
        sent[1].result()
    assert caught_text(sent[5]) == "it was not sent, and never will be"


def caught_text(task: asyncio.Task[None]) -> str:
    try:
        task.result()
    except asyncio.CancelledError as error:
        return str(error)
    return "not cancelled"


async def test_what_was_written_on_a_lost_connection_may_be_there_if_it_is_cancelled(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        [sent] = published(await client.channel(), 1)
        [came] = await world.broker.got("basic.publish")
        world.broker.on(CONNECT, Peer.abort)
        came.peer.abort()
        await world.broker.connected(2)
        sent.cancel()
        with pytest.raises(asyncio.CancelledError, match="the broker may have it"):
            await sent
        assert client.stats().abandoned == 1
        world.broker.on(CONNECT, lambda peer: None)


async def test_a_returned_message_is_not_published_again(world: World) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        sent = published(await client.channel(), 3)
        came = await world.broker.got("basic.publish", 3)
        came[1].send_back()
        came[0].peer.close()
        assert await outcomes(*sent) == ["ok", "ReturnedError", "ok"]
    assert numbers(world.broker.bodies(connection=2)) == [1, 3]


async def test_without_republishing_what_was_written_raises_and_the_rest_is_published(world: World) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        sent = published(await client.channel(window=4, republish=False), 6)
        came = await world.broker.got("basic.publish", 4)
        came[0].peer.close(320, "CONNECTION_FORCED - maintenance")
        assert await outcomes(*sent) == ["ConnectionLostError"] * 4 + ["ok"] * 2
        with pytest.raises(ConnectionLostError, match="maintenance"):
            sent[0].result()
        stats = client.stats()
    assert numbers(world.broker.bodies(connection=2)) == [5, 6]
    assert (stats.republished, stats.unconfirmed, stats.confirmed) == (0, 4, 2)


async def test_nothing_is_lost_in_repeated_cuts_and_first_occurrences_keep_their_order(world: World) -> None:
    cuts = 10

    def react(received: Received) -> None:
        received.ack()
        if received.number == 30 and received.connection <= cuts:
            received.peer.abort()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        channel = await client.channel(window=16)
        confirmed = [await channel.publish_soon(b"%d" % number) for number in range(500)]
        await asyncio.gather(*confirmed)
        stats = client.stats()
    first = list(dict.fromkeys(numbers(world.broker.bodies())))
    assert first == [*range(500)]
    assert stats.connections == cuts + 1
    assert stats.published - 500 == stats.republished > 0
    assert stats.confirmed == 500


async def test_a_call_in_flight_raises_and_later_ones_wait_for_the_next_connection(world: World) -> None:
    world.broker.on("queue.declare", lambda received: received.peer.close(), connection=1)
    async with world.client() as client:
        channel = await client.channel()
        for caller in (channel, client):
            with pytest.raises(ConnectionLostError, match="CONNECTION_FORCED") as caught:
                await caller.call(world.amqp.Queue.Declare("q"))
            assert isinstance(caught.value.__cause__, AmqpConnectionForced)
            world.broker.on("queue.declare", lambda received: received.peer.close(), connection=2)
        assert (await channel.call(world.amqp.Queue.Declare("q"))).queue == "q"
        assert client.stats().connections == 3


async def test_calls_wait_within_their_time_while_there_is_no_connection(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        world.broker.stop_listening()
        await cut(client, world.broker.peers[0])
        for call in (
            channel.call(world.amqp.Queue.Declare("q"), timeout=0.02),
            client.call(world.amqp.Queue.Declare("q"), timeout=0.02),
            channel.get("q", timeout=0.02),
        ):
            with pytest.raises(TimeoutError, match="no answer to"):
                await call
        waiting = [
            asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
            asyncio.ensure_future(client.channel()),
            asyncio.ensure_future(channel.publish(b"")),
            asyncio.ensure_future(channel.consume("q").__aenter__()),
        ]
        world.broker.listen()
        assert await outcomes(*waiting) == ["ok"] * 4


async def test_consumers_go_on_and_what_was_delivered_before_is_stale(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    async with world.client() as client:
        channel = await client.channel(prefetch=10)
        async with channel.consume("q", consumer_tag="t") as deliveries:
            old = await anext(deliveries)
            world.broker.peers[0].abort()
            [_, again] = await world.broker.got("basic.consume", 2)
            while client.stats().delivered < 6:
                await asyncio.sleep(0)
            assert (old.ack(), old.nack(), old.reject()) == (False, False, False)
            new = [await anext(deliveries) for _ in range(3)]
            assert [delivery.body for delivery in new] == [b"1", b"2", b"3"]
            assert all(delivery.ack() for delivery in new)
            [ack] = await world.broker.got("basic.ack")
        stats = client.stats()
    assert (again.method.consumer_tag, again.method.queue) == ("t", "q")
    assert (ack.connection, ack.tags) == (2, (1, 2, 3))
    assert (stats.stale, stats.acknowledged, stats.delivered, stats.connections) == (3, 3, 6, 2)
    assert [each.connection for each in world.broker.received("basic.qos")] == [1, 2]


async def test_acknowledgements_that_were_not_written_when_the_connection_ended_are_counted(
    world: World,
) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2"), connection=1)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            first, second = await anext(deliveries), await anext(deliveries)
            client._link.stream._transport.abort()
            first.ack()
            client._link.stream.connection_lost(None)
            assert second.ack() is False
            await world.broker.got("basic.consume", 2)
        stats = client.stats()
    assert (stats.acknowledged, stats.stale) == (0, 2)


async def test_a_broken_connection_wakes_nobody_who_iterates(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            waiting = asyncio.ensure_future(anext(deliveries))
            await world.broker.got("basic.consume")
            world.broker.peers[0].abort()
            [_, consume] = await world.broker.got("basic.consume", 2)
            assert not waiting.done()
            consume.deliver(b"after all")
            assert (await waiting).body == b"after all"


async def test_a_consumer_that_was_left_meanwhile_does_not_come_back(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q"):
            world.broker.stop_listening()
            await cut(client, world.broker.peers[0])
        world.broker.listen()
        await channel.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("basic.consume")) == 1


async def test_a_consumer_that_was_left_while_the_program_sets_up_does_not_come_back(world: World) -> None:
    go = asyncio.Event()

    async def wait(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))
        if len(world.broker.peers) > 1:
            await go.wait()

    async with world.client(on_connect=wait) as client:
        channel = await client.channel()
        consumer = await channel.consume("q").__aenter__()
        await cut(client, world.broker.peers[0])
        await world.broker.got("queue.declare", 1, connection=2)
        leaving = asyncio.ensure_future(consumer.__aexit__(None, None, None))
        await asyncio.sleep(0)
        go.set()
        await leaving
        await channel.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("basic.consume")) == 1


async def test_a_consumer_that_is_refused_on_the_next_connection_raises(world: World) -> None:
    """Its queue was deleted with the old one."""
    world.broker.on("basic.consume", close_channel(404), connection=2)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            world.broker.peers[0].abort()
            with pytest.raises(AmqpNotFound):
                await anext(deliveries)
        await client.call(world.amqp.Queue.Declare("q"))


async def test_a_consumer_that_begins_as_the_connection_ends_is_there_on_the_next(world: World) -> None:
    world.broker.on("basic.consume", lambda received: received.peer.abort(), connection=1)
    world.broker.on("basic.consume", deliver(b"1"), connection=2)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            assert (await anext(deliveries)).body == b"1"


# -- an exclusive consumer whose queue the broker keeps for the connection before

HELD = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
NO_RIGHT = "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'guest'"


def refused(times: int, text: str = HELD) -> Callable[[Received], None]:
    """Refuse a consumer so often as RabbitMQ does, and begin it then."""
    left = times

    def react(received: Received) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            received.close_channel(403, text)
        else:
            received.answer()
            received.deliver(b"1")

    return react


async def test_an_exclusive_consumer_waits_for_the_broker_to_miss_the_connection_before(world: World) -> None:
    """Its channel is opened again until then, and others go on."""
    async with world.client() as client:
        channel, other = await client.channel(), await client.channel()
        async with channel.consume("q", exclusive=True) as deliveries:
            world.broker.on("basic.consume", refused(3))
            world.broker.on("basic.publish", hold, connection=1)
            [sent] = published(channel, 1)
            await world.broker.got("basic.publish")
            world.broker.peers[0].abort()
            await world.broker.got("basic.consume", 2)
            waiting = [
                asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
                asyncio.ensure_future(channel.publish(b"2")),
                asyncio.ensure_future(other.publish(b"3")),
            ]
            assert (await anext(deliveries)).body == b"1"
            assert await outcomes(sent, *waiting) == ["ok"] * 4
        assert client.stats().connections == 2
    assert len(world.broker.received("basic.consume")) == 5


@pytest.mark.parametrize(
    ("text", "asked"), [(HELD, 4), (NO_RIGHT, 2), (NO_RIGHT.replace("'q'", "'in exclusive use'"), 2)]
)
async def test_an_exclusive_consumer_raises_where_it_may_not_consume_or_not_soon(
    world: World, text: str, asked: int
) -> None:
    async with world.client(backoff=Backoff(first=0.01, attempts=3)) as client:
        channel = await client.channel()
        async with channel.consume("q", exclusive=True) as deliveries:
            world.broker.on("basic.consume", refused(9, text))
            world.broker.peers[0].abort()
            with pytest.raises(AmqpAccessRefused):
                await anext(deliveries)
        await client.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("basic.consume")) == asked
    assert len(world.broker.peers) == 2


async def test_a_consumer_that_is_refused_at_first_raises_at_once(world: World) -> None:
    world.broker.on("basic.consume", refused(1))
    async with world.client() as client:
        with pytest.raises(AmqpAccessRefused):
            await (await client.channel()).consume("q", exclusive=True).__aenter__()
    assert len(world.broker.received("basic.consume")) == 1


async def test_a_channel_that_is_opened_again_later_may_be_closed_or_lost_before(world: World) -> None:
    async with world.client(backoff=Backoff(first=0.02)) as client:
        channels = [await client.channel() for _ in range(2)]
        consumers = [await each.consume("q", exclusive=True).__aenter__() for each in channels]
        world.broker.on("basic.consume", refused(2))
        world.broker.peers[0].abort()
        for consumer in consumers:
            assert (await anext(consumer)).body == b"1"
        world.broker.on("basic.consume", refused(2))
        world.broker.peers[1].abort()
        await world.broker.got("basic.consume", 8)
        while channels[0]._link is not None:
            await asyncio.sleep(0)
        await channels[0].close()
        world.broker.peers[2].abort()
        assert (await anext(consumers[1])).body == b"1"
        await asyncio.sleep(0.03)  # the times at which they were to be opened pass
    assert len(world.broker.received("channel.open", connection=4)) == 1


async def test_a_setup_that_consumes_exclusively_is_tried_again(world: World) -> None:
    async def consume(client: Client) -> None:
        async with await client.channel() as channel, channel.consume("q", exclusive=True) as deliveries:
            await anext(deliveries)

    world.broker.on("basic.consume", refused(2))
    async with world.client(on_connect=consume):
        assert len(world.broker.peers) == 3


# -- when to give up


def refuse_all(world: World) -> Callable[[], None]:
    world.broker.on(CONNECT, Peer.abort)
    return lambda: world.broker.on(CONNECT, lambda peer: None)


async def test_attempts_are_counted_in_a_row_and_the_last_error_is_raised(world: World) -> None:
    three = Backoff(first=0.001, most=0.002, attempts=3)
    refuse_all(world)
    with pytest.raises(ConnectionLostError):
        async with world.client(backoff=three):
            pytest.fail("there is no connection")
    assert len(world.broker.peers) == 3


async def test_after_a_connection_attempts_count_anew(world: World) -> None:
    two = Backoff(first=0.001, most=0.002, attempts=2)
    async with world.client(backoff=two) as client:
        channel = await client.channel()
        for _ in range(3):
            await asyncio.sleep(0.01)  # longer than the wait before
            await cut(client, world.broker.peers[-1])
            await channel.call(world.amqp.Queue.Declare("q"))
        refuse_all(world)
        world.broker.peers[-1].abort()
        with pytest.raises(ConnectionLostError):
            await channel.publish(b"")


async def test_connections_that_end_as_soon_as_they_are_there_do_not_count(world: World) -> None:
    """A message on which the broker ends the connection, say: the waits grow, and attempts run out."""
    world.broker.on("basic.publish", lambda received: received.peer.close())
    async with world.client(backoff=Backoff(first=0.4, most=0.4, attempts=3)) as client:
        channel = await client.channel()
        with pytest.raises(AmqpConnectionForced):
            await channel.publish(b"")
    assert len(world.broker.peers) == 3


async def test_time_runs_out_as_well(world: World) -> None:
    refuse_all(world)
    with pytest.raises(ConnectionLostError):
        async with world.client(backoff=Backoff(first=0.01, most=0.01, seconds=0.05)):
            pytest.fail("there is no connection")
    assert 2 <= len(world.broker.peers) <= 12


async def test_a_broker_that_is_down_for_a_while_is_waited_for(world: World) -> None:
    world.broker.stop_listening()
    entering = asyncio.ensure_future(world.client().__aenter__())
    done, _ = await asyncio.wait((entering,), timeout=0.03)
    assert not done
    world.broker.listen()
    client = await entering
    await (await client.channel()).publish(b"")
    await client.close()


def test_waits_grow_to_their_most_and_vary() -> None:
    waits = Backoff(first=1, most=10).waits()
    for longest in (1, 2, 4, 8, 10, 10, 10):
        assert longest / 2 <= next(waits) <= longest
    assert len([*Backoff(attempts=5).waits()]) == 4
    assert [*Backoff(attempts=1).waits()] == []
    assert len({next(Backoff(first=1).waits()) for _ in range(20)}) > 1
    assert next(Backoff(first=5, most=1).waits()) <= 1


async def test_another_error_of_the_broker_is_final(world: World) -> None:
    """402 and 530 do not get better: neither login nor virtual host changes by itself."""
    world.broker.on("connection.open", lambda received: received.peer.close(402, "INVALID_PATH"))
    with pytest.raises(Exception, match="INVALID_PATH"):
        async with world.client():
            pytest.fail("there is no connection")
    assert len(world.broker.peers) == 1


async def test_a_locked_queue_outside_of_on_connect_is_the_callers(world: World) -> None:
    world.broker.on("queue.declare", close_channel(405))
    async with world.client() as client:
        with pytest.raises(AmqpResourceLocked):
            await client.call(world.amqp.Queue.Declare("q"))
        assert len(world.broker.peers) == 1
