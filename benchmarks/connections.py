"""`make bench-connections`: messages a second through our connections, and through those of other libraries.

All receive the same octets: deliveries that all differ, in chunks of 64 KiB, after a handshake. Before
anything is timed, each way has passed on every message, with every value equal. Then each round times each
way once. Times are CPU time of the process; ratios are medians of those within a round.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
from importlib.metadata import version
from statistics import median
from time import process_time
from typing import Any

import corpus
from peers import FOUND
from peers.interface import MissingError
from receivers import WAYS, Client, Receiver, Server
from results import store

CHUNK = 65536
BODY_BYTES = 256
BUILDS = {"amqpcodec": "", "amqpcodec pure": ", pure build"}
LIBRARIES = ("aiormq", "pamqp", "pika", "amqp")


def ignore(method: Any, properties: Any, body: Any) -> None:
    """What a consumer does that has nothing to do."""


class Work:
    """A way and the octets that it receives.

    Args:
        name: what the way is called in the results.
        way: the way.
        ours: the build of amqpcodec.
        octets: what comes.
        expected: the values of each message.
    """

    def __init__(
        self, name: str, way: type[Receiver], ours: Any, octets: bytes, expected: list[tuple[Any, ...]]
    ) -> None:
        self.name = name
        self.chunks, self.count = corpus.chunks(octets, CHUNK), len(expected)
        tags = sorted({values[0] for values in expected}) if way is not Server else []
        taken: list[tuple[Any, ...]] = []
        receiver = way(ours, tags, lambda *message: taken.append(message))
        receiver.run(self.chunks, self.count)
        if [receiver.values(*message) for message in taken] != expected:
            raise AssertionError(f"{name}: what was received is not what was sent")
        receiver.close()
        self.receiver = way(ours, tags, ignore)

    def seconds(self) -> float:
        """CPU time of a message, once."""
        gc.collect()
        begin = process_time()
        self.receiver.run(self.chunks, self.count)
        return (process_time() - begin) / self.count


def works(count: int) -> tuple[list[Work], dict[str, str]]:
    """Every way that there is, and why others are not."""
    contents = corpus.varied(BODY_BYTES, count)
    routes = [(each.consumer_tag, each.delivery_tag, each.exchange, each.routing_key) for each in contents]
    values = [(corpus.property_values(each), each.body) for each in contents]
    delivered = [(*route, *rest) for route, rest in zip(routes, values, strict=True)]
    published = [(*route[2:], *rest) for route, rest in zip(routes, values, strict=True)]
    deliveries = corpus.delivery_stream(contents)
    found, missing = [], {}
    for build, suffix in BUILDS.items():
        ours: Any = FOUND[build]
        for way in WAYS if not suffix else (Client,):
            try:
                found.append(Work(way.name + suffix, way, ours, deliveries, delivered))
            except (ImportError, MissingError) as reason:
                missing[way.name] = str(reason)
        publishes = b"".join(map(ours.publish, contents))
        found.append(Work(Server.name + suffix, Server, ours, publishes, published))
    return found, missing


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if "amqpcodec" not in FOUND:
        print("bench-connections: the compiled build is not there; nothing was measured")
        return 1
    measured, missing = works(arguments.messages)
    seconds: dict[str, list[float]] = {work.name: [] for work in measured}
    for number in range(arguments.rounds):
        # Every other round the other way round: whoever comes first finds another machine.
        for work in measured[:: 1 if number % 2 else -1]:
            seconds[work.name].append(work.seconds())
    for work in measured:
        work.receiver.close()
    base = seconds[Client.name]
    results = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "messages": arguments.messages,
        "rounds": arguments.rounds,
        "versions": {name: version(name) for name in LIBRARIES if name not in missing},
        "missing": missing,
        "ways": {
            name: {
                "nanoseconds": median(times) * 1e9,
                "ratio": median(theirs / ours for theirs, ours in zip(times, base, strict=True)),
            }
            for name, times in seconds.items()
        },
    }
    for name, figures in results["ways"].items():
        print(f"{name}: {1e9 / figures['nanoseconds']:,.0f} a second, {figures['ratio']:.2f}x the time")
    store("connections", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
