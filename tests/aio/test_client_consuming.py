"""Consuming: iterators, acknowledgements, hooks around deliveries, and basic.get."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.scripted_broker import Received, close_channel, deliver, hold
from world import World, outcomes

from amqpcodec.aio import AlreadySettledError, Consumer, ConsumerCancelledError, Delivery
from amqpcodec.errors import EncodeError, LocalProtocolError
from amqpcodec.reply_errors import AmqpNotFound, AmqpResourceLocked

BODIES = [b"%d" % number for number in range(1, 7)]


def settled(world: World, *, connection: int = 0) -> list[tuple[str, int, bool]]:
    """Return the acknowledgements that have come: name, tag, and whether it is multiple."""
    return [
        (each.name.partition(".")[2], each.method.delivery_tag, getattr(each.method, "multiple", False))
        for each in world.broker.log
        if each.name in ("basic.ack", "basic.nack", "basic.reject") and connection in (0, each.connection)
    ]


async def taken(consumer: Consumer, count: int) -> list[Delivery]:
    return [await anext(consumer) for _ in range(count)]


async def test_a_consumer_iterates_over_deliveries_and_acknowledges_them(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES))
    arguments = {"x-priority": 5}
    async with world.client() as client:
        channel = await client.channel(prefetch=20)
        bodies = []
        async with channel.consume("q", exclusive=True, arguments=arguments) as deliveries:
            async for delivery in deliveries:
                bodies.append(delivery.body)
                assert delivery.ack()
                if len(bodies) == len(BODIES):
                    break
        stats = client.stats()
    assert bodies == BODIES
    [consume] = world.broker.received("basic.consume")
    assert (consume.method.queue, consume.method.exclusive) == ("q", True)
    assert consume.method.arguments == arguments
    [qos] = world.broker.received("basic.qos")
    assert qos.method.prefetch_count == 20
    assert world.broker.log.index(qos) < world.broker.log.index(consume)
    assert (stats.delivered, stats.acknowledged) == (6, 6)


async def test_leaving_cancels_and_gives_back_what_was_not_read(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES[:4]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="mine") as deliveries:
            first = await anext(deliveries)
            assert first.ack()
        [cancel] = await world.broker.got("basic.cancel")
        assert cancel.method.consumer_tag == "mine"
        [nack] = await world.broker.got("basic.nack")
    assert settled(world) == [("ack", 1, False), ("nack", 4, True)]
    assert nack.method.requeue
    # Or the broker delivers them to the same consumer once more.
    assert world.broker.log.index(cancel) < world.broker.log.index(nack)


async def test_what_comes_while_a_consumer_is_cancelled_is_given_back(world: World) -> None:
    def cancel(received: Received) -> None:
        consume.deliver(b"late")
        received.answer()

    world.broker.on("basic.cancel", cancel)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q"):
            [consume] = await world.broker.got("basic.consume")
        await world.broker.got("basic.nack")
    assert settled(world) == [("nack", 1, False)]


async def test_what_comes_after_a_consumer_was_left_at_once_is_given_back(world: World) -> None:
    """Cancelled tasks do not wait for cancel-ok; the connection goes on."""
    async with world.client() as client:
        channel = await client.channel()

        async def consume() -> None:
            async with channel.consume("q") as deliveries:
                await anext(deliveries)

        task = asyncio.ensure_future(consume())
        [came] = await world.broker.got("basic.consume")
        world.broker.on("basic.cancel", lambda received: came.deliver(b"late"))
        await client.call(world.amqp.Queue.Declare("q"))
        task.cancel()
        assert await outcomes(task) == ["CancelledError"]
        await world.broker.got("basic.nack")
    assert settled(world) == [("nack", 1, False)]


async def test_acknowledgements_of_a_turn_are_sent_together(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            six = await taken(deliveries, 6)
            for delivery in six:
                delivery.ack()
            await world.broker.got("basic.ack")
        stats = client.stats()
    assert settled(world) == [("ack", 6, True)]
    assert stats.acknowledged == 6


async def test_acknowledgements_are_never_sent_together_over_an_open_delivery(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            six = await taken(deliveries, 6)
            for at in (5, 1, 0, 3):  # 3 and 5 stay open
                six[at].ack()
            await world.broker.got("basic.ack", 3)
            six[4].nack(requeue=False)
            six[2].ack()
            await world.broker.got("basic.ack", 4)
    assert settled(world) == [
        ("ack", 2, True),
        ("ack", 4, False),
        ("ack", 6, False),
        ("nack", 5, False),
        ("ack", 3, False),
    ]


async def test_a_delivery_that_was_not_read_is_open(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES[:3]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("a") as first, channel.consume("b") as second:
            [_, other] = await world.broker.got("basic.consume", 2)
            a, b = await anext(first), await anext(second)
            assert (a.method.delivery_tag, b.method.delivery_tag) == (1, 4)
            a.ack()
            b.ack()
            await world.broker.got("basic.ack", 2)
            assert other.channel == channel._number
    assert settled(world)[:2] == [("ack", 1, False), ("ack", 4, False)]


async def test_nack_and_reject_say_whether_to_requeue(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES[:4]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            one, two, three, four = await taken(deliveries, 4)
            assert one.nack()
            assert two.nack(requeue=False)
            assert three.reject()
            assert four.reject(requeue=True)
        stats = client.stats()
    methods = [each.method for each in world.broker.log if each.tags]
    assert [(each.spec.name, each.requeue) for each in methods] == [
        ("basic.nack", True),
        ("basic.nack", False),
        ("basic.reject", False),
        ("basic.reject", True),
    ]
    assert (stats.delivered, stats.acknowledged) == (4, 0)


@pytest.mark.parametrize("wait", [False, True], ids=["of the same turn", "sent with others"])
async def test_a_delivery_is_settled_once(world: World, wait: bool) -> None:
    world.broker.on("basic.consume", deliver(*BODIES[:3]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            for delivery in (three := await taken(deliveries, 3)):
                delivery.ack()
            if wait:
                await world.broker.got("basic.ack")
            for delivery in three:
                for settle in (delivery.ack, delivery.nack, delivery.reject):
                    with pytest.raises(AlreadySettledError, match="settled already"):
                        settle()
        assert client.stats().acknowledged == 3
    assert settled(world) == [("ack", 3, True)]


async def test_what_needs_no_acknowledgement_takes_none_and_is_counted_if_unread(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES[:3]))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", no_ack=True) as deliveries:
            delivery = await anext(deliveries)
            with pytest.raises(AlreadySettledError):
                delivery.ack()
        stats = client.stats()
    assert (stats.delivered, stats.dropped) == (3, 2)
    assert settled(world) == []


async def test_many_tasks_share_a_consumer(world: World) -> None:
    world.broker.on("basic.consume", deliver(*(b"%d" % number for number in range(100))))
    bodies: list[bytes] = []
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:

            async def work() -> None:
                async for delivery in deliveries:
                    bodies.append(delivery.body)
                    await asyncio.sleep(0)
                    delivery.ack()

            tasks = [asyncio.ensure_future(work()) for _ in range(8)]
            await world.broker.until(lambda: sum(len(each.tags) for each in world.broker.log) == 100)
            for task in tasks:
                task.cancel()
            assert await outcomes(*tasks) == ["CancelledError"] * 8
    assert sorted(int(body) for body in bodies) == [*range(100)]


async def test_a_task_that_is_cancelled_takes_no_delivery_with_it(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            waiting = [asyncio.ensure_future(anext(deliveries)) for _ in range(3)]
            await asyncio.sleep(0)
            consume.deliver(b"1")
            await world.broker.until(lambda: True)
            while client.stats().delivered == 0:
                await asyncio.sleep(0)
            waiting[0].cancel()  # it was about to take the delivery
            done, _ = await asyncio.wait(waiting[1:], return_when=asyncio.FIRST_COMPLETED, timeout=5)
            assert [task.result().body for task in done] == [b"1"]
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)


async def test_waits_that_were_given_up_leave_nothing_behind(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            for _ in range(50):
                waiting = asyncio.ensure_future(anext(deliveries))
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait((waiting,))
            assert len(deliveries._waiting) < 50


async def test_a_consumer_that_the_broker_cancels_raises_after_what_was_delivered(world: World) -> None:
    def react(received: Received) -> None:
        deliver(*BODIES[:2])(received)
        received.cancel_consumer()

    world.broker.on("basic.consume", react)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="mine") as deliveries:
            bodies = [delivery.body for delivery in await taken(deliveries, 2) if delivery.ack()]
            with pytest.raises(ConsumerCancelledError, match="'mine'"):
                await anext(deliveries)
        await channel.call(world.amqp.Queue.Declare("q"))  # the channel goes on
        async with channel.consume("q", consumer_tag="mine") as deliveries:
            assert (await anext(deliveries)).body == b"1"
    assert bodies == BODIES[:2]
    assert [each.method.no_wait for each in world.broker.received("basic.cancel")][:1] == [True]


async def test_a_cancel_that_wants_an_answer_gets_one(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            consume.cancel_consumer(no_wait=False)
            [answer] = await world.broker.got("basic.cancel-ok")
            assert answer.method.consumer_tag == deliveries.tag
            with pytest.raises(ConsumerCancelledError):
                await anext(deliveries)


async def test_a_stuck_consumer_holds_nobody_up(world: World) -> None:
    world.broker.on("basic.consume", deliver(*BODIES))
    async with world.client() as client:
        stuck = await client.channel(prefetch=6)
        others = [await client.channel() for _ in range(5)]
        async with stuck.consume("stuck"):

            async def consume(channel: Any) -> list[bytes]:
                async with channel.consume("q") as deliveries:
                    return [delivery.body for delivery in await taken(deliveries, 6) if delivery.ack()]

            assert await asyncio.gather(*(consume(channel) for channel in others)) == [BODIES] * 5
            await stuck.publish(b"")
            await stuck.call(world.amqp.Queue.Declare("q"))


@pytest.mark.parametrize("code", [404, 405])
async def test_a_consumer_that_is_refused_raises_the_code(world: World, code: int) -> None:
    world.broker.on("basic.consume", close_channel(code))
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises((AmqpNotFound, AmqpResourceLocked)) as caught:
            async with channel.consume("q"):
                pytest.fail("there is no consumer")
        assert caught.value.code == code
        await client.call(world.amqp.Queue.Declare("q"))


async def test_a_consumer_tag_is_in_use_once(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="t") as deliveries:
            with pytest.raises(LocalProtocolError, match="'t'"):
                async with channel.consume("r", consumer_tag="t"):
                    pytest.fail("there are two")
            [consume] = world.broker.received("basic.consume")
            consume.deliver(b"1")
            assert (await anext(deliveries)).body == b"1"  # the first one goes on
        async with channel.consume("r", consumer_tag="t"):
            pass


async def test_a_consumer_whose_start_is_cancelled_is_gone(world: World) -> None:
    world.broker.on("basic.consume", hold)
    async with world.client() as client:
        channel = await client.channel()
        begun = asyncio.ensure_future(channel.consume("q", consumer_tag="t").__aenter__())
        [consume] = await world.broker.got("basic.consume")
        begun.cancel()
        assert await outcomes(begun) == ["CancelledError"]
        consume.answer()
        consume.deliver(b"1")
        await world.broker.got("basic.cancel")
        await world.broker.got("basic.nack")
    assert settled(world) == [("nack", 1, False)]


# -- basic.get


async def test_get_returns_a_message_or_none(world: World) -> None:
    world.broker.on("basic.get", lambda received: received.hand_out(b"1"))
    async with world.client() as client:
        channel = await client.channel()
        delivery = await channel.get("q")
        assert delivery is not None
        assert delivery.body == b"1"
        assert delivery.ack()
        world.broker.on("basic.get", Received.answer)
        assert await channel.get("q") is None
        await world.broker.got("basic.ack")
        stats = client.stats()
    assert settled(world) == [("ack", 1, False)]
    assert (stats.delivered, stats.acknowledged) == (1, 1)


@pytest.mark.parametrize("no_ack", [False, True])
async def test_a_message_that_no_one_waits_for_any_more_goes_back_or_is_counted(
    world: World, no_ack: bool
) -> None:
    world.broker.on("basic.get", hold)
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(TimeoutError, match=r"no answer to basic\.get within 0\.01 seconds"):
            await channel.get("q", no_ack=no_ack, timeout=0.01)
        [get] = await world.broker.got("basic.get")
        get.hand_out(b"1")
        await channel.call(world.amqp.Queue.Declare("q"))
        assert client.stats().dropped == no_ack
    assert settled(world) == ([] if no_ack else [("nack", 1, False)])


async def test_a_message_goes_back_if_its_task_is_cancelled_as_it_comes(world: World) -> None:
    world.broker.on("basic.get", hold)
    async with world.client() as client:
        channel = await client.channel()
        waiting = asyncio.ensure_future(channel.get("q"))
        [get] = await world.broker.got("basic.get")
        get.hand_out(b"1")
        while client.stats().delivered == 0:
            await asyncio.sleep(0)
        waiting.cancel()
        assert await outcomes(waiting) == ["CancelledError"]
        await world.broker.got("basic.nack")
    assert settled(world) == [("nack", 1, False)]


async def test_several_gets_are_told_apart(world: World) -> None:
    bodies = iter(BODIES)
    world.broker.on("basic.get", lambda received: received.hand_out(next(bodies)))
    async with world.client() as client:
        channel = await client.channel()
        got = await asyncio.gather(*(channel.get("q", no_ack=True) for _ in range(6)))
        assert [delivery.body for delivery in got if delivery is not None] == BODIES


async def test_a_consumer_that_cannot_be_asked_for_leaves_nothing(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        for _ in range(2):
            with pytest.raises(EncodeError):
                async with channel.consume("x" * 300, consumer_tag="tag"):
                    pass
        async with channel.consume("q", consumer_tag="tag"):
            pass
    assert len(world.broker.received("basic.cancel")) == 1
