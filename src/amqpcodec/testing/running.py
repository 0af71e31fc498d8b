"""A broker on a thread, for programs that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from .broker import Broker

STOP_SECONDS = 10.0


@contextmanager
def running_broker(**options: Any) -> Iterator[Broker]:
    """Run a broker on a thread of its own, for clients that block.

        with running_broker() as broker:
            connection = pika.BlockingConnection(pika.URLParameters(broker.url))

    Args:
        options: as for `Broker`. What the broker offers may be called from any thread.

    Raises:
        OSError: the port cannot be listened on.
    """
    broker = Broker(**options)
    started: Future[asyncio.AbstractEventLoop] = Future()
    ended = asyncio.Event()

    async def serve() -> None:
        try:
            async with broker:
                started.set_result(asyncio.get_running_loop())
                await ended.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="amqpcodec broker", daemon=True)
    thread.start()
    loop = started.result()
    try:
        yield broker
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(STOP_SECONDS)


__all__ = ["running_broker"]
