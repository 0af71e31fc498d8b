"""aio-pika: 128 tasks that await the confirm of each message, and a callback."""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from . import CONTENT_TYPE, PREFETCH, WINDOW, Clock, expected, messages


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(_publish(url, queue, count, clock))


def consume(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(_consume(url, queue, count, clock))


async def _publish(url: str, queue: str, count: int, clock: Clock) -> None:
    source = messages(count)
    connection = await aio_pika.connect(url)
    channel = await connection.channel()

    async def work() -> None:
        for body, headers, message_id, seconds in source:
            message = aio_pika.Message(
                body,
                content_type=CONTENT_TYPE,
                headers=headers,
                delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT,
                message_id=message_id,
                timestamp=seconds,
            )
            await channel.default_exchange.publish(message, routing_key=queue)

    with clock:
        await asyncio.gather(*[work() for _ in range(WINDOW)])
    await connection.close()


async def _consume(url: str, queue: str, count: int, clock: Clock) -> None:
    wanted = expected(count)
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=PREFETCH)
    source = await channel.get_queue(queue)
    done = asyncio.get_running_loop().create_future()
    left = count

    async def take(message: AbstractIncomingMessage) -> None:
        nonlocal left
        if (message.body, message.headers, message.message_id) != next(wanted):
            done.set_exception(AssertionError(f"not what was published: {message!r:.500}"))
        await message.ack()
        left -= 1
        if not left:
            done.set_result(None)

    with clock:
        await source.consume(take)
        await done
    await connection.close()
