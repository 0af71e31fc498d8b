"""The surroundings of a test of the client: a broker that is told what to do, and clients of either build."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterable
from types import ModuleType
from typing import Any

from support.scripted_broker import Peer, ScriptedBroker

from amqpcodec.aio import Backoff, Channel, Client

SOON = Backoff(first=0.01, most=0.05)


class World:
    """A broker, and clients of it.

    Attributes:
        amqp: the dialect, of the build that is tested.
        broker: is there while the test runs.
        reported: what the event loop has reported.
    """

    def __init__(self, amqp: ModuleType) -> None:
        self.amqp = amqp
        self.broker = ScriptedBroker(amqp)
        self.reported: list[dict[str, Any]] = []

    def client(self, url: str | list[str] = "", **options: Any) -> Client:
        """Return a client of the broker that comes back quickly."""
        return Client(url or self.broker.url, **{"backoff": SOON, "dialect": self.amqp, **options})

    async def run(self, test: Coroutine[Any, Any, None]) -> None:
        """Run a test; what the event loop reports is a failure, and so is a task that outlives it."""
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self.reported.append(context))
        async with asyncio.timeout(20), self.broker:
            await test
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left
        gc.collect()  # which makes futures say that nobody has asked for their exceptions
        assert not self.reported, self.reported
        assert self.broker.errors == []


async def cut(client: Client, peer: Peer) -> None:
    """Cut the TCP connection of a client, and wait until it has noticed."""
    link = client._link
    assert link is not None
    peer.abort()
    await asyncio.wait((link.ended,))


async def outcomes(*futures: Any) -> list[str]:
    """Return how each has ended: the name of its exception, or ``"ok"``."""
    ended = await asyncio.gather(*futures, return_exceptions=True)
    return [type(each).__name__ if isinstance(each, BaseException) else "ok" for each in ended]


def published(channel: Channel, count: int, **options: Any) -> list[asyncio.Task[None]]:
    """Publish messages by a task each: their bodies are their numbers, from 1."""
    return [
        asyncio.ensure_future(channel.publish(b"%d" % number, **options)) for number in range(1, count + 1)
    ]


def numbers(bodies: Iterable[bytes]) -> list[int]:
    """Return the numbers that bodies are."""
    return [int(body) for body in bodies]
