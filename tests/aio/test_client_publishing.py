"""Publishing: confirms, returns, windows, and what holds publishers back."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
from array import array
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from support.scripted_broker import Received, close_channel, hold, send_back
from world import World, numbers, outcomes, published

from amqpcodec import EncodeError
from amqpcodec.aio import NackedError, ReturnedError
from amqpcodec.errors import ConnectionLostError
from amqpcodec.reply_errors import AmqpNotFound


async def test_confirms_come_in_any_order_and_in_any_form(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = published(await client.channel(), 10)
        came = await world.broker.got("basic.publish", 10)
        came[6].ack()
        came[2].nack()
        came[4].ack(multiple=True)
        came[8].nack(multiple=True)
        came[9].ack()
        ends = await outcomes(*sent)
        stats = client.stats()
    assert [number for number, end in enumerate(ends, 1) if end == "NackedError"] == [3, 6, 8, 9]
    assert ends.count("ok") == 6
    assert (stats.published, stats.confirmed, stats.nacked, stats.returned) == (10, 6, 4, 0)


async def test_several_returns_are_told_apart_before_one_ack_of_all(world: World) -> None:
    """Equal bodies: exchange, key and properties say which ones have come back."""
    world.broker.on("basic.publish", hold)
    nowhere = (2, 3, 6)
    async with world.client() as client:
        channel = await client.channel()
        sent = [
            asyncio.ensure_future(
                channel.publish(
                    b"equal",
                    routing_key="nowhere" if number in nowhere else "q",
                    properties=world.amqp.BasicProperties(message_id=str(number)),
                )
            )
            for number in range(1, 9)
        ]
        came = await world.broker.got("basic.publish", 8)
        for number in nowhere:
            came[number - 1].send_back()
        came[7].ack(multiple=True)
        ends = await outcomes(*sent)
        stats = client.stats()
    assert [number for number, end in enumerate(ends, 1) if end == "ReturnedError"] == [*nowhere]
    assert (stats.returned, stats.confirmed, stats.unmatched) == (3, 5, 0)


async def test_a_returned_message_raises_its_code_and_text(world: World) -> None:
    world.broker.on("basic.publish", send_back)
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(ReturnedError, match="returned: 312 NO_ROUTE") as caught:
            await channel.publish(b"", routing_key="nowhere")
    assert (caught.value.reply_code, caught.value.reply_text) == (312, "NO_ROUTE")


async def test_two_messages_share_an_id_and_one_of_them_is_unroutable(world: World) -> None:
    def react(received: Received) -> None:
        (send_back if received.method.routing_key == "nowhere" else Received.ack)(received)

    world.broker.on("basic.publish", react)
    same = world.amqp.BasicProperties(message_id="1")
    async with world.client() as client:
        channel = await client.channel()
        ends = await outcomes(
            channel.publish(b"x", routing_key="nowhere", properties=same),
            channel.publish(b"x", routing_key="q", properties=same),
        )
    assert ends == ["ReturnedError", "ok"]


async def test_of_equal_messages_the_oldest_was_returned(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        sent = [asyncio.ensure_future((await client.channel()).publish(b"x")) for _ in range(1)]
        channel = await client.channel()
        sent = [asyncio.ensure_future(channel.publish(b"x")) for _ in range(3)]
        came = await world.broker.got("basic.publish", 4)
        for each in came:
            each.send_back() if each.channel == came[-1].channel and each.number == 1 else None
            each.ack()
        assert await outcomes(*sent) == ["ReturnedError", "ok", "ok"]


@pytest.mark.parametrize(
    "options", [{}, {"tables": "raw"}, {"properties": "raw"}, {"profile": "wg-0-9-1"}], ids=str
)
async def test_messages_that_differ_in_headers_are_told_apart_however_they_are_read(
    world: World, options: dict[str, Any]
) -> None:
    """Microseconds are cut, and a tuple is a list."""

    world.broker.on("basic.publish", hold)
    when = datetime(2026, 1, 1, 0, 0, 0, 5, UTC)
    async with world.client(**options) as client:
        channel = await client.channel()
        sent = []
        for number in range(6):
            headers = {"there": number % 2 == 0, "list": (1, 2)}
            properties = world.amqp.BasicProperties(timestamp=when, headers=headers)
            sent.append(await channel.publish_soon(b"same", properties=properties))
        came = await world.broker.got("basic.publish", 6)
        for received in came[1::2]:
            received.send_back()
        came[-1].ack(multiple=True)
        assert await outcomes(*sent) == ["ok", "ReturnedError"] * 3


async def test_a_message_that_was_not_mandatory_is_not_taken_for_a_returned_one(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel()
        sent = [asyncio.ensure_future(channel.publish(b"x", mandatory=must)) for must in (False, True)]
        came = await world.broker.got("basic.publish", 2)
        assert [each.method.mandatory for each in came] == [False, True]
        came[1].send_back()
        came[1].ack(multiple=True)
        assert await outcomes(*sent) == ["ok", "ReturnedError"]


REPLY = "amq.rabbitmq.reply-to.g1h2AA.key=="


async def test_a_direct_reply_is_mandatory_only_if_that_is_asked_for(world: World) -> None:
    """RabbitMQ returns direct replies that have arrived, so they would raise ReturnedError."""
    cases: list[tuple[str, str, bool | None, bool]] = [
        ("", REPLY, None, False), ("", REPLY, True, True), ("", REPLY, False, False),
        ("e", REPLY, None, True), ("", "amq.rabbitmq.reply-to", None, True),
        ("", "q", None, True), ("", "q", False, False),
    ]  # fmt: skip
    async with world.client() as client:
        channel = await client.channel()
        for exchange, key, asked, _ in cases:
            await channel.publish(b"", exchange=exchange, routing_key=key, mandatory=asked)
            await (await channel.publish_soon(b"", exchange=exchange, routing_key=key, mandatory=asked))
        came = await world.broker.got("basic.publish", 2 * len(cases))
    assert [each.method.mandatory for each in came] == [case[-1] for case in cases for _ in range(2)]


async def test_a_return_that_nobody_has_published_is_counted(world: World) -> None:
    def react(received: Received) -> None:
        received.body = b"another"
        send_back(received)

    world.broker.on("basic.publish", react)
    async with world.client() as client:
        await (await client.channel()).publish(b"x")
        stats = client.stats()
    assert (stats.returned, stats.unmatched, stats.confirmed) == (1, 1, 1)


def mapped() -> mmap.mmap:
    pages = mmap.mmap(-1, 4)
    pages.write(b"abcd")
    return pages


BODIES = {
    "bytearray": lambda: bytearray(b"abcd"),
    "memoryview": lambda: memoryview(b"abcd"),
    "memoryview of a bytearray": lambda: memoryview(bytearray(b"abcd")),
    "memoryview of another format": lambda: memoryview(b"abcd").cast("H"),
    "memoryview of two dimensions": lambda: memoryview(b"abcd").cast("B", (2, 2)),
    "memoryview that leaves out every other octet": lambda: memoryview(b"a-b-c-d-")[::2],
    "array": lambda: array("H", b"abcd"),
    "mmap": mapped,
    "ctypes": lambda: (ctypes.c_uint16 * 2).from_buffer_copy(b"abcd"),
    "octets that compare one by one, as numpy's": lambda: Elements(b"abcd"),
}


class Elements(bytes):
    """Octets of which it is ambiguous whether they are equal to others."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array with more than one element is ambiguous")

    __hash__ = bytes.__hash__


