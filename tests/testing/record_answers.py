"""Prints what a RabbitMQ answers to the probes where the version before it answers otherwise.

.venv/bin/python tests/testing/record_answers.py amqp://guest:guest@127.0.0.1:5672/ 4.3
AMQPCODEC_BROKER=4.3 .venv/bin/python tests/testing/record_answers.py configured 4.3

The first prints tests/data/broker/rabbitmq-4.3.txt. The second starts a node with the settings of
`configured_probes.py`, and prints configured-4.3.txt.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from configured_probes import CONFIGURED, configured
from declaring_probes import DECLARING
from delivery_probes import DELIVERY
from octet_probes import OCTETS
from probes import PROBES
from probing import QUIET_SECONDS, VERSIONS, clean, probe, stored
from quorum_probes import QUORUMS
from stream_probes import STREAMS
from version_probes import OF_VERSIONS

ALL = DELIVERY | OCTETS | PROBES | DECLARING | QUORUMS | STREAMS | OF_VERSIONS


async def answers(url: str, probes: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Return what a RabbitMQ answers."""
    found = {}
    for name, steps in probes.items():
        found[name] = await probe(url, steps, QUIET_SECONDS)
        await clean(url)
    return found


def main(url: str, like: str) -> None:
    """Print a line for each answer, under the name of its probe."""
    kind = "configured" if url == "configured" else "rabbitmq"
    if kind == "configured":
        with configured(like) as own:
            found = asyncio.run(answers(own, CONFIGURED))
    else:
        found = asyncio.run(answers(url, ALL))
    place = VERSIONS.index(like)
    before = stored(VERSIONS[place - 1], kind) if place else {}
    for name, lines in found.items():
        if lines != before.get(name):
            print(f"== {name}", *lines, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
