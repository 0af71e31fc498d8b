"""A client that a test speaks for: it sends, and looks at what has come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from probing import OPEN_CHANNELS, Probing

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import connect
from amqpcodec.testing import Broker

SOON = 0.01  # seconds in which what one connection causes has come on others
TURNS = 20  # of the event loop, in which octets go from one connection to another
LAST = amqp.Basic.Qos(prefetch_count=0)  # on the highest channel: its answer stands behind all others


class Talk(Probing):
    """A connection with its channels open."""

    async def say(self, *steps: Any, is_answered: bool = True) -> list[Any]:
        """Do steps; return what has come since.

        Args:
            steps: what to do.
            is_answered: whether the broker answers; if not, that is not waited for.
        """
        before = len(self.answers)
        for step in steps:
            await self.do(1, step)
        if is_answered:
            await self._pass_by()
        await self.quiet(SOON)
        return self.answers[before:]

    async def _pass_by(self) -> None:
        """Wait until all is read and answered."""
        answer = (OPEN_CHANNELS, "basic.qos-ok")
        await self.do(OPEN_CHANNELS, LAST)
        if answer in self.answers:
            self.answers.remove(answer)

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing has come for so long, and for some turns of the loop: a busy machine has few."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await super().quiet(seconds)

    def bodies(self) -> list[bytes]:
        """Return the bodies of the deliveries so far."""
        return [each[-1] for each in self.deliveries]

    async def ended(self) -> None:
        """Wait for the end of the connection."""
        while not self.over:
            self.came.clear()
            await self.came.wait()


@asynccontextmanager
async def talk(broker: Broker, url: str | None = None, **options: Any) -> AsyncIterator[Talk]:
    """Connect to a broker."""
    stream = await connect(url or broker.url, **options)
    client = Talk(stream)
    reader = asyncio.create_task(client.read())
    try:
        await client.open_channels()
        yield client
    finally:
        if not client.over:
            stream.end()
        await reader
