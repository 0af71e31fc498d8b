"""`on_connect` sets up what a program needs, on each new connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from support.scripted_broker import Peer, close_channel, deliver, hold
from world import World, cut, outcomes, published

from amqpcodec.aio import Channel, Client
from amqpcodec.errors import LocalProtocolError
from amqpcodec.reply_errors import (
    AmqpPreconditionFailed,
)

CUTS = {
    "forced": Peer.close,
    "internal error": lambda peer: peer.close(541, "INTERNAL_ERROR"),
    "cut": Peer.abort,
}


async def test_on_connect_comes_before_all_else_on_each_connection(world: World) -> None:
    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    world.broker.on("basic.publish", hold, connection=1)
    async with world.client(on_connect=declare) as client:
        channel = await client.channel()
        async with channel.consume("q"):
            [sent] = published(channel, 1)
            await world.broker.got("basic.publish")
            world.broker.peers[0].abort()
            await sent
    for connection in (1, 2):
        names = [each.name for each in world.broker.log if each.connection == connection]
        first = [names.index(name) for name in ("queue.declare", "basic.consume", "basic.publish")]
        assert first == sorted(first)


async def test_nothing_goes_on_before_on_connect_is_done(world: World) -> None:
    go = asyncio.Event()

    async def wait(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))
        if len(world.broker.peers) > 1:
            await go.wait()

    async with world.client(on_connect=wait) as client:
        channel = await client.channel()
        world.broker.peers[0].abort()
        await world.broker.got("queue.declare", 1, connection=2)
        waiting = [
            asyncio.ensure_future(channel.publish(b"")),
            asyncio.ensure_future(channel.call(world.amqp.Queue.Purge("q"))),
            asyncio.ensure_future(client.call(world.amqp.Queue.Purge("q"))),
            asyncio.ensure_future(client.channel()),
        ]
        await asyncio.wait(waiting, timeout=0.02)
        assert not any(task.done() for task in waiting)
        assert world.broker.received("queue.purge") == world.broker.bodies() == []
        assert client.stats().connections == 1
        go.set()
        assert await outcomes(*waiting) == ["ok"] * 4


async def test_on_connect_uses_all_that_a_client_has(world: World) -> None:
    amqp = world.amqp
    world.broker.on("basic.consume", deliver(b"1"))

    async def use(client: Client) -> None:
        await asyncio.gather(*(client.call(amqp.Queue.Declare(f"q{number}")) for number in range(5)))
        async with await client.channel() as channel:
            await channel.call(amqp.Queue.Bind("q", "e", "#"))
            await channel.publish(b"hello")
            await (await channel.publish_soon(b"soon"))
            assert await channel.get("q") is None
            async with channel.consume("q") as deliveries:
                (await anext(deliveries)).ack()

    async with world.client(on_connect=use) as client:
        world.broker.peers[0].abort()
        await world.broker.until(lambda: len(world.broker.bodies(connection=2)) == 2)
        await client.call(amqp.Queue.Declare("q"))
        assert client.stats().connections == 2


@pytest.mark.parametrize("deferred", [False, True])
async def test_on_connect_does_not_wait_for_itself(world: World, deferred: bool) -> None:
    """A channel of before publishes after on_connect: with its window full, it would never have room."""
    raised: list[BaseException] = []
    channels: list[Any] = []

    async def publish(client: Client) -> None:
        for channel in channels:
            try:
                await (channel.publish_soon(b"") if deferred else channel.publish(b""))
            except LocalProtocolError as error:
                raised.append(error)

    world.broker.on("basic.publish", hold, connection=1)
    async with world.client(on_connect=publish) as client:
        channels.append(await client.channel(window=1))
        [sent] = published(channels[0], 1)
        await world.broker.got("basic.publish")
        world.broker.peers[0].abort()
        await asyncio.wait_for(sent, 5)
    assert len(raised) == 1


async def refused(world: World, name: str) -> Any:
    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare(name))

    return declare


async def test_a_setup_that_is_refused_at_first_is_raised_by_entering(world: World) -> None:
    world.broker.on("queue.declare", close_channel(406))
    with pytest.raises(AmqpPreconditionFailed):
        async with world.client(on_connect=await refused(world, "q")):
            pytest.fail("it is not set up")
    assert len(world.broker.peers) == 1


async def test_a_setup_that_is_refused_later_ends_the_client_and_everybody_is_told(world: World) -> None:
    world.broker.on("queue.declare", close_channel(406), connection=2)
    world.broker.on("basic.publish", hold)
    async with world.client(on_connect=await refused(world, "q")) as client:
        channel = await client.channel(window=2)
        async with channel.consume("q") as deliveries:
            waiting = [
                *published(channel, 3),
                asyncio.ensure_future(channel.publish_soon(b"")),
                asyncio.ensure_future(anext(deliveries)),
            ]
            await world.broker.got("basic.publish", 2)
            world.broker.peers[0].abort()
            await world.broker.connected(2)
            waiting += [
                asyncio.ensure_future(channel.call(world.amqp.Queue.Purge("q"))),
                asyncio.ensure_future(client.call(world.amqp.Queue.Purge("q"))),
                asyncio.ensure_future(client.channel()),
            ]
            assert await outcomes(*waiting) == ["AmqpPreconditionFailed"] * 8
        with pytest.raises(AmqpPreconditionFailed):
            await client.call(world.amqp.Queue.Purge("q"))
    assert len(world.broker.peers) == 2


async def test_an_exception_of_on_connect_ends_the_client(world: World) -> None:
    async def fail(client: Client) -> None:
        if len(world.broker.peers) == 2:
            raise KeyError("a fault of the program")

    async with world.client(on_connect=fail) as client:
        channel = await client.channel()
        world.broker.peers[0].abort()
        with pytest.raises(KeyError):
            await channel.publish(b"")
        with pytest.raises(KeyError):
            await client.call(world.amqp.Queue.Declare("q"))
    await world.broker.peers[1].ended.wait()


@pytest.mark.parametrize("first", [1, 2])
async def test_a_locked_queue_is_tried_again(world: World, first: int) -> None:
    """405: an exclusive queue of the connection that is about to end."""
    world.broker.on("queue.declare", close_channel(405), connection=first)
    world.broker.on("queue.declare", close_channel(405), connection=first + 1)
    async with world.client(on_connect=await refused(world, "q")) as client:
        channel = await client.channel()
        if first == 2:
            await cut(client, world.broker.peers[0])
        await channel.publish(b"")
    assert len(world.broker.peers) == first + 2


@pytest.mark.parametrize("end", CUTS)
@pytest.mark.parametrize("first", [1, 2])
async def test_a_connection_that_is_lost_inside_on_connect_is_followed_by_another(
    world: World, end: str, first: int
) -> None:
    world.broker.on("queue.declare", lambda received: CUTS[end](received.peer), connection=first)
    async with world.client(on_connect=await refused(world, "q")) as client:
        channel = await client.channel()
        if first == 2:
            await cut(client, world.broker.peers[0])
        await channel.publish(b"")
        assert client.stats().connections == first
    assert len(world.broker.peers) == first + 1


async def test_a_setup_that_waits_for_something_else_is_cancelled_with_its_connection(world: World) -> None:
    ended: list[str] = []

    async def wait(client: Client) -> None:
        if len(world.broker.peers) == 1:
            world.broker.peers[0].abort()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

    async with world.client(on_connect=wait):
        assert (ended, len(world.broker.peers)) == (["cancelled"], 2)


LAST_WORDS: dict[str, Callable[[Client, Channel, Any], Awaitable[object]]] = {
    "call of the client": lambda client, channel, begun: client.call(begun["declare"]),
    "call": lambda client, channel, begun: channel.call(begun["declare"]),
    "get": lambda client, channel, _: channel.get("q"),
    "channel": lambda client, channel, _: client.channel(),
    "publish": lambda client, channel, _: channel.publish(b""),
    "publish soon": lambda client, channel, _: channel.publish_soon(b""),
    "consume": lambda client, channel, _: channel.consume("q").__aenter__(),
    "what was published": lambda client, channel, begun: begun["published"],
    "a task that publishes": lambda client, channel, begun: begun["publishing"],
    "a task that begins a consumer": lambda client, channel, begun: begun["consuming"],
    "a delivery": lambda client, channel, begun: anext(begun["deliveries"]),
    "close": lambda client, channel, _: channel.close(),
}


@pytest.mark.parametrize("words", LAST_WORDS)
async def test_last_words_of_on_connect_wait_for_no_other_connection(world: World, words: str) -> None:
    """It waits for something else as the connection is lost, and asks for something as it is cancelled."""
    raised: list[str] = []

    async def set_up(client: Client) -> None:
        if len(world.broker.peers) > 1:
            return
        channel = await client.channel(window=2)
        async with channel.consume("q") as deliveries:
            world.broker.on("basic.publish", hold)
            world.broker.on("basic.consume", hold)
            begun: Any = {
                "declare": world.amqp.Queue.Declare("q"),
                "deliveries": deliveries,
                "published": await channel.publish_soon(b""),
                "publishing": asyncio.ensure_future(channel.publish(b"")),
                "consuming": asyncio.ensure_future(channel.consume("r").__aenter__()),
            }
            await world.broker.got("basic.publish", 2)
            try:
                world.broker.peers[0].abort()
                await asyncio.Event().wait()
            finally:
                raised.extend(await outcomes(LAST_WORDS[words](client, channel, begun)))
                await asyncio.wait([begun["publishing"], begun["consuming"]])
                assert await outcomes(begun["publishing"], begun["consuming"]) == ["ConnectionLostError"] * 2

    async with world.client(on_connect=set_up) as client:
        assert (raised, client.stats().connections) == (
            ["ok" if words == "close" else "ConnectionLostError"],
            1,
        )
    assert len(world.broker.peers) == 2


async def test_what_others_publish_on_a_channel_of_on_connect_is_not_lost(world: World) -> None:
    """It opens the channel and does more, in which the connection is lost."""
    channels: list[Channel] = []
    sent: list[asyncio.Task[None]] = []
    opened = asyncio.Event()

    async def set_up(client: Client) -> None:
        channels.append(await client.channel(window=2))
        if len(channels) == 1:
            opened.set()
            await asyncio.Event().wait()

    async def work() -> None:
        await opened.wait()
        sent.extend(published(channels[0], 3))
        await world.broker.got("basic.publish", 2)
        world.broker.peers[0].abort()

    world.broker.on("basic.publish", hold, connection=1)
    working = asyncio.create_task(work())
    async with world.client(on_connect=set_up):
        await working
        assert await outcomes(*sent) == ["ok"] * 3


async def test_a_task_that_on_connect_leaves_behind_waits_for_the_next_connection(world: World) -> None:
    left: list[asyncio.Task[Any]] = []

    async def set_up(client: Client) -> None:
        if not left:
            left.append(asyncio.create_task(later(client)))
            world.broker.peers[0].abort()
            await asyncio.Event().wait()

    async def later(client: Client) -> None:
        await world.broker.connected(2)
        await client.call(world.amqp.Queue.Declare("q"))

    async with world.client(on_connect=set_up):
        await left[0]


async def test_the_log_says_that_on_connect_does_not_end(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def set_up(client: Client) -> None:
        if len(world.broker.peers) == 1:
            world.broker.peers[0].abort()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            while "until on_connect ends" not in caplog.text:
                await asyncio.sleep(0.005)

    async with world.client(on_connect=set_up, close_seconds=0.01):
        assert len(world.broker.peers) == 2


async def declare_at_once(client: Client) -> None:
    """Declare queues by a task each."""
    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(client.call(client._dialect.Queue.Declare(name)))


async def declare_and_explain(client: Client) -> None:
    """Declare a queue, and raise an error of its own where that fails."""
    try:
        await client.call(client._dialect.Queue.Declare("q"))
    except Exception as error:
        raise RuntimeError("no queue, no work") from error


@pytest.mark.parametrize("declare", [declare_at_once, declare_and_explain])
@pytest.mark.parametrize("end", CUTS)
async def test_a_lost_connection_is_followed_by_another_whatever_on_connect_makes_of_it(
    world: World, end: str, declare: Callable[[Client], Awaitable[None]]
) -> None:
    world.broker.on("queue.declare", lambda received: CUTS[end](received.peer), connection=1)
    async with world.client(on_connect=declare):
        assert len(world.broker.peers) == 2


@pytest.mark.parametrize(("code", "attempts"), [(405, 2), (406, 1)])
async def test_errors_of_a_task_group_in_on_connect_count_as_each_of_them(
    world: World, code: int, attempts: int
) -> None:
    world.broker.on("queue.declare", close_channel(code), connection=1)
    client = world.client(on_connect=declare_at_once)
    if attempts == 1:
        with pytest.raises(ExceptionGroup):
            await client.__aenter__()
    else:
        async with client:
            pass
    assert len(world.broker.peers) == attempts


@pytest.mark.parametrize("name", ["basic.publish", "queue.declare"])
async def test_entering_that_is_cancelled_while_on_connect_waits_ends_both(world: World, name: str) -> None:
    async def set_up(client: Client) -> None:
        async with await client.channel() as channel:
            await channel.publish(b"")
        await client.call(world.amqp.Queue.Declare("q"))

    world.broker.on(name, hold)
    task = asyncio.create_task(world.client(on_connect=set_up).__aenter__())
    await world.broker.got(name)
    task.cancel()
    assert await outcomes(task) == ["CancelledError"]
