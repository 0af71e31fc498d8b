"""Publishes messages with confirms, and consumes them, by a client that comes back when the broker was gone.

    python examples/client.py amqp://guest:guest@localhost:5672/ --queue hello --count 1000 --size 256

Change first: what `client_with` declares, and what `consume` does with a delivery. No confirmed message is
lost, since the queue is durable and messages are persistent. One may come twice, after a connection was lost.
At the end it says how long both have taken.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Iterable
from time import perf_counter
from typing import Any

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client, Delivery


def client_with(queue: str, url: str, **options: Any) -> Client:
    """Return a client that declares a durable queue on each new connection."""

    async def declare(client: Client) -> None:
        await client.call(amqp.Queue.Declare(queue=queue, durable=True))

    return Client(url, on_connect=declare, **options)


async def publish(client: Client, queue: str, messages: Iterable[tuple[bytes, Any]]) -> None:
    """Publish bodies with their properties, and return once the broker has confirmed them all."""
    channel = await client.channel(window=1000)
    pending = [
        await channel.publish_soon(body, routing_key=queue, properties=properties)
        for body, properties in messages
    ]
    await asyncio.gather(*pending)


async def consume(client: Client, queue: str, count: int) -> list[Delivery]:
    """Consume so many messages, and return them, acknowledged."""
    channel = await client.channel(prefetch=500)
    found: list[Delivery] = []
    async with channel.consume(queue) as deliveries:
        async for delivery in deliveries:
            delivery.ack()
            found.append(delivery)
            if len(found) == count:
                break
    return found


async def main() -> None:
    """Publish, consume, and say how long that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--queue", default="hello")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--size", type=int, default=256, help="bytes of a body")
    arguments = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s")
    properties = amqp.BasicProperties(delivery_mode=2, headers={"example": True})
    async with client_with(arguments.queue, arguments.url) as client:
        begin = perf_counter()
        await publish(client, arguments.queue, [(bytes(arguments.size), properties)] * arguments.count)
        middle = perf_counter()
        await consume(client, arguments.queue, arguments.count)
        end = perf_counter()
    print(f"published and confirmed {arguments.count / (middle - begin):.0f} messages a second")
    print(f"consumed and acknowledged {arguments.count / (end - middle):.0f} messages a second")


if __name__ == "__main__":
    asyncio.run(main())
