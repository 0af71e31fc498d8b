"""``python -m layer.long_run URL QUEUE COUNT``: the peak of memory of a client that publishes and consumes.

Prints a line of JSON: octets of memory at most so far, after a tenth of the messages and after all.
"""

from __future__ import annotations

import asyncio
import json
import sys

from memory import peak
from support.clients.samples import sample

from amqpcodec import aio

from . import PREFETCH, WINDOW
from .ours import properties


async def main(url: str, queue: str, count: int) -> None:
    """Publish by one task and consume by another, and compare what arrives."""
    peaks = {}
    async with aio.Client(url) as client:
        sender = await client.channel(window=WINDOW)
        receiver = await client.channel(prefetch=PREFETCH)

        async def publish() -> None:
            for number in range(count):
                made = sample(number)
                found = properties(made.headers, made.message_id, made.seconds)
                await sender.publish_soon(made.body, routing_key=queue, properties=found)

        publishing = asyncio.create_task(publish())
        number = 0
        async with receiver.consume(queue) as deliveries:
            async for delivery in deliveries:
                found = delivery.properties
                if (delivery.body, found.headers, found.message_id) != sample(number):
                    raise AssertionError(f"message {number} is {delivery!r:.500}")
                delivery.ack()
                number += 1
                if number in (count // 10, count):
                    peaks[number] = peak()
                if number == count:
                    break
        await publishing
        stats = client.stats()
    if (stats.confirmed, stats.acknowledged) != (count, count):
        raise AssertionError(f"not all was confirmed and acknowledged: {stats}")
    print(json.dumps(peaks))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
