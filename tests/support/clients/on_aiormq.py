"""aiormq."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import aiormq

from .samples import CONTENT_TYPE, PREFETCH, Clock, Sample


def publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    asyncio.run(_publish(url, queue, samples, clock))


def consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    return asyncio.run(_consume(url, queue, count, clock))


async def _publish(url: str, queue: str, samples: Iterable[Sample], clock: Clock) -> None:
    connection = await aiormq.connect(url)
    channel = await connection.channel(publisher_confirms=False)
    with clock:
        for sample in samples:
            properties = aiormq.spec.Basic.Properties(
                content_type=CONTENT_TYPE,
                headers=sample.headers,
                delivery_mode=1,
                message_id=sample.message_id,
                timestamp=sample.time,
            )
            await channel.basic_publish(sample.body, routing_key=queue, properties=properties)
        await channel.queue_declare(queue, passive=True)  # all before it has been sent
    await connection.close()


async def _consume(url: str, queue: str, count: int, clock: Clock) -> list[Sample]:
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    await channel.basic_qos(prefetch_count=PREFETCH)
    received: list[Sample] = []
    done = asyncio.Event()

    async def take(message: Any) -> None:
        properties = message.header.properties
        received.append(Sample(message.body, properties.headers, properties.message_id))
        await channel.basic_ack(message.delivery.delivery_tag)
        if len(received) == count:
            done.set()

    with clock:
        await channel.basic_consume(queue, take)
        await done.wait()
    await connection.close()
    return received
