"""`aio.Client`: one task that publishes and keeps the futures of the confirms."""

from __future__ import annotations

import asyncio

from amqpcodec import aio

from . import WINDOW, Clock, messages
from .ours import consume, properties


def publish(url: str, queue: str, count: int, clock: Clock) -> None:
    asyncio.run(published(url, queue, count, clock))


async def published(url: str, queue: str, count: int, clock: Clock) -> None:
    """Publish by one task."""
    source = messages(count)
    async with aio.Client(url) as client:
        channel = await client.channel(window=WINDOW)
        confirmed = []
        with clock:
            for body, headers, message_id, seconds in source:
                made = properties(headers, message_id, seconds)
                confirmed.append(await channel.publish_soon(body, routing_key=queue, properties=made))
            for each in confirmed:
                await each


__all__ = ["consume", "publish"]
