"""A broker in memory that clients may try out against: it answers as RabbitMQ, and keeps nothing.

    python examples/broker.py --port 5672

Change first: the arguments of `Broker`, such as users, TLS or faults. `amqpcodec.testing` has the broker;
docs/testing.md says what it can do and what it lacks.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress

from amqpcodec.testing import Broker


async def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=5672, help="of 127.0.0.1; 0 for any that is free")
    async with Broker(port=parser.parse_args().port) as broker:
        print(f"listening on 127.0.0.1:{broker.port}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
