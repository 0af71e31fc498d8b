"""Dead letters: what is written into them, and where they go."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .. import FieldValue, replace
from . import messages as states
from .arguments import comparable
from .messages import UNCOUNTED, Message, by_name, keys_in

if TYPE_CHECKING:
    from .hosts import VirtualHost
    from .queues import Queue
    from .versions import Version

FIRST = ("reason", "queue", "exchange")  # of the first and the last death, which have headers of their own
OF_DEATHS = frozenset(
    {"x-death", *(f"x-{which}-death-{name}" for which in ("first", "last") for name in FIRST)}
)
_HALF = 1 << 63  # counts go round beyond 64 bits
AT_ONCE = 10_000  # deaths that one event may cause before the rest waits for the next turn


class DeadLetters:
    """Takes what has died in the queues of a virtual host to the exchanges for that.

    They go one after another, and not from within each other: chains of queues may be long. A message that
    is being delivered reaches all its queues before what dies of it.
    """

    def __init__(self, host: VirtualHost) -> None:
        self._host = host
        self._waiting: deque[tuple[Queue, Message, str, tuple[int, int]]] = deque()
        self._busy = False

    def add(self, queue: Queue, message: Message, reason: str, carried: tuple[int, int] = UNCOUNTED) -> None:
        """Pass a message on that has died in a queue, where that says so.

        Args:
            queue, message: which.
            reason: of its death.
            carried: how often it has come back there, as `Message.carried`.
        """
        if queue.settings.dead_letter_exchange is None:
            return
        self._waiting.append((queue, message, reason, carried))
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

    def _send(self, queue: Queue, message: Message, reason: str, carried: tuple[int, int]) -> None:
        settings = queue.settings
        exchange = self._host.exchanges.get(settings.dead_letter_exchange or "")
        if exchange is None:
            return
        key = settings.dead_letter_routing_key
        try:
            made = _properties(
                message, queue.name, reason, self._host.clock.now(), key is not None, self._host.version
            )
        except _MalformedError:
            return
        letter = Message(
            exchange.name, message.routing_key if key is None else key, _counted(made), message.body,
            message.virtual_host,
        )  # fmt: skip
        letter.seen = made
        if carried != UNCOUNTED:
            letter.carried = carried
        if key is None:
            letter.bcc = message.bcc
            letter.also_by(message.bcc)
        names = self._host.route(letter, exchange)
        if reason != states.REJECTED:
            names = [name for name in names if not _is_cycle(letter, name)]
        self._host.deliver(letter, self._host.there(names))


class _MalformedError(Exception):
    """An x-death that RabbitMQ cannot read: the message is lost."""


def _is_cycle(letter: Message, target: str) -> bool:
    """Return whether a letter would come back to a queue without having been rejected on the way."""
    deaths = letter.headers["x-death"]
    for place, death in enumerate(deaths):
        if death.get("queue") == target:
            return all(each.get("reason") != states.REJECTED for each in deaths[: place + 1])
    return False


def _place(death: dict[str, Any]) -> tuple[Any, Any]:
    """Return where and why a message has died."""
    return comparable(death.get("queue")), comparable(death.get("reason"))


def _merged(deaths: list[Any]) -> list[dict[str, Any]]:
    """Return deaths, those of one queue and reason once. Several are turned round, as RabbitMQ does."""
    if not all(isinstance(death, dict) for death in deaths):
        raise _MalformedError
    if len(deaths) < 2:
        return deaths
    same: dict[Any, list[dict[str, Any]]] = {}
    for death in deaths:
        same.setdefault(_place(death), []).append(death)
    return [{"count": len(group), **group[0]} for group in reversed(same.values())]


def _once_more(death: dict[str, Any]) -> dict[str, Any]:
    """Return a death that has come again."""
    before = death.get("count", 0)
    if before is None:
        return death
    if type(before) is not int:
        raise _MalformedError
    return {**death, "count": (before + 1 + _HALF) % (2 * _HALF) - _HALF}


def _with_death(headers: dict[str, Any], death: dict[str, Any], version: Version) -> dict[str, Any]:
    """Return headers that tell of a further death, the first of all."""
    before = headers.get("x-death", [])
    deaths = _merged(before) if isinstance(before, list) else []
    here = _place(death)
    same = next((each for each in deaths if _place(each) == here), None)
    others = [each for each in deaths if each is not same]
    deaths = [death if same is None else _once_more(same), *others]
    first = {} if "x-death" in headers else {f"x-first-death-{name}": death[name] for name in FIRST}
    last = {f"x-last-death-{name}": death[name] for name in FIRST} if version.tells_last_death else {}
    return by_name({**headers, **first, **last, "x-death": deaths})


def _counted(properties: Any) -> Any:
    """Return properties whose deaths have counts of 64 bits on the wire."""
    deaths = [
        {**death, "count": FieldValue("l", death["count"])} if type(death.get("count")) is int else death
        for death in properties.headers["x-death"]
    ]
    return replace(properties, headers={**properties.headers, "x-death": deaths})


def _properties(
    message: Message, queue: str, reason: str, now: datetime, own_key: bool, version: Version
) -> Any:
    """Return the properties of a dead letter: its headers tell how it died."""
    properties = message.properties
    headers = dict(properties.headers or {})
    if message.seen is None and not version.reads_deaths:  # which are the publisher's own
        headers = {name: value for name, value in headers.items() if name not in OF_DEATHS}
    death = {
        "count": 1,
        "reason": reason,
        "queue": queue,
        "time": now,
        "exchange": message.exchange,
        "routing-keys": [message.routing_key, *keys_in(headers, "CC")],
    }
    if properties.expiration is not None:
        death["original-expiration"] = properties.expiration
    if own_key and not version.keeps_cc:
        headers.pop("CC", None)
    return replace(properties, headers=_with_death(headers, death, version), expiration=None)


__all__ = ["DeadLetters"]
