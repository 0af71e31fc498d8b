"""Ending: what `close` waits for, what a cancellation does not wait for, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest
from support.scripted_broker import CONNECT, Peer, Received, deliver, hold
from world import World, cut, numbers, outcomes, published

from amqpcodec.aio import Client, stream
from amqpcodec.errors import ConnectionLostError, LocalProtocolError

LONG = 60.0  # seconds: a test that waits so long fails


async def test_close_waits_for_confirms(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:
        sent = published(await client.channel(window=2), 5)
        await world.broker.got("basic.publish", 2)
        closing = asyncio.ensure_future(client.close())
        world.broker.on("basic.publish", Received.ack)
        for each in world.broker.received("basic.publish"):
            each.ack()
        await closing
        assert await outcomes(*sent) == ["ok"] * 5
    assert numbers(world.broker.bodies()) == [1, 2, 3, 4, 5]


async def test_leaving_the_client_waits_for_confirms_too(world: World) -> None:
    async with world.client(close_seconds=LONG) as client:
        channel = await client.channel()
        futures = [await channel.publish_soon(b"%d" % number) for number in range(20)]
    assert all(future.done() and future.exception() is None for future in futures)


async def test_nothing_of_the_client_runs_once_it_is_closed(world: World) -> None:
    async with world.client() as client:
        running = client._task
        assert running is not None
        await client.close()
        assert running.done()


async def test_close_waits_no_longer_than_it_may_and_says_what_is_not_known(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = published(await client.channel(window=2), 3)
        await world.broker.got("basic.publish", 2)
        await client.close(0.02)
        assert await outcomes(*sent) == ["ConnectionLostError"] * 3
        with pytest.raises(ConnectionLostError, match="the client is closed"):
            sent[0].result()
        assert client.stats().unconfirmed == 3
    await world.broker.peers[0].ended.wait()


@pytest.mark.parametrize("whose", ["channel", "client"])
async def test_close_waits_for_confirms_through_a_lost_connection(world: World, whose: str) -> None:
    setups: list[Any] = []

    async def declare(client: Client) -> None:
        setups.append(await client.call(world.amqp.Queue.Declare("q")))

    world.broker.on("basic.publish", hold, connection=1)
    async with world.client(close_seconds=LONG, on_connect=declare) as client:
        channel = await client.channel(window=2)
        sent = published(channel, 3)
        await world.broker.got("basic.publish", 2)
        closing = asyncio.ensure_future((channel if whose == "channel" else client).close())
        await asyncio.sleep(0)
        world.broker.peers[0].abort()
        await closing
        assert await outcomes(*sent) == ["ok"] * 3
    assert len(setups) == 2


@pytest.mark.parametrize("asks", ["client", "channel of before", "channel of its own"])
async def test_close_lets_on_connect_finish_which_confirms_wait_for(world: World, asks: str) -> None:
    """It has a call under way as the client is closed, and others to make."""
    runs: list[int] = []
    channels: list[Any] = []

    async def set_up(client: Client) -> None:
        runs.append(len(world.broker.peers))
        if not channels:
            return
        own = await client.channel()
        caller: Any = {"client": client, "channel of before": channels[0], "channel of its own": own}[asks]
        for name in ("a", "b"):
            await caller.call(world.amqp.Queue.Declare(name))
        await own.publish(b"9")
        await own.close()

    world.broker.on("basic.publish", hold, connection=1)
    async with world.client(close_seconds=LONG, on_connect=set_up) as client:
        channels.append(await client.channel())
        sent = published(channels[0], 5)
        await world.broker.got("basic.publish", 5)
        world.broker.on("queue.declare", hold)
        world.broker.peers[0].abort()
        [declare] = await world.broker.got("queue.declare")
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0)
        for refused in (channels[0].publish(b""), client.call(world.amqp.Queue.Declare("q"))):
            with pytest.raises(ConnectionLostError, match="the client is closed"):
                await refused
        world.broker.on("queue.declare", Received.answer)
        declare.answer()
        await closing
        assert await outcomes(*sent) == ["ok"] * 5
    assert runs == [1, 2]
    assert numbers(world.broker.bodies(connection=2)) == [9, 1, 2, 3, 4, 5]


async def test_what_on_connect_has_opened_takes_nothing_new_after_it_once_the_client_is_closed(
    world: World,
) -> None:
    channels: list[Any] = []

    async def set_up(client: Client) -> None:
        channels.append(await client.channel())
        await client.call(world.amqp.Queue.Declare("q"))

    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG, on_connect=set_up) as client:
        [sent] = published(channels[0], 1)
        [first] = await world.broker.got("basic.publish")
        world.broker.on("queue.declare", hold)
        first.peer.abort()
        [_, declare] = await world.broker.got("queue.declare", 2)
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0)
        declare.answer()
        [_, again] = await world.broker.got("basic.publish", 2)
        for channel in channels:
            with pytest.raises(ConnectionLostError, match="the client is closed"):
                await channel.publish(b"2")
        again.ack()
        await closing
        await sent


async def test_a_channel_that_is_closed_ends_its_consumers(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            waiting = asyncio.ensure_future(anext(deliveries))
            await world.broker.got("basic.consume")
            await channel.close()
            with pytest.raises(LocalProtocolError, match="the channel is closed"):
                await waiting


async def test_close_sends_the_acknowledgements_of_its_turn(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            for _ in range(2):
                (await anext(deliveries)).ack()
            await client.close()
        assert client.stats().acknowledged == 2
    await world.broker.peers[0].ended.wait()
    assert world.broker.received("basic.ack")[-1].tags[-1] == 2


@pytest.mark.parametrize("seconds", [0, 0.5])
async def test_close_ends_all_that_waits_for_something_else(world: World, seconds: float) -> None:
    for name in ("queue.declare", "basic.get"):
        world.broker.on(name, hold)
    async with world.client() as client:
        channel = await client.channel(window=1)
        async with channel.consume("q") as deliveries:
            waiting = [
                asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
                asyncio.ensure_future(client.call(world.amqp.Queue.Declare("q"))),
                asyncio.ensure_future(channel.get("q")),
                asyncio.ensure_future(anext(deliveries)),
            ]
            await world.broker.got("basic.get")
            await client.close(seconds)
            assert await outcomes(*waiting) == ["ConnectionLostError"] * 4
        for each in (channel.get("q"), client.call(world.amqp.Queue.Declare("q")), client.channel()):
            with pytest.raises(ConnectionLostError, match="the client is closed"):
                await each


async def test_close_while_there_is_no_connection_fails_what_waits(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(window=1)
        world.broker.stop_listening()
        await cut(client, world.broker.peers[0])
        waiting = [
            asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
            asyncio.ensure_future(client.call(world.amqp.Queue.Declare("q"))),
            asyncio.ensure_future(client.channel()),
            *published(channel, 1),
            asyncio.ensure_future(channel.publish_soon(b"")),
            asyncio.ensure_future(channel.consume("q").__aenter__()),
        ]
        await asyncio.sleep(0)
        await client.close(0.01)
        assert await outcomes(*waiting) == ["ConnectionLostError"] * 6


async def test_close_during_the_first_attempts_ends_entering(world: World) -> None:
    world.broker.on(CONNECT, Peer.abort)
    client = world.client()
    entering = asyncio.ensure_future(client.__aenter__())
    await world.broker.connected(2)
    await client.close()
    assert await outcomes(entering) == ["ConnectionLostError"]


async def test_close_may_be_called_by_several_and_again(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        await asyncio.gather(client.close(), client.close(), client.close())
        await client.close()
        await channel.close()
    closes = [each for each in world.broker.log if each.name == "connection.close"]
    assert len(closes) <= 1
    await world.client().close()  # never entered


async def test_close_in_on_connect_ends_the_client(world: World) -> None:
    async def close(client: Client) -> None:
        await client.close()

    with pytest.raises(ConnectionLostError, match="the client is closed"):
        async with world.client(on_connect=close):
            pytest.fail("it is closed")


async def test_close_by_one_task_eats_no_events_of_another(world: World) -> None:
    """Whoever closes a channel, the others get their replies, confirms and deliveries."""
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:
        busy, other = await client.channel(), await client.channel()
        sent = published(busy, 3) + published(other, 3)
        came = await world.broker.got("basic.publish", 6)
        async with other.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            closing = asyncio.ensure_future(busy.close())
            waiting = asyncio.ensure_future(anext(deliveries))
            assert (await other.call(world.amqp.Queue.Declare("q"))).queue == "q"
            consume.deliver(b"1")
            assert (await waiting).body == b"1"
            for each in came:
                each.ack()
            await closing
            assert await outcomes(*sent) == ["ok"] * 6
            consume.deliver(b"2")
            assert (await anext(deliveries)).body == b"2"


async def test_a_closed_channel_takes_nothing_and_the_client_goes_on(world: World) -> None:
    async with world.client() as client:
        async with await client.channel(window=1) as channel:
            deferred = await channel.publish_soon(b"1")
        assert deferred.done()
        for call in (
            channel.publish(b""),
            channel.publish_soon(b""),
            channel.call(world.amqp.Queue.Declare("q")),
            channel.get("q"),
            channel.consume("q").__aenter__(),
        ):
            with pytest.raises(LocalProtocolError, match="the channel is closed"):
                await call
        await channel.close()
        await (await client.channel()).publish(b"2")
        await cut(client, world.broker.peers[0])
        await client.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("channel.open", connection=2)) == 2  # not the closed one


async def test_a_channel_that_is_closed_twice_waits_twice(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:
        channel = await client.channel()
        sent = published(channel, 1)
        [came] = await world.broker.got("basic.publish")
        closing = [asyncio.ensure_future(channel.close()) for _ in range(3)]
        await client.call(world.amqp.Queue.Declare("q"))
        assert not any(task.done() for task in closing)
        came.ack()
        await asyncio.gather(*closing)
        assert sent[0].done()


async def test_who_closes_a_channel_at_once_does_not_wait_for_who_closes_it_slowly(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:
        channel = await client.channel()
        sent = published(channel, 1)
        await world.broker.got("basic.publish")
        closing = asyncio.ensure_future(channel.close())
        await asyncio.sleep(0)
        await channel.close(0)
        await asyncio.wait_for(closing, 5)
        assert await outcomes(*sent) == ["LocalProtocolError"]
        await client.call(world.amqp.Queue.Declare("q"))


async def test_a_channel_that_is_closed_while_the_client_is_raises_that_the_client_is_closed(
    world: World,
) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:
        channel = await client.channel()
        sent = published(channel, 1)
        await world.broker.got("basic.publish")
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0)
        await channel.close(0)
        assert await outcomes(closing, *sent) == ["ok", "ConnectionLostError"]


async def test_a_channel_that_is_left_with_an_exception_waits_for_nothing(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(close_seconds=LONG) as client:

        async def fail() -> None:
            async with await client.channel() as channel:
                await channel.publish_soon(b"")
                raise KeyError

        with pytest.raises(KeyError):
            await asyncio.wait_for(fail(), 5)


async def test_a_client_that_is_left_with_an_exception_ends_at_once(world: World) -> None:
    world.broker.on("basic.publish", hold)

    async def fail() -> None:
        async with world.client(close_seconds=LONG) as client:
            await (await client.channel()).publish_soon(b"")
            await world.broker.got("basic.publish")
            world.broker.peers[0].stop_reading()
            raise KeyError

    with pytest.raises(KeyError):
        await asyncio.wait_for(fail(), 5)


async def working(world: World, begun: asyncio.Event) -> None:
    """A program amid its work, with a broker that answers nothing any more."""
    async with world.client(close_seconds=LONG) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries, asyncio.TaskGroup() as group:
            group.create_task(channel.publish(b""))
            group.create_task(channel.call(world.amqp.Queue.Declare("q")))
            group.create_task(client.call(world.amqp.Queue.Declare("q")))
            await world.broker.got("queue.declare", 2)
            await world.broker.got("basic.publish")
            world.broker.peers[0].stop_reading()
            begun.set()
            await anext(deliveries)


async def test_a_program_that_is_cancelled_ends_at_once(world: World) -> None:
    world.broker.on("queue.declare", hold)
    world.broker.on("basic.publish", hold)
    begun = asyncio.Event()
    program = asyncio.ensure_future(working(world, begun))
    await begun.wait()
    program.cancel()
    done, _ = await asyncio.wait((program,), timeout=5)
    assert done
    assert program.cancelled()


@pytest.mark.parametrize("why", ["confirms", "close-ok"])
async def test_a_close_that_is_cancelled_ends_at_once(world: World, why: str) -> None:
    world.broker.on("basic.publish", hold)
    client = await world.client(close_seconds=LONG).__aenter__()
    channel = await client.channel()
    future = await channel.publish_soon(b"")
    [came] = await world.broker.got("basic.publish")
    if why == "close-ok":
        came.ack()
        await future
    world.broker.peers[0].stop_reading()
    closing = asyncio.ensure_future(client.close())
    await asyncio.wait((closing,), timeout=0.02)
    closing.cancel()
    done, _ = await asyncio.wait((closing,), timeout=5)
    assert done
    assert closing.cancelled()
    assert future.done()
    if not future.cancelled():
        future.exception()


async def test_a_close_that_is_cancelled_in_the_turn_of_the_answer_is_cancelled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await world.client(close_seconds=LONG).__aenter__()
    assert client._link is not None
    answered = client._link.stream.close

    async def close() -> None:
        await answered()
        asyncio.get_running_loop().call_soon(closing.cancel)

    monkeypatch.setattr(client._link.stream, "close", close)
    closing = asyncio.ensure_future(client.close())
    assert await outcomes(closing) == ["CancelledError"]


async def test_a_broker_that_does_not_answer_the_close_is_left_in_time(world: World) -> None:
    async with world.client() as client:
        world.broker.peers[0].stop_reading()
        await asyncio.wait_for(client.close(0.02), 5)


async def test_entering_that_is_cancelled_leaves_nothing(world: World) -> None:
    world.broker.on("connection.start-ok", hold)
    entering = asyncio.ensure_future(world.client(close_seconds=LONG).__aenter__())
    await world.broker.got("connection.start-ok")
    entering.cancel()
    done, _ = await asyncio.wait((entering,), timeout=5)
    assert done
    assert entering.cancelled()
    await world.broker.peers[0].ended.wait()


def test_an_interrupt_ends_at_once(world: World) -> None:
    """Ctrl-C, as `asyncio.run` handles it."""
    world.broker.on("queue.declare", hold)
    world.broker.on("basic.publish", hold)

    async def program() -> None:
        async def interrupt() -> None:
            await begun.wait()
            signal.raise_signal(signal.SIGINT)

        begun = asyncio.Event()
        interrupting = asyncio.ensure_future(interrupt())
        async with world.broker:
            await working(world, begun)
        await interrupting

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored, as under nohup
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(asyncio.wait_for(program(), 20))
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_client_is_entered_before_it_is_used_and_once(world: World) -> None:
    client = world.client()
    for call in (client.channel(), client.call(world.amqp.Queue.Declare("q"))):
        with pytest.raises(LocalProtocolError, match="not entered"):
            await call
    async with client:
        with pytest.raises(LocalProtocolError, match="once"):
            await client.__aenter__()
        await client.call(world.amqp.Queue.Declare("q"))


async def test_a_peer_that_never_reads_the_rest_is_cut_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LINGER_SECONDS", 0.02)
    client = await world.client().__aenter__()
    channel = await client.channel(window=100)
    await channel.call(world.amqp.Queue.Declare("q"))
    world.broker.peers[0].stop_reading()
    sent = [asyncio.ensure_future(channel.publish(bytes(100_000))) for _ in range(100)]
    await asyncio.wait(sent, timeout=0.02)
    transport = client._link.stream._transport
    await client.close(0.02)
    assert await outcomes(*sent) == ["ConnectionLostError"] * 100
    while transport._sock is not None:
        await asyncio.sleep(0.005)
