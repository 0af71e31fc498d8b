"""Calls: each reply to who has asked for it, and each error to those whom it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from support.scripted_broker import Received, close_channel, hold
from support.tiers import few
from world import World, cut, outcomes

from amqpcodec import EncodeError, ReplyError
from amqpcodec.aio import Backoff, Channel, Client, link
from amqpcodec.aio.calls import OF_ONE_CHANNEL
from amqpcodec.errors import ConnectionLostError, LocalProtocolError
from amqpcodec.reply_errors import AmqpNotFound, AmqpPreconditionFailed


async def test_any_request_is_answered_by_its_reply(world: World) -> None:
    amqp = world.amqp
    async with world.client() as client:
        channel = await client.channel()
        for method, reply in [
            (amqp.Exchange.Declare("e", "topic"), amqp.Exchange.DeclareOk),
            (amqp.Queue.Declare("q", durable=True), amqp.Queue.DeclareOk),
            (amqp.Queue.Bind("q", "e", "#"), amqp.Queue.BindOk),
            (amqp.Exchange.Bind("e", "f", "#"), amqp.Exchange.BindOk),
            (amqp.Queue.Purge("q"), amqp.Queue.PurgeOk),
            (amqp.Queue.Unbind("q", "e", "#"), amqp.Queue.UnbindOk),
            (amqp.Queue.Delete("q"), amqp.Queue.DeleteOk),
            (amqp.Exchange.Delete("e"), amqp.Exchange.DeleteOk),
            (amqp.Basic.Qos(prefetch_count=5), amqp.Basic.QosOk),
            (amqp.Basic.Recover(requeue=True), amqp.Basic.RecoverOk),
            (amqp.Channel.Flow(True), amqp.Channel.FlowOk),
            (amqp.Confirm.Select(), amqp.Confirm.SelectOk),
        ]:
            assert type(await channel.call(method)) is reply
            if method.spec.name not in OF_ONE_CHANNEL:
                assert type(await client.call(method)) is reply


async def test_a_transaction_is_made_of_calls(world: World) -> None:
    amqp = world.amqp
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        await channel.call(amqp.Tx.Select())
        await channel.publish(b"1")
        assert type(await channel.call(amqp.Tx.Commit())) is amqp.Tx.CommitOk
        await channel.publish(b"2")
        assert type(await channel.call(amqp.Tx.Rollback())) is amqp.Tx.RollbackOk
    names = [each.name for each in world.broker.log if each.name.startswith(("tx", "basic"))]
    assert names == ["tx.select", "basic.publish", "tx.commit", "basic.publish", "tx.rollback"]


async def test_replies_are_told_apart_by_their_requests(world: World) -> None:
    async with world.client() as client:
        channels = [await client.channel() for _ in range(5)]

        async def declare(number: int) -> None:
            channel: Any = [*channels, client][number % 6]
            reply = await channel.call(world.amqp.Queue.Declare(f"q{number}"))
            assert reply.queue == f"q{number}"

        await asyncio.gather(*(declare(number) for number in range(300)))


async def test_an_equal_request_is_another_one(world: World) -> None:
    world.broker.on("queue.declare", hold)
    async with world.client() as client:
        channel = await client.channel()
        method = world.amqp.Queue.Declare("")
        calls = [asyncio.ensure_future(channel.call(each)) for each in (method, world.amqp.Queue.Declare(""))]
        came = await world.broker.got("queue.declare", 2)
        for number, each in enumerate(came):
            each.reply(world.amqp.Queue.DeclareOk(f"gen-{number}", 0, 0))
        assert [reply.queue for reply in await asyncio.gather(*calls)] == ["gen-0", "gen-1"]


async def test_one_request_is_sent_twice(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        method = world.amqp.Queue.Declare("q")
        first, second = await asyncio.gather(channel.call(method), channel.call(method))
        assert first.queue == second.queue == "q"


async def test_without_a_reply_nothing_is_waited_for(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
        assert await channel.call(world.amqp.Queue.Declare("q", no_wait=True)) is None
        assert await client.call(world.amqp.Queue.Declare("r", no_wait=True)) is None
        await world.broker.got("queue.declare", 2)


@pytest.mark.parametrize(
    ("code", "error"), [(404, AmqpNotFound), (406, AmqpPreconditionFailed), (403, ReplyError)]
)
async def test_a_call_that_is_refused_raises_the_code_and_the_channel_is_over(
    world: World, code: int, error: type[ReplyError]
) -> None:
    world.broker.on("queue.declare", close_channel(code))
    async with world.client() as client:
        channel, other = await client.channel(), await client.channel()
        with pytest.raises(error, match="as the test says") as caught:
            await channel.call(world.amqp.Queue.Declare("q"))
        assert caught.value.code == code
        with pytest.raises(error):
            await channel.call(world.amqp.Queue.Purge("q"))
        with pytest.raises(error):
            await channel.publish(b"")
        with pytest.raises(error):
            await channel.get("q")
        with pytest.raises(error):
            async with channel.consume("q"):
                pytest.fail("the channel is over")
        await channel.close()  # it is
        await other.publish(b"")
        assert await other.call(world.amqp.Queue.Purge("q"))


async def test_a_call_of_the_client_that_is_refused_ends_no_other(world: World) -> None:
    def refuse(received: Received) -> None:
        if received.method.queue == "bad":
            received.close_channel(406)
        else:
            received.answer()

    world.broker.on("queue.declare", refuse)
    async with world.client() as client:
        names = ["a", "bad", "b", "bad", "c"]
        calls = [client.call(world.amqp.Queue.Declare(name)) for name in names]
        bad = "AmqpPreconditionFailed"
        assert await outcomes(*calls) == ["ok", bad, "ok", bad, "ok"]
        assert (await client.call(world.amqp.Queue.Declare("d"))).queue == "d"


async def test_calls_of_the_client_one_after_the_other_share_a_channel(world: World) -> None:
    async with world.client() as client:
        for _ in range(10):
            await client.call(world.amqp.Queue.Declare("q"))
    assert len(world.broker.received("channel.open")) == 1


async def test_a_channel_that_the_broker_closes_fails_all_that_waits_on_it(world: World) -> None:
    for name in ("basic.publish", "queue.declare", "basic.get"):
        world.broker.on(name, hold)
    async with world.client() as client:
        channel, other = await client.channel(window=2), await client.channel()
        async with channel.consume("q") as deliveries:
            waiting = [
                *(asyncio.ensure_future(channel.publish(b"")) for _ in range(3)),
                asyncio.ensure_future(channel.publish_soon(b"")),
                asyncio.ensure_future(channel.call(world.amqp.Queue.Declare("q"))),
                asyncio.ensure_future(channel.get("q")),
                asyncio.ensure_future(anext(deliveries)),
            ]
            unharmed = asyncio.ensure_future(other.publish(b""))
            await world.broker.got("basic.publish", 3)
            [get] = await world.broker.got("basic.get")
            get.close_channel(404)
            assert await outcomes(*waiting) == ["AmqpNotFound"] * 7
        assert not unharmed.done()
        for each in world.broker.received("basic.publish"):
            if each.channel == other._number:
                each.ack()
        await unharmed
    assert len(world.broker.received("channel.open")) == 2  # it is not opened again


async def test_deliveries_after_the_end_of_their_channel_are_counted_and_harm_nobody(world: World) -> None:
    def close(get: Received) -> None:
        get.close_channel(404)
        deliver = world.amqp.Basic.Deliver("ct", 1, False, "", "q")
        late = world.amqp.encode_message(get.channel, deliver, None, b"late") * 5
        get.peer.send_garbage(get.peer.connection.data_to_send() + late)

    world.broker.on("basic.get", close)
    async with world.client() as client:
        channel = await client.channel()
        async with channel.consume("q", consumer_tag="ct"):
            for ignored in (5, 10):
                with pytest.raises(AmqpNotFound):
                    await (await client.channel()).get("none")
                await client.call(world.amqp.Queue.Purge("q"))
                assert client.stats().ignored == ignored
        [get, _] = world.broker.received("basic.get")
        await cut(client, get.peer)
        await client.call(world.amqp.Queue.Purge("q"))
        assert (client.stats().ignored, client.stats().connections) == (10, 2)


async def test_a_channel_number_is_used_again(world: World) -> None:
    world.broker.on("queue.declare", close_channel(404))
    async with world.client(channel_max=2) as client:
        for _ in range(10):
            channel = await client.channel()
            with pytest.raises(AmqpNotFound):
                await channel.call(world.amqp.Queue.Declare("q"))
        for _ in range(10):
            async with await client.channel() as channel:
                await channel.publish(b"")
            await client.call(world.amqp.Queue.Purge("q"))  # the channel's end is answered before


async def test_there_are_as_many_channels_as_was_agreed(world: World) -> None:
    async with world.client(channel_max=2) as client:
        kept = [await client.channel() for _ in range(2)]
        with pytest.raises(LocalProtocolError, match="all 2 channels are in use"):
            await client.channel()
        with pytest.raises(LocalProtocolError, match="all 2 channels are in use"):
            await client.call(world.amqp.Queue.Declare("q"))
        await asyncio.gather(*(channel.publish(b"") for channel in kept))


async def test_two_thousand_channels_are_open_soon(world: World) -> None:
    async with world.client() as client:
        channels = [await client.channel() for _ in range(2000)]
        await channels[-1].call(world.amqp.Queue.Declare("q"))
        assert len(world.broker.received("channel.open")) == 2000
        assert len({channel._number for channel in channels}) == 2000


async def test_a_call_that_is_not_answered_in_time_says_so_and_its_reply_goes_nowhere(world: World) -> None:
    world.broker.on("queue.declare", hold)
    async with world.client() as client:
        channel = await client.channel()
        for caller in (channel, client):
            with pytest.raises(TimeoutError, match=r"no answer to queue\.declare within 0\.01 seconds"):
                await caller.call(world.amqp.Queue.Declare("late"), timeout=0.01)
        for late in await world.broker.got("queue.declare", 2):
            late.answer()
        world.broker.on("queue.declare", Received.answer)
        assert (await channel.call(world.amqp.Queue.Declare("q"))).queue == "q"
        assert (await client.call(world.amqp.Queue.Declare("r"), timeout=5)).queue == "r"


@pytest.mark.parametrize("how", ["time", "cancelled", "no answer"])
async def test_the_error_of_a_call_that_is_over_for_its_caller_is_no_error_of_the_next(
    world: World, how: str
) -> None:
    world.broker.on("queue.declare", hold)
    amqp = world.amqp
    async with world.client() as client:
        method = amqp.Queue.Declare("late", no_wait=how == "no answer")
        call = asyncio.ensure_future(client.call(method, timeout=0.01 if how == "time" else None))
        [late] = await world.broker.got("queue.declare")
        if how == "cancelled":
            call.cancel()
        wanted = {"time": "LateError", "cancelled": "CancelledError", "no answer": "ok"}
        assert await outcomes(call) == [wanted[how]]
        with suppress(LocalProtocolError):  # it is closed, where there is nothing to wait for
            late.close_channel(404)
        await client.call(amqp.Queue.Purge("q"))
    [purge] = world.broker.received("queue.purge")
    assert (late.channel, purge.channel) == (1, 2)


async def test_an_error_that_nobody_waits_for_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def react(received: Received) -> None:
        received.close_channel(404, "cut within a character \udce2\udc82")

    world.broker.on("queue.declare", react)
    async with world.client() as client:
        await client.call(world.amqp.Queue.Declare("q", no_wait=True))
        await client.call(world.amqp.Queue.Purge("q"))
        while "a request was refused after all: 404 cut within a character ??" not in caplog.text:
            await asyncio.sleep(0)


async def test_an_answer_that_never_comes_makes_no_other_call_wait(world: World) -> None:
    def react(received: Received) -> None:
        if received.method.queue != "stuck" and received.channel not in stuck:
            received.answer()
        else:
            stuck.add(received.channel)  # what comes after it on its channel waits as well

    stuck: set[int] = set()
    world.broker.on("queue.declare", react)
    async with world.client() as client:
        with pytest.raises(TimeoutError):
            await client.call(world.amqp.Queue.Declare("stuck"), timeout=0.01)
        for _ in range(3):
            await client.call(world.amqp.Queue.Declare("q"), timeout=5)


WAITS: dict[str, Callable[[Channel, Any], Any]] = {
    "call": lambda channel, declare: channel.call(declare),
    "get": lambda channel, _: channel.get("q"),
    "publish": lambda channel, _: channel.publish(b""),
    "consume": lambda channel, _: channel.consume("q").__aenter__(),
    "room": lambda channel, _: channel.publish_soon(b""),
}


@pytest.mark.parametrize("what", WAITS)
async def test_who_waits_is_cancelled_also_in_the_turn_in_which_the_channel_ends(
    world: World, what: str
) -> None:
    """And nobody is told of an error that nobody asks for."""
    for name in ("queue.declare", "basic.get", "basic.publish", "basic.consume"):
        world.broker.on(name, hold)
    async with world.client() as client:
        channel = await client.channel(window=1)
        if what == "room":
            (await channel.publish_soon(b"")).add_done_callback(asyncio.Future.exception)
        waiting = asyncio.ensure_future(WAITS[what](channel, world.amqp.Queue.Declare("q")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        channel._fail(AmqpNotFound("as the test says"))
        waiting.cancel()
        assert await outcomes(waiting) == ["CancelledError"]


@pytest.mark.parametrize("ended", ["lost", "refused", "empty"])
async def test_who_fetches_is_cancelled_whatever_else_happens_in_that_turn(world: World, ended: str) -> None:
    world.broker.on("basic.get", hold)
    async with world.client() as client:
        channel = await client.channel()
        get = asyncio.ensure_future(channel.get("q"))
        await world.broker.got("basic.get")
        [[request, _]] = channel._calls._waiting
        if ended == "lost":
            client._link.stream._transport.abort()
            client._link.stream.connection_lost(None)
        elif ended == "refused":
            channel._fail(AmqpNotFound("as the test says"))
        else:
            channel._on_reply(request, world.amqp.Basic.GetEmpty())
        get.cancel()
        assert await outcomes(get) == ["CancelledError"]


async def test_a_call_that_is_cancelled_leaves_the_others_alone(world: World) -> None:
    world.broker.on("queue.declare", hold)
    async with world.client() as client:
        channel = await client.channel()
        calls = [
            asyncio.ensure_future(channel.call(world.amqp.Queue.Declare(f"{number}"))) for number in range(4)
        ]
        came = await world.broker.got("queue.declare", 4)
        calls[1].cancel()
        for each in came:
            each.answer()
        assert await outcomes(*calls) == ["ok", "CancelledError", "ok", "ok"]
        assert calls[2].result().queue == "2"


async def test_what_a_call_does_not_send_is_refused(world: World) -> None:
    amqp = world.amqp
    async with world.client() as client:
        channel = await client.channel()
        for method, reason in [
            (amqp.Channel.Open(), "sent by"),
            (amqp.Channel.Close(200, "", 0, 0), "sent by"),
            (amqp.Connection.Close(200, "", 0, 0), "sent by"),
            (amqp.Basic.Consume("q"), "sent by"),
            (amqp.Basic.Cancel("t"), "sent by"),
            (amqp.Basic.Get("q"), "sent by"),
            (amqp.Basic.Ack(1), "sent by"),
            (amqp.Basic.Publish(), "sent by"),
            (amqp.Queue.DeclareOk("", 0, 0), "has no reply"),
        ]:
            for caller in (channel, client):
                with pytest.raises(LocalProtocolError, match=reason):
                    await caller.call(method)
        for method in (amqp.Connection.Open("/"), amqp.Connection.UpdateSecret(b"", "")):
            with pytest.raises(LocalProtocolError):
                await channel.call(method)
        with pytest.raises(LocalProtocolError):
            await client.call(amqp.Connection.Open("/"))
        with pytest.raises(EncodeError, match="queue"):
            await channel.call(amqp.Queue.Declare("x" * 300))
        await channel.call(amqp.Queue.Declare("q"))


async def test_a_method_of_the_connection_is_called_by_the_client(world: World) -> None:
    amqp = world.amqp
    async with world.client() as client:
        reply = await client.call(amqp.Connection.UpdateSecret(b"new", "expired"))
        assert type(reply) is amqp.Connection.UpdateSecretOk
        world.broker.on("connection.update-secret", hold)
        waiting = asyncio.ensure_future(client.call(amqp.Connection.UpdateSecret(b"newer", "expired")))
        await world.broker.got("connection.update-secret", 2)
        world.broker.peers[0].abort()
        with pytest.raises(ConnectionLostError):
            await waiting


@pytest.mark.parametrize("options", [{"window": 0}, {"window": -1}, {"prefetch": -1}, {"prefetch": 1 << 16}])
async def test_numbers_that_no_channel_can_have_are_refused(world: World, options: Any) -> None:
    async with world.client() as client:
        with pytest.raises(ValueError, match="must be"):
            await client.channel(**options)


@pytest.mark.parametrize(
    ("channel_max", "at_once"), few([(2047, link.CALLS_AT_ONCE), (8, 4), (1, 1)], 2, "further limits")
)
async def test_more_calls_at_once_than_there_are_channels_wait_for_one_another(
    world: World, channel_max: int, at_once: int
) -> None:
    async with world.client(channel_max=channel_max) as client:
        calls = [client.call(world.amqp.Queue.Declare("q")) for _ in range(2200)]
        assert await outcomes(*calls) == ["ok"] * 2200
        assert len(world.broker.received("channel.open")) == at_once


async def test_calls_that_wait_for_others_wait_for_the_next_connection_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "CALLS_AT_ONCE", 1)
    world.broker.on("queue.purge", lambda received: received.peer.abort(), connection=1)

    async def declare(client: Client) -> None:
        await client.call(world.amqp.Queue.Declare("q"))

    async with world.client(on_connect=declare) as client:
        calls = [client.call(world.amqp.Queue.Purge("q")) for _ in range(4)]
        assert await outcomes(*calls) == ["ConnectionLostError"] + ["ok"] * 3


async def test_who_waits_for_a_connection_is_told_that_the_channel_is_closed(world: World) -> None:
    async with world.client(backoff=Backoff(first=30)) as client:
        channel = await client.channel()
        await cut(client, world.broker.peers[0])
        call = asyncio.create_task(channel.call(world.amqp.Queue.Declare("q")))
        get = asyncio.create_task(channel.get("q"))
        other = asyncio.create_task(client.call(world.amqp.Queue.Declare("q")))
        await asyncio.sleep(0)
        await channel.close()
        assert await outcomes(call, get) == ["LocalProtocolError"] * 2
        assert not other.done()
        await client.close(0)
        assert await outcomes(other) == ["ConnectionLostError"]