@pytest.mark.parametrize("how", BODIES)
async def test_any_buffer_is_a_body_and_may_be_returned(world: World, how: str) -> None:
    world.broker.on("basic.publish", send_back)
    async with world.client() as client:
        channel = await client.channel()
        with pytest.raises(ReturnedError):
            await channel.publish(BODIES[how]())
        with pytest.raises(ReturnedError):
            await (await channel.publish_soon(BODIES[how]()))
        stats = client.stats()
    assert world.broker.bodies() == [b"abcd"] * 2
    assert (stats.returned, stats.unmatched, stats.confirmed) == (2, 0, 0)


async def test_a_body_may_be_changed_as_soon_as_it_is_given(world: World) -> None:
    """It waits to be written here, and is written once more on the next connection."""
    world.broker.on("basic.publish", hold, connection=1)
    async with world.client() as client:
        channel = await client.channel(window=1)
        bodies = [bytearray(b"%d" % number) for number in range(1, 4)]
        sent = [asyncio.ensure_future(channel.publish(body)) for body in bodies[:2]]
        await asyncio.sleep(0)
        sent.append(asyncio.ensure_future(channel.publish_soon(bodies[2])))  # it waits for room
        [came] = await world.broker.got("basic.publish")
        for body in bodies:
            body[:] = b"changed"
        came.peer.abort()
        await asyncio.gather(*sent[:2], await sent[2])
    assert numbers(world.broker.bodies(connection=2)) == [1, 2, 3]


