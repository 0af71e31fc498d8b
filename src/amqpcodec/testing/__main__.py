"""``python -m amqpcodec.testing --port 5672``: serve the broker for tests until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress

from .broker import Broker
from .versions import VERSIONS


async def main() -> None:
    """Serve on 127.0.0.1, without TLS; prints the port."""
    parser = argparse.ArgumentParser(
        prog="python -m amqpcodec.testing",
        description="Serve a broker in memory, which answers as RabbitMQ. The login is guest, guest.",
    )
    parser.add_argument("--port", type=int, default=5672, help="of 127.0.0.1; 0 for any that is free")
    parser.add_argument(
        "--like", choices=VERSIONS, default="3.10", help="the version of RabbitMQ whose answers are given"
    )
    chosen = parser.parse_args()
    port = chosen.port
    try:
        async with Broker(port=port, like=chosen.like) as broker:
            print(f"listening on 127.0.0.1:{broker.port}", flush=True)
            await asyncio.Event().wait()
    except (OSError, OverflowError) as error:  # of a port that is taken, not allowed, or no port
        sys.exit(f"{parser.prog}: port {port}: {getattr(error, 'strerror', None) or error}")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
