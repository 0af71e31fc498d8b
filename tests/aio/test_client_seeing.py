"""Seeing: counters, the log, and hooks for tracing. No password in any of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import pytest
from support.scripted_broker import Received, close_channel, deliver, hold, send_back
from world import World, cut, outcomes, published

from amqpcodec.aio import Backoff, Channel, ClientStats, Consumer, Delivery, connect
from amqpcodec.reply_errors import AmqpAccessRefused


async def test_every_kind_of_event_is_counted_once(world: World) -> None:
    def react(received: Received) -> None:
        kind = received.body
        {b"ack": Received.ack, b"nack": Received.nack, b"return": send_back, b"hold": hold}[kind](received)

    world.broker.on("basic.publish", react, connection=1)
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    async with world.client() as client:
        expected = ClientStats(connections=1)
        assert client.stats() == expected
        channel = await client.channel()

        async def publish(body: bytes) -> str:
            [end] = await outcomes(channel.publish(body))
            return end

        assert await publish(b"ack") == "ok"
        expected.published, expected.confirmed = 1, 1
        assert client.stats() == expected
        assert await publish(b"nack") == "NackedError"
        expected.published, expected.nacked = 2, 1
        assert client.stats() == expected
        assert await publish(b"return") == "ReturnedError"
        expected.published, expected.returned = 3, 1
        assert client.stats() == expected

        async with channel.consume("q") as deliveries:
            three = [await anext(deliveries) for _ in range(3)]
            expected.delivered = 3
            assert client.stats() == expected
            three[0].ack()
            three[1].nack()
            [ack] = await world.broker.got("basic.ack")
            expected.acknowledged = 1
            assert client.stats() == expected

            held = asyncio.ensure_future(channel.publish(b"hold"))
            await world.broker.until(lambda: world.broker.bodies()[-1] == b"hold")
            await cut(client, ack.peer)
            three[2].ack()
            await held
            expected.published, expected.republished, expected.confirmed = 5, 1, 2
            expected.connections, expected.stale = 2, 1
            while client.stats().delivered < 6:
                await asyncio.sleep(0)
            expected.delivered = 6
            assert client.stats() == expected
        assert client.stats() == expected


async def test_a_snapshot_is_the_programs_own(world: World) -> None:
    async with world.client() as client:
        stats = client.stats()
        stats.published = 5
        assert client.stats().published == 0


async def test_what_is_given_up_is_counted_and_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.broker.on("basic.publish", hold)
    caplog.set_level(logging.INFO, "amqpcodec")
    async with world.client() as client:
        channel = await client.channel()
        sent = published(channel, 3)
        await world.broker.got("basic.publish", 3)
        await channel.close(0)
        assert await outcomes(*sent) == ["LocalProtocolError"] * 3
        assert client.stats().unconfirmed == 3
    assert "messages not confirmed: 3" in caplog.text


async def test_the_log_has_what_an_operator_asks_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amqpcodec")
    async with world.client() as client:
        channel = await client.channel()
        world.broker.peers[0].block("low on memory")
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].unblock()
        await channel.call(world.amqp.Queue.Declare("q"))
        world.broker.peers[0].close(320, "CONNECTION_FORCED - maintenance")
        await asyncio.wait((client._link.ended,))
        await channel.publish(b"")
    text = caplog.text
    for part in ("low on memory", "takes messages again", "connecting again", "maintenance"):
        assert part in text
    assert [record.getMessage() for record in caplog.records].count("connected") == 2
    assert {record.name.partition(".")[0] for record in caplog.records} == {"amqpcodec"}
    assert max(record.levelno for record in caplog.records) == logging.WARNING


async def test_an_end_is_logged_as_an_error(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.broker.on("connection.start-ok", lambda received: received.peer.close(403, "ACCESS_REFUSED"))
    with pytest.raises(AmqpAccessRefused):
        async with world.client():
            pytest.fail("nobody is let in")
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.name.startswith("amqpcodec")
    assert "ACCESS_REFUSED" in record.getMessage()
    assert record.exc_info is None


async def test_nothing_shows_a_password(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = world.broker.url.replace("amqp://", "amqp://me:s3cr3t@")
    client = world.client(url)
    with pytest.raises(AmqpAccessRefused) as caught:
        await client.__aenter__()
    assert "s3cr3t" not in caplog.text + repr(client) + str(caught.value) + repr(caught.value)
    world.broker.stop_listening()
    with pytest.raises(OSError) as refused:  # noqa: PT011
        await world.client(url, backoff=Backoff(attempts=1)).__aenter__()
    assert "s3cr3t" not in caplog.text + repr(refused.value)


@pytest.mark.parametrize("url", ["me:s3cr3t@localhost", "amqp:/me:s3cr3t@localhost"])
async def test_what_is_nearly_a_url_is_no_host_and_is_not_shown(world: World, url: str) -> None:
    with pytest.raises(ValueError, match="neither a host nor a URL") as caught:
        world.client([url, "localhost"])
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(ValueError, match="neither a host nor a URL"):
        await connect(url)


# -- hooks


async def test_a_hook_sees_each_message_before_it_is_published(world: World) -> None:
    span: ContextVar[str] = ContextVar("span")
    seen: list[tuple[str, Any]] = []

    def inject(method: Any, properties: Any) -> Any:
        seen.append((method.routing_key, properties))
        return world.amqp.BasicProperties(headers={"traceparent": span.get()})

    async with world.client(before_publish=inject) as client:
        channel = await client.channel()
        span.set("one")
        await channel.publish(b"1", routing_key="a")
        span.set("two")
        await (await channel.publish_soon(b"2", routing_key="b"))
    assert seen == [("a", None), ("b", None)]
    headers = [each.properties.headers for each in world.broker.received("basic.publish")]
    assert headers == [{"traceparent": "one"}, {"traceparent": "two"}]


async def test_a_hook_before_publish_is_called_once_whatever_happens_to_the_connection(world: World) -> None:
    calls: list[Any] = []

    def count(method: Any, properties: Any) -> Any:
        calls.append(method)
        return properties

    world.broker.on("basic.publish", lambda received: received.peer.abort(), connection=1)
    async with world.client(before_publish=count) as client:
        await (await client.channel()).publish(b"")
        assert client.stats().republished == 1
    assert len(calls) == 1


async def test_a_hook_before_publish_that_fails_is_the_publishers(world: World) -> None:
    def fail(method: Any, properties: Any) -> Any:
        if method.routing_key == "bad":
            raise KeyError(method.routing_key)
        return properties

    async with world.client(before_publish=fail) as client:
        channel = await client.channel(window=1)
        for publish in (channel.publish, channel.publish_soon):
            with pytest.raises(KeyError):
                await publish(b"", routing_key="bad")
        await channel.publish(b"")
        assert client.stats() == ClientStats(connections=1, published=1, confirmed=1)


class Around:
    """A hook around deliveries, and what it has seen."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.current: ContextVar[bytes | None] = ContextVar("current", default=None)

    @contextmanager
    def __call__(self, delivery: Delivery) -> Iterator[None]:
        name = delivery.body.decode()
        self.seen.append(f"+{name}")
        token = self.current.set(delivery.body)
        try:
            yield
        except BaseException as error:
            self.seen.append(f"{name} {type(error).__name__}")
            raise
        finally:
            self.current.reset(token)
            self.seen.append(f"-{name}")


