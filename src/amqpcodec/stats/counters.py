"""Counting in bounded memory."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from .summary import Latency, Party, Ranking, Rates, Slow

KEYS = 50_000
_SECOND = 1_000_000_000
# Widths that intervals of time grow to, each a multiple of the one before; beyond the last they double.
_WIDTHS = [
    *(step * _SECOND // 1000 for step in (1, 5, 10, 50, 100, 500)),
    *(step * _SECOND for step in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400)),
]
_INTERVALS = 240
_MOST_PARTIES = 1000
_FINE_BITS = 7  # of a duration that decide its class in the histogram: 128 classes an octave
_FINE = (1 << _FINE_BITS + 1) - 1
_PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999}  # per mille


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


class Durations:
    """Durations gathered to a histogram whose classes are 1/128 of an octave wide, and the slowest ones.

    Args:
        top: how many of the slowest to keep.

    Attributes:
        messages: how many there were, whatever became of them.
        redelivered: those of them that were delivered before.
        negative, unanswered, waiting, unfollowed: as in `Latency`.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._most: int | None = None
        self._classes: defaultdict[int, int] = defaultdict(int)  # by shift, then by the bits that are left
        self._sum = self._count = 0
        self._least: int | None = None
        self._slowest: list[tuple[int, int, Slow]] = []
        self._order = count(0, -1)  # of equal durations the first one stays
        self.messages = self.redelivered = self.negative = 0
        self.unanswered = self.waiting = self.unfollowed = 0
        self._first: int | None = None
        self._last: int | None = None

    @property
    def keeps(self) -> bool:
        """Return whether the slowest ones are kept."""
        return self._top > 0

    def see(self, time_ns: int | None) -> None:
        """A message came at a time."""
        if time_ns is not None:
            self._first = time_ns if self._first is None else min(self._first, time_ns)
            self._last = time_ns if self._last is None else max(self._last, time_ns)

    def slow(self, duration_ns: int) -> bool:
        """Add a duration; returns whether it is among the slowest so far, to be passed to `keep`."""
        bits = duration_ns.bit_length()
        shift = bits - _FINE_BITS - 1 if bits > _FINE_BITS else 0
        self._classes[shift << _FINE_BITS + 1 | duration_ns >> shift] += 1
        self._sum += duration_ns
        self._count += 1
        if self._least is None or duration_ns < self._least:
            self._least = duration_ns
        if self._most is None or duration_ns > self._most:
            self._most = duration_ns
        return len(self._slowest) < self._top or (self.keeps and duration_ns > self._slowest[0][0])

    def keep(self, slow: Slow) -> None:
        """Keep one of the slowest."""
        heapq.heappush(self._slowest, (slow.latency_ns, next(self._order), slow))
        if len(self._slowest) > self._top:
            heapq.heappop(self._slowest)

    def latency(self) -> Latency:
        """The latencies so far."""
        slowest = [slow for *_, slow in sorted(self._slowest, key=lambda item: item[:2], reverse=True)]
        ends = self._ends()
        return Latency(
            self._count,
            self.unanswered,
            self.waiting,
            self.unfollowed,
            self.negative,
            self._sum // self._count if self._count else None,
            self._least,
            self._most,
            _percentiles(ends, self._count),
            _octaves(ends),
            slowest,
        )

    def party(self, keys: dict[str, Any]) -> Party:
        """Return the counts so far of who is known by these keys."""
        percentiles = _percentiles(self._ends(), self._count)
        rate = None
        if self._first is not None and self._last is not None and self._last > self._first:
            rate = self.messages * _SECOND / (self._last - self._first)
        return Party(
            keys, self.messages, rate, self.redelivered, self.negative, self.unanswered, self.unfollowed,
            percentiles.get("p50"), percentiles.get("p99"), self._most, self._first, self._last,
        )  # fmt: skip

    def _ends(self) -> list[tuple[int, int]]:
        """The upper end of each class, and how many there are in it."""
        ends = [
            (((fine & _FINE) + 1 << (fine >> _FINE_BITS + 1)) - 1, number)
            for fine, number in sorted(self._classes.items())
        ]
        if self._most is not None:
            ends[-1] = self._most, ends[-1][1]
        return ends


class Parties:
    """Durations by who took part: of the first 1,000, and of all later ones together.

    Args:
        keys: names of the parts of a key.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._by_key: dict[tuple[object, ...], Durations] = {}
        self._others = Durations(0)

    def of(self, key: tuple[object, ...]) -> Durations:
        """Return the durations of a key."""
        found = self._by_key.get(key)
        if found is None:
            if len(self._by_key) >= _MOST_PARTIES:
                return self._others
            found = self._by_key[key] = Durations(0)
        return found

    def largest(self, top: int) -> list[Party]:
        """Return those with the most messages, and all others together, if there are any."""
        ordered = sorted(self._by_key.items(), key=lambda item: (-item[1].messages, str(item[0])))
        shown = [each.party(dict(zip(self._keys, key, strict=True))) for key, each in ordered[:top]]
        left = [each for _, each in ordered[top:]] + [self._others] * (self._others.messages > 0)
        if left:
            rest = Durations(0)
            for count in ("messages", "redelivered", "negative", "unanswered", "unfollowed"):
                setattr(rest, count, sum(getattr(each, count) for each in left))
            shown.append(replace(rest.party(dict.fromkeys(self._keys)), others=len(left)))
        return shown


def _percentiles(ends: list[tuple[int, int]], total: int) -> dict[str, int]:
    """By name, the upper end of the first class that reaches the percentile."""
    found: dict[str, int] = {}
    passed = 0
    for end, number in ends:
        passed += number
        for name, mille in _PERCENTILES.items():
            if name not in found and passed * 1000 >= total * mille:
                found[name] = end
    return found


def _octaves(ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Classes joined to octaves, from the first to the last one that has any."""
    octaves: dict[int, int] = {}
    for end, number in ends:
        octaves[end.bit_length()] = octaves.get(end.bit_length(), 0) + number
    if not octaves:
        return []
    return [((1 << bits) - 1, octaves.get(bits, 0)) for bits in range(min(octaves), max(octaves) + 1)]


class Timeline:
    """Messages and octets by kind in intervals of time that grow with the time they span."""

    def __init__(self) -> None:
        self._widths = iter(_WIDTHS)
        self.width_ns = next(self._widths)
        self._sums: dict[str, dict[int, list[int]]] = {}
        self._first: int | None = None
        self._last: int | None = None

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the intervals until they cover these times; call it before `add`."""
        first = first_ns if self._first is None else min(first_ns, self._first)
        last = last_ns if self._last is None else max(last_ns, self._last)
        self._first, self._last = first, last
        width = self.width_ns
        while last // width - first // width >= _INTERVALS:
            width = next(self._widths, width * 2)
        if width != self.width_ns:
            self._widen(width // self.width_ns)
            self.width_ns = width

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
        if self._first is None or self._last is None:
            return Rates(None, self.width_ns, {}, {})
        first, last = self._first // self.width_ns, self._last // self.width_ns
        intervals = range(first, last + 1)
        messages, octets = (
            {
                kind: [sums.get(interval, (0, 0))[index] for interval in intervals]
                for kind, sums in sorted(self._sums.items())
            }
            for index in (0, 1)
        )
        return Rates(first * self.width_ns, self.width_ns, messages, octets)
