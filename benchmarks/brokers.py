"""`make bench-brokers`: the broker for tests, how fast it starts and works; beside RabbitMQ, for orientation.

The client of the examples publishes messages with confirms, then consumes and acknowledges them. A first
round compares every body and header, and is not timed. Figures are medians of the rounds, in messages a
second by the clock. In one process, with the broker, it does all that at once: by CPU time, as is the start.
Of those the best is taken, since other work on a machine makes them only longer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
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
from amqpcodec.testing import Broker, running_broker

OWN = "amqpcodec.testing"
STARTS = 50  # of a broker on a thread
IMPORTS = 11  # each by a process of its own
TIMES_AT_ONCE = 20
IMPORT = """
from time import process_time
import asyncio
begin = process_time()
import amqpcodec.testing
print(process_time() - begin)
"""
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


async def through(count: int) -> float:
    """Messages of a second of CPU time, which the broker for tests and its client share.

    They are published with confirms, consumed and acknowledged at the same time.
    """
    messages = [message(number) for number in range(count)]
    async with Broker() as own, client.client_with("all", own.url) as peer:
        begin = process_time()
        async with asyncio.TaskGroup() as group:
            group.create_task(client.publish(peer, "all", messages))
            group.create_task(client.consume(peer, "all", count))
        return count / (process_time() - begin)


def starting() -> float:
    """Milliseconds of CPU time until a broker on a thread listens, as the fixture of pytest has it."""
    times = []
    for _ in range(STARTS):
        begin = process_time()
        with running_broker():
            times.append(process_time() - begin)
    return min(times) * 1000


def importing() -> float:
    """Milliseconds of CPU time of the first import, where asyncio is there already."""
    command = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(IMPORTS)]
    return min(times) * 1000


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
        "start_ms": starting(),
        "import_ms": importing(),
        "through": max(asyncio.run(through(arguments.messages)) for _ in range(TIMES_AT_ONCE)),
        "brokers": {},
    }
    print(f"{results['start_ms']:.1f} ms to start, {results['import_ms']:.1f} ms to import")
    print(f"{results['through']:.0f} messages all the way in a second of one core")
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
