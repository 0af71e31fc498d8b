"""How long answers take, gathered in bounded memory."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from itertools import count

from .counters import KEYS, Intervals
from .summary import Band, Latency, Slow

# Classes are numbered. Up to 255 ns each duration has its own; from there on an octave has 128.
_FINE_BITS = 7
_BAND_BITS = 3  # classes joined over time: 8 of them, so an octave has 16
# The ends of quarters of an octave that begins at 128, equally wide as ratios.
_QUARTERS = (152, 181, 215, 256)
_PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999}  # per mille
_BAND = {"p50": 500, "p99": 990}


class Durations:
    """Durations gathered to a histogram with 128 classes an octave.

    Attributes:
        messages: how many there were, whatever became of them.
        redelivered: those of them that were delivered before.
        negative, unanswered, waiting, unfollowed: as in `Latency`.
        count, least, most: how many durations, the smallest and the largest; None without any.
    """

    def __init__(self) -> None:
        self._classes: Counter[int] = Counter()
        self._sum = self.count = 0
        self.least: int | None = None
        self.most: int | None = None
        self.messages = self.redelivered = self.negative = 0
        self.unanswered = self.waiting = self.unfollowed = 0

    def add(self, duration_ns: int) -> int:
        """Add a duration; returns the number of its class."""
        bits = duration_ns.bit_length()
        shift = bits - _FINE_BITS - 1 if bits > _FINE_BITS else 0
        number = (shift << _FINE_BITS) + (duration_ns >> shift)
        self._classes[number] += 1
        self._sum += duration_ns
        self.count += 1
        if self.least is None or duration_ns < self.least:
            self.least = duration_ns
        if self.most is None or duration_ns > self.most:
            self.most = duration_ns
        return number

    def add_counts(self, other: Durations) -> None:
        """Add the messages of others, without their durations."""
        for name in ("messages", "redelivered", "negative", "unanswered", "waiting", "unfollowed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def mean(self) -> int | None:
        """Return the mean duration; None without any."""
        return self._sum // self.count if self.count else None

    def percentiles(self) -> dict[str, int]:
        """Return percentiles by name, none of them above the largest duration."""
        found = _percentiles(self._classes, 0, _PERCENTILES)
        return {name: min(value, self.most or 0) for name, value in found.items()}

    def histogram(self) -> list[tuple[int, int]]:
        """Return the ends of quarters of octaves, and what is in them, from the first to the last one."""
        shown: Counter[int] = Counter()
        for number, times in self._classes.items():
            shown[_quarter(number)] += times
        quarters = range(min(shown), max(shown) + 1) if shown else ()
        return [(_quarter_end(quarter), shown[quarter]) for quarter in quarters]


class Answers(Durations):
    """Durations of all answers of a kind, over time as well, and the slowest ones.

    Args:
        top: how many of the slowest to keep.
    """

    def __init__(self, top: int) -> None:
        super().__init__()
        self._top = top
        self._slowest: list[tuple[int, int, Slow]] = []
        self._order = count(0, -1)  # of equal durations the first one stays
        self._over_time = _OverTime()
        self._refused: set[object] = set()
        self._refused_others = 0

    def refuse(self, identity: object, again: bool) -> None:
        """Count a message that was refused.

        Args:
            identity: what tells it from others; None if nothing does.
            again: whether it was delivered before.
        """
        if identity is None or len(self._refused) >= KEYS:
            self._refused_others += not again and identity not in self._refused
        else:
            self._refused.add(identity)

    def answer(self, duration_ns: int, time_ns: int) -> bool:
        """Add a duration that ended at a time; returns whether it is among the slowest so far, for `keep`."""
        self._over_time.add(time_ns, self.add(duration_ns))
        return len(self._slowest) < self._top or duration_ns > self._slowest[0][0]

    def keep(self, slow: Slow) -> None:
        """Keep one of the slowest."""
        heapq.heappush(self._slowest, (slow.latency_ns, next(self._order), slow))
        if len(self._slowest) > self._top:
            heapq.heappop(self._slowest)

    def latency(self) -> Latency:
        """The latencies so far."""
        slowest = [slow for *_, slow in sorted(self._slowest, key=lambda item: item[:2], reverse=True)]
        return Latency(
            count=self.count,
            unanswered=self.unanswered,
            waiting=self.waiting,
            unfollowed=self.unfollowed,
            negative=self.negative,
            negative_messages=max(len(self._refused) + self._refused_others, min(self.negative, 1)),
            mean_ns=self.mean,
            least_ns=self.least,
            most_ns=self.most,
            percentiles=self.percentiles(),
            histogram=self.histogram(),
            over_time=self._over_time.band(),
            slowest=slowest,
        )


class _OverTime(Intervals):
    """Durations in intervals of time, in 16 classes an octave."""

    def __init__(self) -> None:
        super().__init__()
        self._by_interval: dict[int, Counter[int]] = {}

    def add(self, time_ns: int, number: int) -> None:
        """Add a duration that ended at a time, by the number of its class."""
        found = self._by_interval.get(time_ns // self.width_ns)
        if found is None:
            self.span(time_ns, time_ns)
            found = self._by_interval.setdefault(time_ns // self.width_ns, Counter())
        found[number >> _BAND_BITS] += 1

    def band(self) -> Band:
        """Return the percentiles in each interval."""
        counters = [self._by_interval.get(interval, Counter()) for interval in self.intervals()]
        found = [_percentiles(counter, _BAND_BITS, _BAND) for counter in counters]
        return Band(
            start_ns=self.start_ns,
            width_ns=self.width_ns,
            answered=[counter.total() for counter in counters],
            p50_ns=[each.get("p50") for each in found],
            p99_ns=[each.get("p99") for each in found],
        )

    def _widen(self, factor: int) -> None:
        joined: dict[int, Counter[int]] = {}
        for interval, counter in self._by_interval.items():
            joined.setdefault(interval // factor, Counter()).update(counter)
        self._by_interval = joined


def _parts(number: int) -> tuple[int, int]:
    """The shift of the durations in a class, and what is left of them then."""
    shift = max((number >> _FINE_BITS) - 1, 0)
    return shift, number - (shift << _FINE_BITS)


def _end(number: int, bits: int) -> int:
    """The largest duration in a class that is so many bits coarser."""
    shift, left = _parts((number + 1 << bits) - 1)
    return (left + 1 << shift) - 1


def _quarter(number: int) -> int:
    """The quarter of an octave that a class is in; all classes below 128 ns are in one."""
    shift, left = _parts(number)
    if left < 1 << _FINE_BITS:
        return 4 * _FINE_BITS - 1
    return 4 * (shift + _FINE_BITS) + bisect_right(_QUARTERS, left)


def _quarter_end(quarter: int) -> int:
    """The largest duration in a quarter of an octave."""
    octave, part = divmod(quarter, 4)
    return (_QUARTERS[part] << octave >> _FINE_BITS) - 1


def _percentiles(classes: Counter[int], bits: int, wanted: dict[str, int]) -> dict[str, int]:
    """By name, the upper end of the first class that reaches the percentile."""
    found: dict[str, int] = {}
    total, passed = classes.total(), 0
    for number, times in sorted(classes.items()):
        passed += times
        for name, mille in wanted.items():
            if name not in found and passed * 1000 >= total * mille:
                found[name] = _end(number, bits)
    return found
