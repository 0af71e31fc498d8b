"""Prints what a RabbitMQ answers to all probes, for tests/data/broker.

.venv/bin/python tests/testing/record_answers.py amqp://guest:guest@127.0.0.1:5672/
"""

from __future__ import annotations

import asyncio
import sys

from declaring_probes import DECLARING
from delivery_probes import DELIVERY
from octet_probes import OCTETS
from probes import PROBES
from probing import QUIET_SECONDS, clean, probe

ALL = DELIVERY | OCTETS | PROBES | DECLARING


async def main(url: str) -> None:
    """Print a line for each answer, under the name of its probe."""
    for name, steps in ALL.items():
        print("==", name)
        for line in await probe(url, steps, QUIET_SECONDS):
            print(line)
        await clean(url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
