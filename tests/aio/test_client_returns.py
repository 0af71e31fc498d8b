"""Returned messages that are alike: who is told, who is told that it is uncertain, and how long it takes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.campaign import share
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


async def test_a_message_without_bcc_is_not_taken_for_one_with_it(world: World) -> None:
    """It may have had a queue, which was deleted before the other one came."""
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = await published(
            world, await client.channel(), {"id": 1}, {"BCC": ["nowhere"], "id": 1}, {"id": 2}
        )
        came = await world.broker.got("basic.publish", 3)
        send_back(came[1])
        came[2].ack(multiple=True)
        assert await outcomes(*sent) == ["UncertainReturnError", "UncertainReturnError", "ok"]


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


async def test_headers_that_come_back_in_another_order_are_the_same(world: World) -> None:
    """RabbitMQ 4 sorts them."""

    def react(received: Received) -> None:
        if received.properties.headers["a"] == 3:
            received.properties.headers = {"a": 3, "b": {"d": 1, "c": 2}}
            received.send_back()
        received.ack()

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        channel = await client.channel()
        sent = [
            await channel.publish_soon(
                b"", properties=world.amqp.BasicProperties(headers={"b": {"d": 1, "c": 2}, "a": number})
            )
            for number in (2, 3, 4)
        ]
        assert await outcomes(*sent) == ["ok", "ReturnedError", "ok"]


KINDS: list[tuple[bytes, dict[str, Any]]] = [
    (body, headers)
    for body in (b"", b"x")
    for headers in ({}, {"id": 1}, {"BCC": "a"}, {"BCC": "b"}, {"BCC": "b", "id": 1})
] + [(b"y", {"id": 2})]


def test_what_is_told_holds_for_as_many_messages_as_were_returned(amqp: Any) -> None:
    """Equal messages may stand for each other. Returns come in order, and confirms at any time after them."""
    one = st.tuples(st.sampled_from(range(len(KINDS))), st.booleans(), st.integers(0, 9))
    headers_of = returns.Headers(amqp, {})

    @given(st.lists(one, min_size=1, max_size=9))
    @example([(4, False, 2), (0, False, 0), (1, True, 1), (1, True, 0)])
    @settings(max_examples=share(20))
    def check(messages: list[tuple[int, bool, int]]) -> None:
        found = returns.Returns(headers_of)
        sent: dict[int, Publish] = {}
        told: dict[int, list[str]] = {}
        confirms: list[tuple[int, int, Publish]] = []  # when, and of which

        def confirm_until(when: int) -> None:
            for at, number, publish in sorted(confirms, key=lambda each: each[:2]):
                if at > when:
                    return
                confirms.remove((at, number, publish))
                del sent[number]
                doubt = None if publish.returned else found.settled(number)
                end = "returned" if publish.returned else "uncertain" if doubt else "arrived"
                told.setdefault(messages[number - 1][0], []).append(end)

        for number, (kind, is_returned, delay) in enumerate(messages, 1):
            body, headers = KINDS[kind]
            method, properties = amqp.Basic.Publish(mandatory=True), amqp.BasicProperties(headers=headers)
            sent[number] = Publish(SimpleNamespace(), method, properties, body)  # type: ignore[arg-type]
            confirms.append((number + delay, number, sent[number]))
            if is_returned:
                left = {name: value for name, value in headers.items() if name != "BCC"}
                found.know(sent)
                assert found.returned(amqp.Basic.Return(312), amqp.BasicProperties(headers=left), body)
            confirm_until(number)
        confirm_until(len(messages) + 10)
        assert [*found._places, *found._all.members, *found._all.parts] == []
        for kind, ends in told.items():
            truth = sum(is_returned for each, is_returned, _ in messages if each == kind)
            assert ends.count("returned") <= truth <= ends.count("returned") + ends.count("uncertain")
            if KINDS[kind] == (b"y", {"id": 2}):  # which no other kind looks like
                assert "uncertain" not in ends

    check()
