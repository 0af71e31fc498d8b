"""A broker on a thread, for programs that block; and calls from other threads than the broker's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from .broker import Broker

STOP_SECONDS = 10.0

_F = TypeVar("_F", bound=Callable[..., Any])


def on_the_loop(method: _F) -> _F:
    """Let a method be called from any thread: its work is done on the thread of the object's `loop`."""

    @wraps(method)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        loop: asyncio.AbstractEventLoop | None = self.loop
        if loop is None or not loop.is_running() or _is_own(loop):
            return method(self, *arguments, **options)

        async def work() -> Any:
            return method(self, *arguments, **options)

        return asyncio.run_coroutine_threadsafe(work(), loop).result()

    return cast("_F", called)


def _is_own(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this thread runs the loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


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
    from .broker import Broker

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


__all__ = ["on_the_loop", "running_broker"]
