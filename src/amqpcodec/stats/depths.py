"""How full queues are, as far as the broker says so."""

from __future__ import annotations

from collections.abc import Callable

from .counters import KEYS
from .summary import QueueDepth


class _Depth:
    """The reports on one queue."""

    __slots__ = ("falls", "first", "last", "least", "most", "reports")

    def __init__(self, count: int) -> None:
        self.first = self.last = self.least = self.most = count
        self.reports, self.falls = 1, 0

    def report(self, count: int) -> None:
        """Take the next report."""
        self.reports += 1
        self.falls += count < self.last
        self.least, self.most, self.last = min(self.least, count), max(self.most, count), count


class Depths:
    """Depths of the first 50,000 queues, by queue.declare-ok, basic.get-ok and basic.get-empty."""

    def __init__(self) -> None:
        self._queues: dict[str, _Depth] = {}

    def report(self, queue: str | None, count: int | None) -> None:
        """The broker says how many messages are ready in a queue."""
        if not queue or count is None:
            return
        depth = self._queues.get(queue)
        if depth is not None:
            depth.report(count)
        elif len(self._queues) < KEYS:
            self._queues[queue] = _Depth(count)

    def largest(
        self, top: int, published: Callable[[str], int], delivered: Callable[[str], int]
    ) -> list[QueueDepth]:
        """The queues with the most growth, then those with the most messages.

        Args:
            top: how many of them.
            published: returns the number of messages published to a queue by its name.
            delivered: returns the number of messages delivered from it.
        """
        ordered = sorted(
            self._queues.items(), key=lambda item: (item[1].first - item[1].last, -item[1].most, item[0])
        )
        return [
            QueueDepth(
                queue, each.reports, each.first, each.last, each.least, each.most, each.falls,
                published(queue), delivered(queue),
            )
            for queue, each in ordered[:top]
        ]  # fmt: skip
