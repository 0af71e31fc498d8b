"""The client of the examples loses nothing that is confirmed.

`make test-broker` has it publish 100,000 messages with bodies of up to 64 MiB; here it is few and small ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from support.broker import NoBrokerError, Node, started
from support.examples import example, serving
from support.mixed import body, headers, read

from amqpcodec import EncodeError
from amqpcodec import rabbitmq as amqp
from amqpcodec.reply_errors import AmqpAccessRefused, AmqpPreconditionFailed

MESSAGES = int(os.environ.get("AMQPCODEC_BROKER_MESSAGES", "2000"))
LONG = MESSAGES >= 50_000
module = example("client")
pytestmark = pytest.mark.quick


def run(work: Any, seconds: float = 60) -> Any:
    return asyncio.run(asyncio.wait_for(work, seconds))


def properties(number: int) -> Any:
    return amqp.BasicProperties(delivery_mode=2, headers=headers(number), message_id=f"m-{number}")


async def published(client: Any, numbers: range) -> None:
    """Publish messages and wait until all are confirmed."""
    waiting = set()
    for number in numbers:
        waiting.add(await client.publish(body(number, LONG), properties(number)))
        if len(waiting) > 100:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                future.result()
    for future in waiting:
        await future


async def consumed(client: Any, count: int) -> set[int]:
    """Consume until so many different messages have come, each as it was published."""
    found: set[int] = set()
    async for delivery in client.deliveries():
        number = int(delivery.properties.message_id.partition("-")[2])
        assert delivery.body == body(number, LONG)
        assert delivery.properties.headers == read(headers(number))
        assert delivery.properties == amqp.BasicProperties(
            delivery_mode=2, headers=read(headers(number)), message_id=f"m-{number}"
        )
        client.acknowledge(delivery)
        found.add(number)
        if len(found) == count:
            return found
    raise AssertionError("the deliveries ended")


async def deleted(client: Any, queue: str) -> None:
    """Delete a queue by a connection of its own."""
    stream = await client._connect()
    async with stream:
        stream.connection.send(stream.connection.open_channel(), amqp.Queue.Delete(queue=queue))
        await stream.drain()


def test_every_body_and_header_comes_back_equal(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.Client(rabbitmq, queue, prefetch=20 if LONG else 500) as client:
            publishing = asyncio.create_task(published(client, range(MESSAGES)))
            assert await consumed(client, MESSAGES) == set(range(MESSAGES))
            await publishing
            assert (client.connections, client.returned) == (1, [])
            await deleted(client, queue)

    run(work(), 60 + MESSAGES / 50)


def test_the_octets_of_headers_with_every_tag_pass_unchanged(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.Client(rabbitmq, queue, tables="raw") as client:
            await (await client.publish(b"", properties(0)))
            async for delivery in client.deliveries():
                entries = amqp.encode_table(headers(0))[4:]
                assert delivery.properties.headers.octets == entries
                break
            await deleted(client, queue)

    run(work())


def test_a_value_that_cannot_be_sent_fails_its_message_alone(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.Client(rabbitmq, queue) as client:
            bad = await client.publish(b"", amqp.BasicProperties(headers={"key": object()}))
            good = await client.publish(b"", None)
            await good
            with pytest.raises(EncodeError):
                await bad
            await deleted(client, queue)

    run(work())


def test_a_message_that_no_queue_takes_is_returned(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.Client(rabbitmq, queue) as client:
            await (await client.publish(b"lost", routing_key=str(uuid4())))
            [returned] = client.returned
            assert (returned.method.reply_code, returned.body) == (312, b"lost")
            await deleted(client, queue)

    run(work())


def test_what_the_broker_refuses_is_raised(rabbitmq: str) -> None:
    async def work() -> None:
        queue = f"amqpcodec-{uuid4()}"
        async with module.Client(rabbitmq, queue) as client:
            await (await client.publish(b""))
            wrong = rabbitmq.replace("guest:guest@", "guest:wrong@")
            with pytest.raises(AmqpAccessRefused):
                async with module.Client(wrong, queue) as other:
                    await (await other.publish(b""))
            stream = await client._connect()
            async with stream:
                stream.connection.send(1, amqp.Channel.Open())
                stream.connection.send(1, amqp.Queue.Declare(queue=queue + "-other", exclusive=False))
                await stream.drain()
                with pytest.raises(AmqpPreconditionFailed):
                    async with module.Client(rabbitmq, queue + "-other") as third:
                        await (await third.publish(b""))
            await deleted(client, queue)
            await deleted(client, queue + "-other")

    run(work())


def test_the_client_comes_back_after_its_connection_was_cut(impl: Any) -> None:
    async def work(url: str) -> None:
        async with module.Client(url, "queue") as client:
            publishing = asyncio.create_task(published(client, range(1000)))
            while not client._unconfirmed:
                await asyncio.sleep(0.001)
            client._stream._transport.abort()
            assert await consumed(client, 1000) == set(range(1000))
            await publishing
            assert client.connections == 2

    with serving("broker", impl.name) as (port, _):
        run(work(f"amqp://127.0.0.1:{port}"))


@pytest.fixture
def node() -> Iterator[Node]:
    try:
        with started() as found:
            yield found
    except NoBrokerError as reason:
        pytest.skip(str(reason))


@pytest.mark.skipif(not LONG, reason="a node is stopped and started again by `make test-broker`")
@pytest.mark.parametrize("kindly", [True, False], ids=["stopped", "killed"])
def test_a_node_that_is_started_again_has_every_confirmed_message(node: Node, kindly: bool) -> None:
    count = 20_000

    async def work() -> None:
        async with module.Client(node.url, "queue") as client:
            publishing = asyncio.create_task(published(client, range(4, count)))
            confirmed_before = 0
            while confirmed_before < count // 4:
                await asyncio.sleep(0.05)
                confirmed_before = max(client._unconfirmed, default=0)
            await asyncio.to_thread(node.end, kindly)
            assert not publishing.done()
            await asyncio.sleep(0.5)
            node.start()
            await asyncio.to_thread(node.wait)
            await publishing
            assert client.connections >= 2
            assert await consumed(client, count - 4) == set(range(4, count))

    run(work(), 600)