async def test_a_hook_is_around_each_delivery_until_the_next_is_asked_for(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            async for delivery in deliveries:
                assert around.current.get() == delivery.body
                around.seen.append("work")
                if delivery.body == b"2":
                    break
        assert around.current.get() is None
    assert around.seen == ["+1", "work", "-1", "+2", "work", "-2"]


async def test_a_hook_around_a_delivery_sees_what_goes_wrong(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2"))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()

        async def fail() -> None:
            async with channel.consume("q") as deliveries:
                async for _ in deliveries:
                    raise KeyError

        with pytest.raises(KeyError):
            await fail()
    assert around.seen == ["+1", "1 KeyError", "-1"]


async def test_each_of_several_tasks_has_its_own_delivery_around(world: World) -> None:
    world.broker.on("basic.consume", deliver(*(b"%d" % number for number in range(20))))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:

            async def work() -> None:
                async for delivery in deliveries:
                    await asyncio.sleep(0)
                    assert around.current.get() == delivery.body
                    delivery.ack()

            workers = [asyncio.ensure_future(work()) for _ in range(4)]
            await world.broker.until(lambda: sum(len(each.tags) for each in world.broker.log) == 20)
            for worker in workers:
                worker.cancel()
            assert await outcomes(*workers) == ["CancelledError"] * 4
    begun = [each for each in around.seen if each[0] == "+"]
    ended = [each for each in around.seen if each[0] == "-"]
    assert sorted(int(each) for each in begun) == [*range(20)]
    assert sorted(-int(each) for each in ended) == [*range(20)]


async def test_what_is_around_a_delivery_ends_with_its_task(world: World) -> None:
    """A task for each delivery, that asks for no other, as those of `asyncio.wait_for` before Python 3.12."""
    world.broker.on("basic.consume", deliver(*(b"%d" % number for number in range(50))))
    is_open: set[bytes] = set()

    @contextmanager
    def around(delivery: Delivery) -> Iterator[None]:
        is_open.add(delivery.body)
        yield
        is_open.remove(delivery.body)

    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            for number in range(50):
                delivery = await asyncio.create_task(anext(deliveries))
                assert delivery.body == b"%d" % number
                await asyncio.sleep(0)
                assert is_open == set()


async def test_what_is_around_the_deliveries_of_a_long_task_leaves_nothing_at_the_task(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        task = asyncio.current_task()
        assert task is not None
        async with channel.consume("q") as deliveries:
            for _ in range(2):
                await anext(deliveries)
        assert task.remove_done_callback(deliveries._leave_for) == 0
        assert around.seen == ["+1", "-1", "+2", "-2"]


async def test_what_cannot_be_left_for_a_task_that_is_done_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))

    @contextmanager
    def around(delivery: Delivery) -> Iterator[None]:
        yield
        raise KeyError(delivery.body)

    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            for _ in range(3):
                await asyncio.create_task(anext(deliveries))
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["around_delivery, left for a task that is done: KeyError(b'1')"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a task does not tell its context")
async def test_context_variables_are_set_back_in_the_context_of_a_task_that_is_done(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1"))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            await asyncio.create_task(anext(deliveries))
            await asyncio.sleep(0)
            assert around.seen == ["+1", "-1"]


async def test_a_hook_around_a_delivery_that_fails_loses_no_delivery(world: World) -> None:
    world.broker.on("basic.consume", deliver(b"1", b"2"))

    def fail(delivery: Delivery) -> Any:
        raise KeyError(delivery.body)

    async with world.client(around_delivery=fail) as client:
        channel = await client.channel()
        with pytest.raises(KeyError):
            async with channel.consume("q") as deliveries:
                await anext(deliveries)
        await channel.call(world.amqp.Queue.Declare("q"))
        back = [tag for each in world.broker.received("basic.nack") for tag in each.tags]
        assert sorted(back) == [1, 2]


async def test_a_hook_that_fails_for_one_task_leaves_the_delivery_to_another(world: World) -> None:
    calls: list[Delivery] = []

    def fail_once(delivery: Delivery) -> Any:
        calls.append(delivery)
        if len(calls) == 1:
            raise KeyError(delivery.body)
        return nullcontext()

    async with world.client(around_delivery=fail_once) as client:
        channel = await client.channel()
        async with channel.consume("q") as deliveries:
            [consume] = await world.broker.got("basic.consume")
            waiting = [asyncio.ensure_future(anext(deliveries)) for _ in range(2)]
            await asyncio.sleep(0)
            consume.deliver(b"1")
            await asyncio.wait(waiting, timeout=5)
            assert [task.done() for task in waiting] == [True, True]
            assert await outcomes(*waiting) == ["KeyError", "ok"]


async def test_a_task_that_is_cancelled_amid_a_delivery_does_not_disturb_the_leaving(world: World) -> None:
    """Its context variables are not those of the task that leaves, and cannot be reset by it."""
    world.broker.on("basic.consume", deliver(b"1", b"2", b"3"))
    around = Around()
    async with world.client(around_delivery=around) as client:
        channel = await client.channel()

        async def work(deliveries: Consumer) -> None:
            async for _ in deliveries:
                await asyncio.Event().wait()

        async def program() -> None:
            async with channel.consume("q") as deliveries:
                workers = [asyncio.ensure_future(work(deliveries)) for _ in range(2)]
                while len(around.seen) < 2:
                    await asyncio.sleep(0)
                for worker in workers:
                    worker.cancel()
                await asyncio.wait(workers)
                raise LookupError("what the program raises")

        with pytest.raises(LookupError):
            await program()
        await world.broker.got("basic.cancel")
        await world.broker.got("basic.nack")
    assert sorted(around.seen[:2]) == ["+1", "+2"]


async def test_what_a_program_prints_says_what_it_is(world: World) -> None:
    world.broker.on("basic.get", lambda received: received.hand_out(b"12345"))
    async with world.client() as client:
        channel = await client.channel()
        delivery = await channel.get("q")
        assert "5 octets" in repr(delivery)
        assert isinstance(channel, Channel)


async def test_a_channel_that_is_closed_by_the_broker_is_no_error_of_the_client(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.broker.on("queue.declare", close_channel(404))
    async with world.client() as client:
        await outcomes(client.call(world.amqp.Queue.Declare("q")))
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
