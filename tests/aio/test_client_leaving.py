"""Consumers that are left or cancelled: what they have not read goes back, as quorum queues need it."""

from __future__ import annotations

from typing import Any

import pytest
from support.scripted_broker import Received, deliver
from world import World, cut

from amqpcodec.aio import Channel, ConsumerCancelledError
from amqpcodec.aio.link import counts_returns


def back(world: World) -> list[tuple[str, int, bool]]:
    """Return what was refused at the broker, in order."""
    refusals = [each for each in world.broker.log if each.name in ("basic.nack", "basic.reject")]
    return [
        (each.name, each.method.delivery_tag, getattr(each.method, "multiple", False)) for each in refusals
    ]


async def test_what_is_unread_goes_back_by_one_method_as_far_as_nothing_in_between_is_open(
    world: World,
) -> None:
    """A quorum queue takes some 32 methods at a time; the rest counts as failed where the channel ends."""
    world.broker.on("basic.consume", deliver(*[b"%d" % number for number in range(6)]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            first, second = await anext(deliveries), await anext(deliveries)
            assert first.ack()
        await world.broker.got("basic.nack", 4)
        assert back(world) == [("basic.nack", tag, False) for tag in (3, 4, 5, 6)]
        assert second.ack()  # which was read, and is not taken along
        world.broker.log.clear()
        world.broker.on("basic.consume", deliver(b"7", b"8", b"9"))
        async with channel.consume("q") as deliveries:
            assert (await anext(deliveries)).ack()
        await world.broker.got("basic.nack")
        assert back(world) == [("basic.nack", 9, True)]
    assert [each.tags for each in world.broker.received("basic.ack")] == [(2,), (7,)]


async def test_deliveries_of_another_consumer_are_not_taken_along(world: World) -> None:
    world.broker.on("basic.consume", lambda received: (received.answer(), received.deliver(b"1", b"2")))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("other") as others:
            async with channel.consume("q"):
                pass
            await world.broker.got("basic.nack", 2)
            assert back(world) == [("basic.nack", 3, False), ("basic.nack", 4, False)]
            assert (await anext(others)).ack()
            assert (await anext(others)).ack()


@pytest.mark.parametrize("closing", ["channel", "client", "client, by an exception"])
async def test_what_is_unread_goes_back_before_the_channel_is_closed(world: World, closing: str) -> None:
    """RabbitMQ 4.3 counts what is open at the end of a channel as failed, and drops it at the 21st time."""
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    client = world.client()
    await client.__aenter__()
    channel = await client.channel()
    deliveries = await channel.consume("q").__aenter__()
    assert (await anext(deliveries)).ack()
    await (channel.close() if closing == "channel" else client.close(0 if "," in closing else None))
    await client.close()
    await world.broker.got("basic.nack")  # or they came after the close, and count for nothing
    assert [each.name for each in world.broker.log][-3:] == ["basic.ack", "basic.cancel", "basic.nack"]
    assert back(world) == [("basic.nack", 3, True)]


# -- what a queue would drop


def returned(world: World, times: int | None) -> Any:
    """Return the properties of a message that has gone back to a quorum queue so many times."""
    return world.amqp.BasicProperties(headers=None if times is None else {"x-delivery-count": times})


def counting(channel: Channel) -> Channel:
    """Return a channel of a broker whose quorum queues count every return."""
    assert channel._link is not None
    channel._link.counts_returns = True
    return channel


async def test_what_a_queue_would_drop_is_kept_for_its_next_consumer(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def consume(received: Received) -> None:
        received.answer()
        for times in (None, 19, 20, 20, 21):
            received.deliver(b"%r" % times, properties=returned(world, times))

    world.broker.on("basic.consume", consume)
    async with world.client() as client:
        channel = counting(await client.channel())
        async with channel.consume("q"):
            await client.call(world.amqp.Queue.Declare("q"))
        await world.broker.got("basic.nack", 2)
        assert [each.tags for each in world.broker.received("basic.nack")] == [(1, 2), (5,)]
        world.broker.on("basic.consume", Received.answer)
        async with channel.consume("other") as deliveries:
            assert not deliveries._ready
        for _ in range(2):  # which is counted once
            async with channel.consume("q") as deliveries:
                last = await anext(deliveries)
        assert last.ack()
        stats = client.stats()
    assert (stats.kept, stats.dropped, stats.stray) == (2, 0, 0)
    assert caplog.text.count("which would drop or dead-letter them if they went back: 2.") == 1


async def test_what_is_kept_is_got_before_what_the_queue_has(world: World) -> None:
    def consume(received: Received) -> None:
        received.answer()
        received.deliver(b"1", b"2", properties=returned(world, 20))

    world.broker.on("basic.consume", consume)
    world.broker.on("basic.get", lambda received: received.hand_out(b"of the queue"))
    async with world.client() as client:
        channel = counting(await client.channel())
        async with channel.consume("q"):
            await client.call(world.amqp.Queue.Declare("q"))
        calls = [("other", False), ("q", True), ("q", False), ("q", False), ("q", False)]
        got = [await channel.get(queue, no_ack=no_ack) for queue, no_ack in calls]
        assert [each and each.body for each in got] == [b"of the queue"] * 2 + [b"1", b"2", b"of the queue"]
        assert [each.ack() for each in got[2:] if each] == [True] * 3
    assert len(world.broker.received("basic.get")) == 3
    assert client.stats().dropped == 0


@pytest.mark.parametrize("how", ["closed", "lost", "recovered"])
async def test_what_is_kept_is_counted_where_the_broker_takes_it_back(
    world: World, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    world.broker.on("basic.consume", lambda received: deliver_returned(world, received))
    async with world.client() as client:
        channel = counting(await client.channel())
        async with channel.consume("q"):
            await client.call(world.amqp.Queue.Declare("q"))
        assert client.stats().dropped == 0
        if how == "closed":
            await channel.close()
        elif how == "lost":
            await cut(client, world.broker.peers[0])
        else:
            await channel.call(world.amqp.Basic.Recover(requeue=True))
        assert (client.stats().kept, client.stats().dropped) == (1, 1)
    assert "deliveries lost that had gone back too often: 1" in caplog.text


def deliver_returned(world: World, received: Received) -> None:
    """Begin a consumer, and deliver to it what has gone back twenty times."""
    received.answer()
    received.deliver(b"1", properties=returned(world, 20))


async def test_what_is_kept_goes_to_no_consumer_whose_deliveries_count_as_acknowledged(world: World) -> None:
    world.broker.on("basic.consume", lambda received: deliver_returned(world, received))
    async with world.client() as client:
        channel = counting(await client.channel())
        async with channel.consume("q"):
            await client.call(world.amqp.Queue.Declare("q"))
        world.broker.on("basic.consume", Received.answer)
        async with channel.consume("q", no_ack=True) as deliveries:
            assert not deliveries._ready
        async with channel.consume("q") as deliveries:
            assert (await anext(deliveries)).ack()


@pytest.mark.parametrize(
    ("product", "version", "counts"),
    [
        ("RabbitMQ", "3.10.8", False),
        ("RabbitMQ", "4.0.5", True),
        ("RabbitMQ", "4.2.0-rc.1", True),
        ("RabbitMQ", "4.3.6", False),
        ("RabbitMQ", "4.10.0", False),
        ("RabbitMQ", "14.0.0", False),
        ("RabbitMQ", None, False),
        ("LavinMQ", "4.0.5", False),
        (None, None, False),
    ],
)
def test_versions_whose_quorum_queues_count_every_return(product: Any, version: Any, counts: bool) -> None:
    assert counts_returns({"product": product, "version": version}) is counts


# -- a broker that cancels a consumer, and delivers to it


async def test_a_consumer_that_the_broker_cancels_is_cancelled_from_this_side_too(world: World) -> None:
    """A quorum queue of RabbitMQ 4.3 delivers to a consumer again that it has cancelled for its delay."""
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="mine") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            late = await anext(deliveries)
            consume.cancel_consumer()
            with pytest.raises(ConsumerCancelledError, match="'mine'"):
                await anext(deliveries)
            [cancel] = await world.broker.got("basic.cancel")
            assert (cancel.method.consumer_tag, cancel.method.no_wait) == ("mine", True)
            assert late.ack()
        await channel.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("basic.cancel")) == 1
    assert world.broker.received("basic.cancel-ok") == []  # for which RabbitMQ would close the connection


async def test_a_delivery_to_a_consumer_that_is_gone_goes_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.broker.on("basic.consume", deliver(b"1"))
    async with world.client() as client:
        channel = await client.channel(prefetch=1)
        async with channel.consume("q", consumer_tag="mine") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            cancel = world.amqp.Basic.Cancel("mine", True)  # of which the broker's end knows nothing
            consume.peer.send_garbage(world.amqp.Encoder().encode_method(consume.channel, cancel))
            consume.deliver(b"2", properties=world.amqp.BasicProperties(headers={"x-stream-offset": 7}))
            consume.deliver(b"3")
            [nack] = await world.broker.got("basic.nack")
            assert nack.tags == (3,)
            assert nack.method.requeue
            assert (await anext(deliveries)).body == b"1"
            with pytest.raises(ConsumerCancelledError):
                await anext(deliveries)
        assert client.stats().stray == 2
    assert caplog.text.count("a delivery to no consumer goes back") == 2
