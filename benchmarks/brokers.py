"""`make bench-brokers`: the broker of the examples beside RabbitMQ, with the same client; for orientation.

The client publishes messages with confirms, then consumes and acknowledges them. A first round compares every
body and header, and is not timed. Figures are medians of the rounds, in messages a second by the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from results import store
from support.broker import NoBrokerError, broker
from support.clients.samples import sample
from support.examples import example, serving

from amqpcodec import IMPL
from amqpcodec import rabbitmq as amqp

OWN = "examples/broker.py"
client = example("client")


def message(number: int) -> tuple[bytes, Any]:
    """Body and properties of a message."""
    made = sample(number)
    return made.body, amqp.BasicProperties(delivery_mode=2, headers=made.headers, message_id=made.message_id)


async def one_round(url: str, count: int, compared: bool) -> tuple[float, float]:
    """Publish and consume; messages a second of both.

    Args:
        url: the broker.
        count: how many messages.
        compared: whether what has come is compared with what was published.
    """
    messages = [message(number) for number in range(count)]
    queue = f"amqpcodec-{uuid4()}"
    async with client.client_with(queue, url) as peer:
        begin = perf_counter()
        await client.publish(peer, queue, messages)
        published = perf_counter() - begin
        begin = perf_counter()
        found = await client.consume(peer, queue, count)
        consumed = perf_counter() - begin
        if compared and [(each.body, each.properties) for each in found] != messages:
            raise AssertionError(f"{url}: what was consumed is not what was published")
        await peer.call(amqp.Queue.Delete(queue=queue))
    return count / published, count / consumed


async def version(url: str) -> str:
    """What a broker says of itself."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port or 5672)
    writer.write(amqp.protocol_header())
    decoder = amqp.FrameDecoder()
    start: Any = None
    while start is None:
        start = next(decoder.feed(await reader.read(65536)), None)
    writer.close()
    return str(start.payload.server_properties["version"])


@contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """The URL of each broker."""
    with broker() as url, serving("broker", "c") as (port, _):
        yield {"RabbitMQ": url, OWN: f"amqp://guest:guest@127.0.0.1:{port}/"}


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if IMPL != "c":
        print("bench-brokers: the compiled build is not there; nothing was measured")
        return 1
    results: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "messages": arguments.messages,
        "rounds": arguments.rounds,
        "brokers": {},
    }
    rates: dict[str, list[tuple[float, float]]] = {}
    try:
        with brokers() as urls:
            results["rabbitmq"] = asyncio.run(version(urls["RabbitMQ"]))
            for number in range(arguments.rounds + 1):
                # Every other round the other way round: whoever comes first finds another machine.
                for name in list(urls)[:: 1 if number % 2 else -1]:
                    rate = asyncio.run(one_round(urls[name], arguments.messages, number == 0))
                    if number:
                        rates.setdefault(name, []).append(rate)
    except NoBrokerError as reason:
        print(f"bench-brokers: {reason}; nothing was measured")
        return 1
    for name, found in sorted(rates.items(), reverse=True):
        published, consumed = (median(rate) for rate in zip(*found, strict=True))
        results["brokers"][name] = {"publish": published, "consume": consumed}
        print(f"{name}: {published:.0f} published, {consumed:.0f} consumed a second")
    store("brokers", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
