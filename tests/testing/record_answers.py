"""Prints what a RabbitMQ answers to the probes, for tests/data/broker: where the version before it answers otherwise.

.venv/bin/python tests/testing/record_answers.py amqp://guest:guest@127.0.0.1:5672/ 4.3
"""

from __future__ import annotations

import asyncio
import sys

from declaring_probes import DECLARING
from delivery_probes import DELIVERY
from octet_probes import OCTETS
from probes import PROBES
from probing import QUIET_SECONDS, VERSIONS, clean, probe, stored
from quorum_probes import QUORUMS
from stream_probes import STREAMS
from version_probes import OF_VERSIONS

ALL = DELIVERY | OCTETS | PROBES | DECLARING | QUORUMS | STREAMS | OF_VERSIONS


async def main(url: str, like: str) -> None:
    """Print a line for each answer, under the name of its probe."""
    place = VERSIONS.index(like)
    before = stored(VERSIONS[place - 1]) if place else {}
    for name, steps in ALL.items():
        lines = await probe(url, steps, QUIET_SECONDS)
        if lines != before.get(name):
            print(f"== {name}", *lines, sep="\n")
        await clean(url)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