async def test_a_nacked_message_raises(world: World) -> None:
    world.broker.on("basic.publish", Received.nack)
    async with world.client() as client:
        with pytest.raises(NackedError):
            await (await client.channel()).publish(b"")


async def test_a_channel_that_does_not_exist_for_the_broker_fails_what_waits(world: World) -> None:
    """404: an exchange that there is not."""
    world.broker.on("basic.publish", close_channel(404))
    async with world.client() as client:
        channel = await client.channel()
        sent = published(channel, 5, exchange="none")
        assert await outcomes(*sent) == ["AmqpNotFound"] * 5
        with pytest.raises(AmqpNotFound, match="as the test says"):
            await channel.publish(b"later")
        with pytest.raises(AmqpNotFound):
            await channel.publish_soon(b"later")


# -- the window


async def test_the_window_is_never_exceeded(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=3)
        sent = published(channel, 10)
        for number in (3, 6, 9):
            await world.broker.got("basic.publish", number)
            await client.call(world.amqp.Queue.Declare("q"))  # the broker has read all that was written
            came = world.broker.received("basic.publish")
            assert len(came) == number
            came[-1].ack(multiple=True)
        [*_, last] = await world.broker.got("basic.publish", 10)
        last.ack()
        assert await outcomes(*sent) == ["ok"] * 10
    assert numbers(world.broker.bodies()) == [*range(1, 11)]


async def test_messages_are_written_together_once_a_turn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.client() as client:
        channel = await client.channel()
        await channel.publish(b"")
        transport = client._link.stream._transport
        writes: list[bytes] = []
        write = transport.write
        monkeypatch.setattr(
            client._link.stream,
            "_transport",
            Writing(transport, lambda octets: (writes.append(octets), write(octets))),
        )
        await asyncio.gather(*published(channel, 50))
    assert len(writes[0]) > 50 * 20


class Writing:
    """A transport whose writes somebody sees."""

    def __init__(self, transport: Any, write: Any) -> None:
        self._transport = transport
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def test_what_cannot_be_encoded_leaves_the_window_whole(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(window=2)
        sent = [
            asyncio.ensure_future(
                channel.publish(b"%d" % number, routing_key="x" * 300 if number in (1, 5) else "")
            )
            for number in range(8)
        ]
        ends = await outcomes(*sent)
        for key in ("x" * 300, None, b"q"):
            for publish in (channel.publish, channel.publish_soon):
                with pytest.raises(EncodeError, match="routing-key"):
                    await publish(b"", routing_key=key)  # type: ignore[arg-type]
        await asyncio.gather(*published(channel, 5))
    assert [number for number, end in enumerate(ends) if end == "EncodeError"] == [1, 5]
    assert ends.count("ok") == 6


@pytest.mark.parametrize("body", ["text", 5, None])
async def test_what_is_no_body_raises_and_nothing_else_does(world: World, body: Any) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=1)
        first = asyncio.ensure_future(channel.publish(b"1"))
        [came] = await world.broker.got("basic.publish")
        queued = asyncio.ensure_future(channel.publish(body))
        last = asyncio.ensure_future(channel.publish(b"2"))
        await asyncio.sleep(0)
        world.broker.on("basic.publish", Received.ack)
        came.ack()
        ends = await outcomes(first, queued, last)
        alone = await outcomes(channel.publish(body))
    assert ends == ["ok", *alone, "ok"]
    assert alone == ["EncodeError"]


