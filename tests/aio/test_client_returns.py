"""Returned messages that are alike: who is told, who is told that it is uncertain, and how long it takes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from support.scripted_broker import Received, hold
from world import World, outcomes

from amqpcodec.aio import Channel, ReturnedError, returns
from amqpcodec.aio.publishes import Publish


def send_back(received: Received) -> None:
    """Return a message as RabbitMQ does: without the header BCC."""
    if received.properties.headers:
        received.properties.headers.pop("BCC", None)
    received.send_back()


async def published(world: World, channel: Channel, *headers: dict[str, Any] | None) -> list[Any]:
    """Publish messages that differ in their headers alone; return their futures."""
    properties = [None if each is None else world.amqp.BasicProperties(headers=each) for each in headers]
    return [await channel.publish_soon(b"same", properties=each) for each in properties]


async def test_messages_that_differ_in_bcc_alone_are_all_told_that_one_was_returned(world: World) -> None:
    """RabbitMQ takes the one for its BCC, and returns the other, without it."""
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = await published(world, channel, {"BCC": ["there"]}, {"BCC": ["nowhere"]}, {"id": 1})
        came = await world.broker.got("basic.publish", 3)
        send_back(came[1])
        came[2].ack(multiple=True)
        assert await outcomes(*sent) == ["UncertainReturnError", "UncertainReturnError", "ok"]
        with pytest.raises(ReturnedError, match="this message or one like it was returned: 312 NO_ROUTE"):
            await sent[0]
        stats = client.stats()
    assert (stats.returned, stats.uncertain, stats.confirmed, stats.unmatched) == (1, 2, 1, 0)


async def test_a_message_that_is_equal_to_a_return_is_taken_before_others_with_bcc(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = await published(
            world, await client.channel(), {"BCC": ["there"], "id": 1}, {"id": 1}, {"id": 1}
        )
        came = await world.broker.got("basic.publish", 3)
        send_back(came[1])
        came[2].ack(multiple=True)
        assert await outcomes(*sent) == ["ok", "ReturnedError", "ok"]


async def test_of_messages_with_the_same_bcc_the_oldest_was_returned(world: World) -> None:
    """They are equal, so that either may be published again."""
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = await published(world, await client.channel(), *[{"BCC": ["nowhere"]}] * 3)
        came = await world.broker.got("basic.publish", 3)
        send_back(came[0])
        send_back(came[2])
        came[2].ack(multiple=True)
        assert await outcomes(*sent) == ["ReturnedError", "ReturnedError", "ok"]


async def test_only_what_was_published_before_a_return_is_uncertain_by_it(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = await published(world, channel, {"BCC": ["a"]}, {"BCC": ["b"]})
        came = await world.broker.got("basic.publish", 2)
        send_back(came[0])
        while client.stats().returned == 0:
            await asyncio.sleep(0)
        sent += await published(world, channel, {"BCC": ["c"]})
        came = await world.broker.got("basic.publish", 3)
        came[0].ack()
        came[1].nack()
        assert await outcomes(*sent[:2]) == ["UncertainReturnError", "NackedError"]
        came[2].peer.connection.send_message(  # of another exchange
            came[2].channel, world.amqp.Basic.Return(312, "NO_ROUTE", "e", ""), None, b"same"
        )
        came[2].ack()
        assert await outcomes(sent[2]) == ["ok"]
        stats = client.stats()
    assert (stats.uncertain, stats.nacked, stats.confirmed, stats.unmatched) == (1, 1, 1, 1)


async def test_the_last_of_those_that_are_alike_is_certain(world: World) -> None:
    """The return of one that is confirmed has come before its confirm."""
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = await published(world, await client.channel(), {"BCC": ["a"]}, {"BCC": ["b"]})
        for each in await world.broker.got("basic.publish", 2):
            send_back(each)
            each.ack()
        assert await outcomes(*sent) == ["UncertainReturnError", "ReturnedError"]


async def test_what_was_uncertain_on_a_lost_connection_is_published_again(world: World) -> None:
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        sent = await published(world, await client.channel(), {"BCC": ["a"]}, {"BCC": ["b"]})
        came = await world.broker.got("basic.publish", 2)
        send_back(came[0])
        came[0].peer.close()
        assert await outcomes(*sent) == ["ok", "ok"]
        assert client.stats().republished == 2


async def test_properties_that_were_changed_meanwhile_are_not_recognised_and_nothing_else(
    world: World,
) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = await published(world, channel, {"id": 1}, {"id": 2})
        changed = world.amqp.BasicProperties(headers={"id": 3})
        sent.append(await channel.publish_soon(b"same", properties=changed))
        came = await world.broker.got("basic.publish", 3)
        changed.headers = {"id": object()}
        send_back(came[1])
        send_back(came[2])
        came[2].ack(multiple=True)
        assert await outcomes(*sent) == ["UncertainReturnError", "ReturnedError", "UncertainReturnError"]


def lines(run: Callable[[], object]) -> int:
    """Return how many lines of `returns` a function runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != returns.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("differ_in", ["body", "headers", "BCC", "nothing"])
def test_finding_returned_messages_takes_no_longer_among_many(amqp: Any, differ_in: str) -> None:
    def come_back(count: int) -> int:
        found = returns.Returns(returns.Headers(amqp, {}))
        sent = {}
        for number in range(1, count + 1):
            headers = {"headers": {"id": number}, "BCC": {"BCC": number}}.get(differ_in, {})
            body = b"%d" % number if differ_in == "body" else b""
            properties, method = amqp.BasicProperties(headers=headers), amqp.Basic.Publish(mandatory=True)
            sent[number] = Publish(SimpleNamespace(), method, properties, body)  # type: ignore[arg-type]
        back = [
            (
                amqp.Basic.Return(312),
                amqp.BasicProperties(
                    headers={k: v for k, v in each.properties.headers.items() if k != "BCC"}
                ),
                each.body,
            )
            for each in sent.values()
        ]

        def run() -> None:
            for returned in back:
                found.know(sent)
                assert found.returned(*returned)
            assert [found.settled(number) for number in sent].count(None) == (
                0 if differ_in == "BCC" else count
            )

        taken = lines(run)
        assert [*found._places, *found._all.members, *found._all.parts] == []
        is_certain = [each.returned is not None for each in sent.values()]
        assert is_certain == [differ_in != "BCC"] * count
        return taken

    assert come_back(160) < 2.2 * come_back(80)
