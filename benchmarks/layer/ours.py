"""`aio.Client`: 128 tasks that await the confirm of each message, and an asynchronous iterator."""

from __future__ import annotations

import asyncio

from amqpcodec import aio
from amqpcodec import rabbitmq as amqp

from . import CONTENT_TYPE, PREFETCH, TRANSIENT, WINDOW, Clock, expected, messages


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(published(url, queue, count, clock))


def consume(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(consumed(url, queue, count, clock))


def properties(headers: object, message_id: str, seconds: int) -> amqp.BasicProperties:
    """The properties of a message."""
    return amqp.BasicProperties(
        content_type=CONTENT_TYPE,
        headers=headers,
        delivery_mode=TRANSIENT,
        message_id=message_id,
        timestamp=seconds,
    )


async def published(url: str, queue: str, count: int, clock: Clock) -> None:
    """Publish by tasks."""
    source = messages(count)
    async with aio.Client(url) as client:
        channel = await client.channel(window=WINDOW)

        async def work() -> None:
            for body, headers, message_id, seconds in source:
                made = properties(headers, message_id, seconds)
                await channel.publish(body, routing_key=queue, properties=made)

        with clock:
            await asyncio.gather(*[work() for _ in range(WINDOW)])


async def consumed(url: str, queue: str, count: int, clock: Clock) -> None:
    """Consume and acknowledge."""
    wanted = expected(count)
    async with aio.Client(url) as client:
        channel = await client.channel(prefetch=PREFETCH)
        with clock:
            async with channel.consume(queue) as deliveries:
                async for delivery in deliveries:
                    found = delivery.properties
                    if (delivery.body, found.headers, found.message_id) != next(wanted):
                        raise AssertionError(f"not what was published: {delivery!r:.500}")
                    delivery.ack()
                    count -= 1
                    if not count:
                        break
