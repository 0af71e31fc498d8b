"""Counting in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .summary import Ranking, Rates

KEYS = 50_000
_SECOND = 1_000_000_000
# Widths that intervals of time grow to, each a multiple of the one before; beyond the last they double.
_WIDTHS = [
    *(step * _SECOND // 1000 for step in (1, 5, 10, 50, 100, 500)),
    *(step * _SECOND for step in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400)),
]
_INTERVALS = 240


class Tally:
    """Counts by key, exact for the first `limit` keys; the counts of all later keys are added up.

    Args:
        keys: names of the parts of a key.
        counts: names of the counts.
        limit: number of keys that are counted separately.
    """

    def __init__(self, keys: tuple[str, ...], counts: tuple[str, ...], limit: int = KEYS) -> None:
        self._keys = keys
        self._counts = counts
        self._limit = limit
        self._by_key: dict[tuple[object, ...], list[int]] = {}
        self._uncounted = [0] * len(counts)

    def add(self, key: tuple[object, ...], *amounts: int) -> None:
        """Add amounts, in the order of the names of the counts."""
        sums = self._by_key.get(key)
        if sums is None:
            sums = self._uncounted
            if len(self._by_key) < self._limit:
                sums = self._by_key[key] = [0] * len(amounts)
        for index, amount in enumerate(amounts):
            sums[index] += amount

    def count(self, name: str, key: tuple[object, ...]) -> int:
        """One of the counts of a key that is counted separately; 0 for any other."""
        sums = self._by_key.get(key)
        return sums[self._counts.index(name)] if sums else 0

    def ranking(self, top: int, later: Callable[[tuple[Any, ...]], bool] = lambda key: False) -> Ranking:
        """The `top` keys with the largest sum of counts of the first name, then of the second, ...

        Args:
            top: how many.
            later: says which keys stand behind all others, whatever their counts.
        """
        ordered = sorted(
            self._by_key.items(),
            key=lambda item: (later(item[0]), [-each for each in item[1]], str(item[0])),
        )
        rows = [
            dict(zip(self._keys + self._counts, (*key, *sums), strict=True)) for key, sums in ordered[:top]
        ]
        rest = [sums for _, sums in ordered[top:]] + [self._uncounted]
        return Ranking(
            self._keys,
            self._counts,
            rows,
            dict(zip(self._counts, map(sum, zip(*rest, strict=True)), strict=True)),
            len(self._by_key),
            dict(zip(self._counts, self._uncounted, strict=True)),
        )


class Largest:
    """Keys that occur once each: the largest ones, and the counts of all others together.

    Args:
        keys: names of the parts of a key.
        counts: names of the counts; the first one is the size of a key.
        top: how many to keep.
    """

    def __init__(self, keys: tuple[str, ...], counts: tuple[str, ...], top: int) -> None:
        self._keys = keys
        self._counts = counts
        self._top = top
        self._largest: list[tuple[int, int, dict[str, Any]]] = []
        self._others = [0] * len(counts)
        self._added = 0

    def add(self, key: Iterable[Any], amounts: Sequence[int]) -> None:
        """Add a key and its counts."""
        row = dict(zip(self._keys + self._counts, (*key, *amounts), strict=True))
        heapq.heappush(self._largest, (amounts[0], -self._added, row))  # of equal ones the first stays
        self._added += 1
        if len(self._largest) > self._top:
            *_, left_out = heapq.heappop(self._largest)
            for index, name in enumerate(self._counts):
                self._others[index] += left_out[name]

    def ranking(self) -> Ranking:
        """The largest, largest first."""
        rows = [row for *_, row in sorted(self._largest, key=lambda item: item[:2], reverse=True)]
        others = dict(zip(self._counts, self._others, strict=True))
        return Ranking(self._keys, self._counts, rows, others, self._added, dict.fromkeys(self._counts, 0))


class Intervals:
    """Intervals of time that grow with the time they span, so that there are never more than 240.

    Attributes:
        width_ns: duration of an interval.
    """

    def __init__(self) -> None:
        self._widths = iter(_WIDTHS)
        self.width_ns = next(self._widths)
        self._first: int | None = None
        self._last: int | None = None

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the intervals until they cover these times; call it before anything is added there."""
        first = first_ns if self._first is None else min(first_ns, self._first)
        last = last_ns if self._last is None else max(last_ns, self._last)
        self._first, self._last = first, last
        width = self.width_ns
        while last // width - first // width >= _INTERVALS:
            width = next(self._widths, width * 2)
        if width != self.width_ns:
            self._widen(width // self.width_ns)
            self.width_ns = width

    @property
    def start_ns(self) -> int | None:
        """Return when the first interval begins; None if there is none."""
        return None if self._first is None else self._first // self.width_ns * self.width_ns

    def intervals(self) -> range:
        """Return the numbers of all intervals: time divided by `width_ns`."""
        if self._first is None or self._last is None:
            return range(0)
        return range(self._first // self.width_ns, self._last // self.width_ns + 1)

    def _widen(self, factor: int) -> None:
        """Join as many intervals each."""
        raise NotImplementedError


class Timeline(Intervals):
    """Messages and octets by kind in intervals of time."""

    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[str, dict[int, list[int]]] = {}

    def _widen(self, factor: int) -> None:
        for kind, sums in self._sums.items():
            joined: dict[int, list[int]] = {}
            for interval, (messages, octets) in sums.items():
                total = joined.setdefault(interval // factor, [0, 0])
                total[0] += messages
                total[1] += octets
            self._sums[kind] = joined

    def add(self, rows: Iterable[tuple[str, int, int, int]]) -> None:
        """Add kinds, numbers of intervals (time divided by `width_ns`), messages and octets."""
        for kind, interval, messages, octets in rows:
            total = self._sums.setdefault(kind, {}).setdefault(interval, [0, 0])
            total[0] += messages
            total[1] += octets

    def rates(self) -> Rates:
        """The rates so far."""
        messages, octets = (
            {
                kind: [sums.get(interval, (0, 0))[index] for interval in self.intervals()]
                for kind, sums in sorted(self._sums.items())
            }
            for index in (0, 1)
        )
        return Rates(self.start_ns, self.width_ns, messages, octets)
