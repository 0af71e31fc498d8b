"""aio-pika."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    asyncio.run(_publish(url, queue, samples, clock))


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    return asyncio.run(_consume(url, queue, count, clock))


async def _publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    connection = await aio_pika.connect(url)
    channel = await connection.channel(publisher_confirms=False)
    with clock:
        for sample in samples:
            message = aio_pika.Message(
                sample.body,
                content_type=CONTENT_TYPE,
                headers=sample.headers,
                delivery_mode=aio_pika.DeliveryMode.NOT_PERSISTENT,
                message_id=sample.message_id,
                timestamp=sample.time,
            )
            await channel.default_exchange.publish(message, routing_key=queue)
        await channel.declare_queue(queue, passive=True)  # all before it has been sent
    await connection.close()


async def _consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=PREFETCH)
    source = await channel.get_queue(queue)
    received: list[Sample] = []
    done = asyncio.Event()

    async def take(message: AbstractIncomingMessage) -> None:
        received.append(Sample(message.body, message.headers, message.message_id or ""))
        await message.ack()
        if len(received) == count:
            done.set()

    with clock:
        await source.consume(take)
        await done.wait()
    await connection.close()
    return received