class Nowhere(tzinfo):
    """A time zone that fails."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise ZeroDivisionError


@pytest.mark.parametrize("window", [1, 10])
async def test_an_exception_of_a_value_is_its_publishers_alone(world: World, window: int) -> None:
    """With a window of 1 it waits; else it is written at once."""
    broken = world.amqp.BasicProperties(timestamp=datetime(2026, 1, 1, tzinfo=Nowhere()))
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=window)
        sent = [
            asyncio.ensure_future(channel.publish(b"", properties=broken if number == 1 else None))
            for number in range(3)
        ]
        [came, *_] = await world.broker.got("basic.publish")
        world.broker.on("basic.publish", Received.ack)
        for each in world.broker.received("basic.publish"):
            each.ack()
        assert came.number == 1
        assert await outcomes(*sent) == ["ok", "ZeroDivisionError", "ok"]
        assert len(world.broker.peers) == 1


# -- deferred


async def test_a_deferred_publish_waits_for_the_window_alone(world: World) -> None:
    world.broker.on("basic.publish", hold)
    async with world.client() as client:
        channel = await client.channel(window=2)
        first, second = await channel.publish_soon(b"1"), await channel.publish_soon(b"2")
        third = asyncio.ensure_future(channel.publish_soon(b"3"))
        came = await world.broker.got("basic.publish", 2)
        await client.call(world.amqp.Queue.Declare("q"))
        assert not third.done()
        came[0].ack()
        [_, _, last] = await world.broker.got("basic.publish", 3)
        confirmed = await third
        assert (first.done(), second.done(), confirmed.done()) == (True, False, False)
        last.ack(multiple=True)
        assert await asyncio.gather(second, confirmed) == [None, None]


async def test_deferred_publishes_keep_their_order_behind_the_window(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(window=4)

        async def publish(begin: int) -> None:
            for number in range(begin, begin + 50):
                await (await channel.publish_soon(b"%d" % number))

        await asyncio.gather(publish(100), publish(200), publish(300))
    came = numbers(world.broker.bodies())
    assert len(came) == 150
    for begin in (100, 200, 300):
        own = [number for number in came if begin <= number < begin + 50]
        assert own == [*range(begin, begin + 50)]


async def test_a_deferred_publish_is_withdrawn_by_its_future_before_it_is_written(world: World) -> None:
    world.broker.on("channel.open", lambda received: (received.answer(), received.flow(False)))
    async with world.client() as client:
        channel = await client.channel(window=2)
        await channel.call(world.amqp.Queue.Declare("q"))
        first, second = await channel.publish_soon(b"1"), await channel.publish_soon(b"2")
        first.cancel()
        third = await asyncio.wait_for(channel.publish_soon(b"3"), 5)  # there is room again
        world.broker.received("channel.open")[0].flow(True)
        await asyncio.gather(second, third)
        stats = client.stats()
    assert world.broker.bodies() == [b"2", b"3"]
    assert (stats.withdrawn, stats.published, stats.confirmed) == (1, 2, 2)


async def test_without_confirms_a_message_is_published_once_it_is_written(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel(confirm=False)
        await channel.publish(b"1")
        assert (await channel.publish_soon(b"2")).done()
        stats = client.stats()
        await channel.close()
    assert world.broker.received("confirm.select") == []
    assert (stats.published, stats.confirmed) == (2, 0)


async def test_several_channels_publish_at_once(world: World) -> None:
    async with world.client() as client:
        channels = [await client.channel(window=3) for _ in range(5)]
        await asyncio.gather(*(task for channel in channels for task in published(channel, 20)))
        assert client.stats().confirmed == 100
    of_channel: dict[int, list[int]] = {}
    for each in world.broker.received("basic.publish"):
        of_channel.setdefault(each.channel, []).append(int(each.body))
    assert list(of_channel.values()) == [[*range(1, 21)]] * 5


async def test_a_closed_client_publishes_no_more(world: World) -> None:
    async with world.client() as client:
        channel = await client.channel()
    with pytest.raises(ConnectionLostError, match="the client is closed"):
        await channel.publish(b"")
