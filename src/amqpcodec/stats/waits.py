"""How long messages waited from their publish to their first delivery, by queue and routing key."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .durations import Durations
from .summary import Wait

_MOST_KEYS = 1000
_WAYS = ("exact", "by id", "by content", "dropped")


class _Waited(Durations):
    """The deliveries of one key."""

    def __init__(self) -> None:
        super().__init__()
        self.ways: Counter[str | None] = Counter()


class Waits:
    """Waits by queue, exchange and routing key: of the first 1,000, and of all later ones together."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[Any, ...], _Waited] = {}
        self._others = _Waited()
        self.dropped = 0

    def add(self, key: tuple[Any, ...], way: str | None, wait_ns: int | None) -> None:
        """Add a first delivery, how its publish was found, and how long it waited."""
        waited = self._by_key.get(key)
        if waited is None:
            waited = self._others
            if len(self._by_key) < _MOST_KEYS:
                waited = self._by_key[key] = _Waited()
        waited.messages += 1
        waited.ways[way] += 1
        self.dropped += way == "dropped"
        if wait_ns is not None:
            waited.add(wait_ns)

    def largest(self, top: int) -> list[Wait]:
        """Return those with the most messages, and the counts of all others together, if there are any."""
        ordered = sorted(self._by_key.items(), key=lambda item: (-item[1].messages, str(item[0])))
        shown = [_wait(key, waited) for key, waited in ordered[:top]]
        left = [waited for _, waited in ordered[top:]] + [self._others] * (self._others.messages > 0)
        if left:
            rest = _Waited()
            for waited in left:
                rest.messages += waited.messages
                rest.ways.update(waited.ways)
            shown.append(_wait((None, None, None), rest, others=len(left)))
        return shown


def _wait(key: tuple[Any, ...], waited: _Waited, others: int = 0) -> Wait:
    queue, exchange, routing_key = key
    exact, by_id, by_content, dropped = (waited.ways[way] for way in _WAYS)
    percentiles = waited.percentiles()
    return Wait(
        queue, exchange, routing_key, waited.messages, exact, by_id, by_content, dropped, waited.mean,
        percentiles.get("p50"), percentiles.get("p99"), waited.most, others,
    )  # fmt: skip
