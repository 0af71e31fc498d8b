"""Dead letters: what is written into them, and where they go."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .. import replace
from . import messages as states
from .messages import Message

if TYPE_CHECKING:
    from .hosts import VirtualHost
    from .queues import Queue

AT_ONCE = 10_000  # deaths that one event may cause before the rest waits for the next turn


class DeadLetters:
    """Takes what has died in the queues of a virtual host to the exchanges for that.

    They go one after another, and not from within each other: chains of queues may be long. A message that
    is being delivered reaches all its queues before what dies of it.
    """

    def __init__(self, host: VirtualHost) -> None:
        self._host = host
        self._waiting: deque[tuple[Queue, Message, str]] = deque()
        self._busy = False

    def add(self, queue: Queue, message: Message, reason: str) -> None:
        """Pass a message on that has died in a queue, where that says so."""
        if queue.settings.dead_letter_exchange is None:
            return
        self._waiting.append((queue, message, reason))
        if not self._busy:
            self._pass_on()

    def hold(self) -> bool:
        """Keep what dies for `release`; return False if it is kept already."""
        was_busy, self._busy = self._busy, True
        return not was_busy

    def release(self) -> None:
        """Pass on what has died meanwhile."""
        self._busy = False
        if self._waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        self._busy = True
        try:
            for _ in range(AT_ONCE):
                if not self._waiting:
                    return
                self._send(*self._waiting.popleft())
        finally:
            self._busy = False
        if self._waiting:
            self._host.clock.call_soon(self._pass_on)

    def _send(self, queue: Queue, message: Message, reason: str) -> None:
        settings = queue.settings
        exchange = self._host.exchanges.get(settings.dead_letter_exchange or "")
        if exchange is None:
            return
        key = settings.dead_letter_routing_key
        letter = Message(
            exchange.name, message.routing_key if key is None else key,
            _properties(message, queue.name, reason, self._host.clock.now(), key is not None),
            message.body, message.virtual_host,
        )  # fmt: skip
        if key is None:
            letter.bcc = message.bcc
            letter.also_by(message.bcc)
        queues = self._host.route(letter, exchange)
        if reason != states.REJECTED:
            queues = [each for each in queues if not _is_cycle(letter, each.name)]
        self._host.deliver(letter, queues)


def _is_cycle(letter: Message, target: str) -> bool:
    """Return whether a letter would come back to a queue without having been rejected on the way."""
    deaths = _deaths(letter.headers)
    for place, death in enumerate(deaths):
        if death.get("queue") == target:
            return all(each.get("reason") != states.REJECTED for each in deaths[: place + 1])
    return False


def _deaths(headers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the deaths of a message so far, the last one first."""
    found = headers.get("x-death")
    return [death for death in found if isinstance(death, dict)] if isinstance(found, list) else []


def _properties(message: Message, queue: str, reason: str, now: datetime, own_key: bool) -> Any:
    """Return the properties of a dead letter: its headers tell how it died."""
    properties = message.properties
    headers = dict(properties.headers or {})
    keys = [message.routing_key, *(headers.get("CC") or ())]
    if own_key:
        headers.pop("CC", None)
    deaths = _deaths(headers)
    same = next((each for each in deaths if (each.get("queue"), each.get("reason")) == (queue, reason)), None)
    if same is None:
        death = {
            "count": 1,
            "reason": reason,
            "queue": queue,
            "time": now,
            "exchange": message.exchange,
            "routing-keys": keys,
        }
        if properties.expiration is not None:
            death["original-expiration"] = properties.expiration
    else:
        deaths.remove(same)
        before = same.get("count")
        death = {**same, "count": (before if isinstance(before, int) else 0) + 1}
    headers["x-death"] = [death, *deaths]
    for name, value in (("exchange", message.exchange), ("queue", queue), ("reason", reason)):
        headers.setdefault(f"x-first-death-{name}", value)
    return replace(properties, headers=headers, expiration=None)


__all__ = ["DeadLetters"]
