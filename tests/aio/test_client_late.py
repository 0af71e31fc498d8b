"""Time limits and cancellation: the client says what is certain of what no one waits for any more."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Coroutine
from typing import Any

import pytest
from support.scripted_broker import hold
from world import World, cut

from amqpcodec.aio import Backoff, Channel, Client, LateError
from amqpcodec.errors import AmqpError

SENT = "it was sent, and the broker may have it"
NOT_SENT = "it was not sent, and never will be"
NEVER = Backoff(first=60, most=60)


def asked(
    world: World, what: str, client: Client, channel: Channel, timeout: float | None
) -> Coroutine[Any, Any, Any]:
    """Return one of the calls that have a time limit."""
    declare = world.amqp.Queue.Declare("q")
    calls = {
        "Client.call": lambda: client.call(declare, timeout=timeout),
        "Channel.call": lambda: channel.call(declare, timeout=timeout),
        "of the connection": lambda: client.call(
            world.amqp.Connection.UpdateSecret(b"", ""), timeout=timeout
        ),
        "get": lambda: channel.get("q", timeout=timeout),
        "publish": lambda: channel.publish(b"1", timeout=timeout),
    }
    return calls[what]()


NAMES = {
    "Client.call": "queue.declare",
    "Channel.call": "queue.declare",
    "of the connection": "connection.update-secret",
    "get": "basic.get",
    "publish": "basic.publish",
}


@pytest.mark.parametrize("how", ["late", "cancelled"])
@pytest.mark.parametrize("what", NAMES)
async def test_what_was_sent_may_have_an_effect(world: World, what: str, how: str) -> None:
    world.broker.on(NAMES[what], hold)
    async with world.client() as client:
        channel = await client.channel()
        if how == "late":
            with pytest.raises(
                LateError, match=rf"^no answer to {NAMES[what]} within 0\.05 seconds: {SENT}$"
            ) as late:
                await asked(world, what, client, channel, 0.05)
            assert late.value.was_sent
        else:
            task = asyncio.ensure_future(asked(world, what, client, channel, None))
            await world.broker.got(NAMES[what])
            task.cancel()
            with pytest.raises(asyncio.CancelledError, match=f"^{SENT}$"):
                await task
        assert len(await world.broker.got(NAMES[what])) == 1


@pytest.mark.parametrize("how", ["late", "cancelled"])
@pytest.mark.parametrize("what", NAMES)
async def test_what_was_not_sent_never_will_be(world: World, what: str, how: str) -> None:
    async with world.client(backoff=NEVER) as client:
        channel = await client.channel()
        await cut(client, world.broker.peers[0])
        if how == "late":
            with pytest.raises(LateError, match=f"seconds: {NOT_SENT}$") as late:
                await asked(world, what, client, channel, 0.02)
            assert not late.value.was_sent
        else:
            task = asyncio.ensure_future(asked(world, what, client, channel, None))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError, match=f"^{NOT_SENT}$"):
                await task
        if what == "publish":
            assert client.stats().withdrawn == 1
    assert world.broker.received(NAMES[what]) == []


async def test_a_message_that_waits_to_be_written_again_may_be_there(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client(backoff=NEVER) as client:
        channel = await client.channel()
        late = asyncio.ensure_future(channel.publish(b"1", timeout=0.1))
        await world.broker.got("basic.publish")
        await cut(client, world.broker.peers[0])
        with pytest.raises(LateError) as caught:
            await late
        assert caught.value.was_sent
        assert client.stats().abandoned == 1


@pytest.mark.parametrize("timeout", [0.02, 5, None])
async def test_an_answer_in_time_is_that_answer(world: World, timeout: float | None) -> None:
    async with world.client() as client:
        channel = await client.channel()
        assert await channel.publish(b"1", timeout=timeout) is None
        stats = client.stats()
    assert (stats.confirmed, stats.abandoned, stats.withdrawn) == (1, 0, 0)


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_confirm_in_the_turn_of_the_time_limit_counts(world: World, is_taken: bool) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        publishing = asyncio.ensure_future(channel.publish(b"1", timeout=60))
        await world.broker.got("basic.publish")
        loop = asyncio.get_running_loop()
        [timer] = [
            each for each in loop._scheduled if not each.cancelled() and each.when() - loop.time() > 50
        ]  # type: ignore[attr-defined]
        channel._publishes.settled((1,), is_taken)
        timer._run()
        timer.cancel()
        [outcome] = await asyncio.gather(publishing, return_exceptions=True)
        assert (outcome is None) is is_taken
        assert client.stats().abandoned == 0


async def test_the_program_sees_its_own_time_limit_with_what_is_certain(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.02):
                await channel.publish(b"1")
        assert str(caught.value.__cause__) == SENT


def test_a_late_error_is_a_time_out_and_can_be_copied() -> None:
    error = LateError("no answer", True)
    assert isinstance(error, TimeoutError)
    assert isinstance(error, AmqpError)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (str(again), again.was_sent) == (f"no answer: {SENT}", True)
