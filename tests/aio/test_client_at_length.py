"""The client and a real RabbitMQ at length: nothing is lost while it comes and goes; memory does not grow.

`make test-broker` has it publish and consume 100,000 messages, and kills the node 20 times; here it is few.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Coroutine
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from support.broker import Node
from support.memory import traced
from support.relay import Relay
from support.soak_faults import HEARTBEAT, TEN, keep_declarations, kill
from support.soak_messages import LANES, Faults, Lane, Ledger, read_all
from world import World

from amqpcodec.aio import Backoff

MESSAGES = int(os.environ.get("AMQPCODEC_BROKER_MESSAGES", "2000"))
KILLS = int(os.environ.get("AMQPCODEC_BROKER_KILLS", "2"))
PATIENT = Backoff(first=0.05, most=0.5)


def run(world: World, work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Run a long test: what the event loop reports is a failure, and so is a task that outlives it."""

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: world.reported.append(context))
        async with asyncio.timeout(seconds):
            await work
        await asyncio.sleep(0.1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(watched())
    gc.collect()  # which makes futures say that nobody has asked for their exceptions
    assert world.reported == []


# -- ten faults


@pytest.mark.broker
@pytest.mark.parametrize("how", ["publish", "publish_soon"])
def test_what_is_confirmed_survives_ten_kills(world: World, node: Node, how: str) -> None:
    amqp, queue = world.amqp, f"amqpcodec-{uuid4()}"
    properties = amqp.BasicProperties(delivery_mode=2)

    async def work() -> None:
        async with Relay(node.port) as relay:
            client = world.client(
                relay.url + f"?heartbeat={HEARTBEAT}",
                backoff=PATIENT,
                on_connect=lambda client: client.call(amqp.Queue.Declare(queue=queue, durable=True)),
            )
            async with client:
                await keep_declarations(node)
                faults = Faults(node, relay, client)
                lanes = [Lane(n, MESSAGES // LANES, lambda: not breaking.done()) for n in range(LANES)]
                breaking = asyncio.ensure_future(
                    faults.run(lambda: sum(len(lane.confirmed) for lane in lanes), MESSAGES)
                )
                channels = [await client.channel() for _ in lanes]
                publishing = [
                    getattr(lane, how)(channel, routing_key=queue, properties=properties)
                    for lane, channel in zip(lanes, channels, strict=True)
                ]
                await asyncio.gather(breaking, *publishing)
            stats = client.stats()
        found = await read_all(node.url, queue, amqp)
        published, times = sum(lane.published for lane in lanes), Counter(found)
        confirmed = {(lane.number, number) for lane in lanes for number in lane.confirmed}
        lost = confirmed - times.keys()
        outcomes = sum((lane.outcomes for lane in lanes), Counter[str]())
        print(
            f"\n{how}: published {published}, {dict(outcomes)}, lost {len(lost)}, "
            f"duplicates {len(found) - len(times)}; {stats}"
        )
        assert (faults.begun, lost) == (len(TEN), set())
        assert outcomes == {"confirmed": published}
        assert stats.connections > len(TEN)
        assert (stats.confirmed, stats.published) == (published, published + stats.republished)
        assert len(found) - len(times) <= stats.republished
        for lane in lanes:
            order = list(dict.fromkeys(number for of, number in found if of == lane.number))
            assert order == list(range(1, lane.published + 1))

    run(world, work(), 300 + MESSAGES / 200)


@pytest.mark.broker
def test_what_is_consumed_through_ten_kills_is_not_lost(world: World, node: Node) -> None:
    amqp, queue = world.amqp, f"amqpcodec-{uuid4()}"

    async def work() -> None:
        async with world.client(node.url) as client:
            await client.call(amqp.Queue.Declare(queue=queue, durable=True))
            await keep_declarations(node)
            lane = Lane(0, MESSAGES, lambda: False)
            properties = amqp.BasicProperties(delivery_mode=2)
            await lane.publish_soon(await client.channel(), routing_key=queue, properties=properties)
            assert len(lane.confirmed) == MESSAGES
        async with Relay(node.port) as relay:
            client = world.client(relay.url + f"?heartbeat={HEARTBEAT}", backoff=PATIENT)
            async with client:
                faults = Faults(node, relay, client)
                ledger = Ledger(client, queue, faults, amqp)
                breaking = asyncio.ensure_future(faults.run(lambda: len(ledger.times), MESSAGES))
                consuming = [
                    asyncio.ensure_future(ledger.consume(await client.channel(prefetch=200), 0.0001))
                    for _ in range(LANES)
                ]
                while not breaking.done() or ledger.ready or ledger.quiet() < 1:
                    await asyncio.sleep(0.02)
                    assert not any(task.done() for task in consuming), consuming
                await breaking
                for task in consuming:
                    task.cancel()
                await asyncio.wait(consuming)
            stats = client.stats()
        again = sum(ledger.times.values()) - MESSAGES
        print(
            f"\nconsumed {len(ledger.times)} of {MESSAGES}, redelivered {again}, unflagged "
            f"{len(ledger.unflagged)}, certain {len(ledger.certain)} by {ledger.round_trips} round trips, "
            f"again though {len(ledger.wrongly)}, forgotten by the killed node {len(ledger.forgotten)}, "
            f"acknowledged late {ledger.stale}; {stats}"
        )
        assert faults.begun == len(TEN)
        assert set(ledger.times) == {(0, number) for number in range(1, MESSAGES + 1)}
        assert (ledger.unflagged, ledger.wrongly) == ([], [])
        assert await read_all(node.url, queue, amqp) == []

    run(world, work(), 300 + MESSAGES / 200)


# -- kills


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_is_confirmed_comes_through_kills_in_a_queue_of_each_type(
    world: World, node: Node, kind: str
) -> None:
    """Consume while publishing; what comes again without its flag is a message that was published again."""
    amqp, queue = world.amqp, f"amqpcodec-{uuid4()}"
    declare = amqp.Queue.Declare(queue=queue, durable=True, arguments={"x-queue-type": kind})
    properties = amqp.BasicProperties(delivery_mode=2)

    async def work() -> None:
        began = monotonic()
        async with Relay(node.port) as relay:
            client = world.client(
                relay.url + f"?heartbeat={HEARTBEAT}",
                backoff=PATIENT,
                on_connect=lambda client: client.call(declare),
            )
            async with client:
                await keep_declarations(node)
                faults = Faults(node, relay, client, (kill,) * KILLS)
                lanes = [Lane(n, MESSAGES // LANES, lambda: not breaking.done()) for n in range(LANES)]
                breaking = asyncio.ensure_future(
                    faults.run(lambda: sum(len(lane.confirmed) for lane in lanes), MESSAGES)
                )
                ledger = Ledger(client, queue, faults, amqp)
                consuming = [
                    asyncio.ensure_future(ledger.consume(await client.channel(prefetch=200), 0))
                    for _ in lanes
                ]
                channels = [await client.channel() for _ in lanes]
                publishing = [
                    lane.publish_soon(channel, routing_key=queue, properties=properties)
                    for lane, channel in zip(lanes, channels, strict=True)
                ]
                await asyncio.gather(breaking, *publishing)
                while ledger.ready or ledger.quiet() < 1:
                    await asyncio.sleep(0.02)
                    assert not any(task.done() for task in consuming), consuming
                for task in consuming:
                    task.cancel()
                await asyncio.wait(consuming)
            stats = client.stats()
        left = await read_all(node.url, queue, amqp)
        published = {(lane.number, number) for lane in lanes for number in range(1, lane.published + 1)}
        outcomes = sum((lane.outcomes for lane in lanes), Counter[str]())
        confirmed = {(lane.number, number) for lane in lanes for number in lane.confirmed}
        lost = confirmed - ledger.times.keys() - set(left)
        again = ledger.times.total() - len(ledger.times)
        print(
            f"\n{kind}: {faults.kills} kills, published {len(published)}, {dict(outcomes)}, "
            f"lost {len(lost)}, left {len(left)}, again {again}, unflagged {len(ledger.unflagged)}, "
            f"{monotonic() - began:.0f} s; {stats}"
        )
        assert (faults.kills, lost, left) == (KILLS, set(), [])
        assert (outcomes, confirmed) == ({"confirmed": len(published)}, published)
        assert ledger.times.keys() == published
        assert len(ledger.unflagged) <= stats.republished

    run(world, work(), 300 + 60 * KILLS + MESSAGES / 200)


# -- memory


def test_memory_does_not_grow_with_messages(world: World, rabbitmq: str) -> None:
    """Twice as many as in the other tests, through one channel and a consumer."""
    amqp, queue = world.amqp, f"amqpcodec-{uuid4()}"

    async def work() -> None:
        async with world.client(rabbitmq) as client, await client.channel(prefetch=200) as channel:
            await channel.call(amqp.Queue.Declare(queue=queue, exclusive=True))
            came = 0

            async def consume() -> None:
                nonlocal came
                async for delivery in deliveries:
                    delivery.ack()
                    came += 1

            async def pass_on(count: int) -> None:
                target = came + count
                for _ in range(count):
                    await channel.publish_soon(bytes(200), routing_key=queue)
                while came < target:
                    await asyncio.sleep(0.01)

            async with channel.consume(queue) as deliveries:
                consuming = asyncio.ensure_future(consume())
                await pass_on(1000)
                with traced() as used:
                    await pass_on(2 * MESSAGES)
                    gc.collect()
                    assert used()[0] < 200_000  # a hundred octets each of as few as 2,000 would be more
                consuming.cancel()
                await asyncio.wait((consuming,))

    run(world, work(), 60 + MESSAGES / 100)
