"""Logins that change: a program gives new credentials before the old ones end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from .checks import awaitable
from .connecting import in_time
from .credentials import Credentials

if TYPE_CHECKING:
    from .counters import Backoff
    from .link import Link

RENEWED_AT = 0.8  # of the seconds for which credentials hold
ASKED_SECONDS = 30.0  # for the program's answer, and for the broker's
log = logging.getLogger("amqpcodec.aio")


class Renewal:
    """Asks a program for credentials: before each connection, and on a connection before they end.

    Args:
        ask: the program's function; None where there is none.
        backoff: how long to wait after a renewal that has failed.
    """

    def __init__(self, ask: Callable[[], Awaitable[Credentials]] | None, backoff: Backoff) -> None:
        self._ask = ask
        self._backoff = backoff
        self._waits: Iterator[float] = iter(())
        self._due: float | None = None  # when to renew them

    async def options(self) -> dict[str, Any]:
        """Return the option of `connect` that says who comes, if the program does.

        Raises:
            TimeoutError: the program does not answer.
            TypeError: it returns something else.
            Exception: of the program.
        """
        self._waits = self._backoff.waits()
        return {} if self._ask is None else {"login": await self._asked(self._ask)}

    async def _asked(self, ask: Callable[[], Awaitable[Credentials]]) -> Credentials:
        late = TimeoutError(f"no credentials within {ASKED_SECONDS:g} seconds")
        given = await in_time(awaitable("credentials", ask()), ASKED_SECONDS, late)
        if not isinstance(given, Credentials):
            raise TypeError(f"credentials must return Credentials, not {type(given).__name__}")
        if given.seconds is None:
            self._due = None
        else:
            wait = max(RENEWED_AT * given.seconds, self._backoff.first)  # not without a pause
            self._due = asyncio.get_running_loop().time() + wait
        return given

    async def keep(self, link: Link) -> None:
        """Wait until a connection is over, and give its broker new credentials in time."""
        loop = asyncio.get_running_loop()
        while not link.ended.done():
            seconds = None if self._due is None else max(0.0, self._due - loop.time())
            await asyncio.wait((link.ended,), timeout=seconds)
            if not link.ended.done() and self._ask is not None:
                renewing = asyncio.ensure_future(self._renew(self._ask, link))
                try:
                    await asyncio.wait((renewing, link.ended), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    renewing.cancel()
                    await asyncio.wait((renewing,), timeout=1.0)

    async def _renew(self, ask: Callable[[], Awaitable[Credentials]], link: Link) -> None:
        """Give the broker new credentials; try again later where that fails."""
        try:
            given = await self._asked(ask)
            method = link.connection.dialect.Connection.UpdateSecret(given.password.encode(), "renewed")
            late = TimeoutError(f"no answer to connection.update-secret within {ASKED_SECONDS:g} seconds")
            await in_time(link.calls.send(link, 0, method), ASKED_SECONDS, late)
        except Exception as error:  # of the program, too
            if not link.ended.done():
                wait = next(self._waits, None)
                self._due = None if wait is None else asyncio.get_running_loop().time() + wait
                log.warning("credentials are not renewed: %r", error)
        else:
            self._waits = self._backoff.waits()
            log.info("credentials are renewed")


__all__ = ["Renewal"]
