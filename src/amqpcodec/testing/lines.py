"""Messages of a queue that wait: in one line, or in a line for each priority."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush, merge
from itertools import chain, count
from typing import Literal

from .messages import Entry, Message

HIGH = 5  # the least priority that is high, of two
AT_ONCE = 2  # of those with a high priority, before one of the others
USUAL, MOST = 4, 31  # priorities of a message that says nothing, and the highest


class Ready:
    """The messages of a queue that wait, in the order of their places.

    Attributes:
        octets: of their bodies.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._line: deque[Entry] = deque()  # most come in order,
        self._heap: list[tuple[int, int, Entry]] = []  # and others are found when it is their turn
        self._serial = count()  # of two in one place the later one stands behind

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def __iter__(self) -> Iterator[Entry]:
        others = (entry for *_, entry in sorted(self._heap))
        return merge(self._line, others, key=lambda entry: entry.place)

    def add(self, entry: Entry) -> None:
        """Add a message where its place is, mostly last."""
        self.octets += len(entry.message.body)
        line = self._line
        if not line or line[-1].place <= entry.place:
            line.append(entry)
        else:
            heappush(self._heap, (entry.place, next(self._serial), entry))

    def lines(self) -> tuple[Ready, ...]:
        """Return the lines whose first messages may expire."""
        return (self,)

    def first(self) -> Entry | None:
        """Return the first message; None if there is none."""
        if self._heap and not (self._line and self._line[0].place <= self._heap[0][0]):
            return self._heap[0][-1]
        return self._line[0] if self._line else None

    def take(self) -> Entry:
        """Take the first message away."""
        if self._heap and self.first() is self._heap[0][-1]:
            entry = heappop(self._heap)[-1]
        else:
            entry = self._line.popleft()
        self.octets -= len(entry.message.body)
        return entry


class Lines:
    """The messages of a quorum queue that wait: those that have come back, and a line for each priority.

    Args:
        priorities: none; two, of which the lower one has each third turn; or strict ones.
    """

    def __init__(self, priorities: Literal["none", "two", "strict"]) -> None:
        self._priorities = priorities
        self._back = Ready()
        self._lines: dict[int, Ready] = {}
        self._turn = 0

    def __len__(self) -> int:
        return sum(map(len, self._all()))

    def __iter__(self) -> Iterator[Entry]:
        return chain(*self._all())

    def _all(self) -> list[Ready]:
        return [self._back, *(self._lines[level] for level in sorted(self._lines, reverse=True))]

    @property
    def octets(self) -> int:
        """Octets of the bodies."""
        return sum(line.octets for line in self._all())

    def add(self, entry: Entry) -> None:
        """Add a message to its line; one whose place is below 0 has come back."""
        line = self._back if entry.place < 0 else self._lines.setdefault(self._level(entry.message), Ready())
        line.add(entry)

    def _level(self, message: Message) -> int:
        if self._priorities == "none":
            return 0
        priority = message.properties.priority
        if self._priorities == "two":
            return int((priority or 0) >= HIGH)
        return USUAL if priority is None else min(priority, MOST)

    def lines(self) -> tuple[Ready, ...]:
        """Return the lines whose first messages may expire."""
        return tuple(self._all()) if self._priorities == "strict" else (self._next_line(),)

    def _next_line(self) -> Ready:
        """Return the line whose turn it is."""
        waiting = [level for level, line in self._lines.items() if line]
        if self._back or not waiting:
            return self._back
        others_turn = self._priorities == "two" and self._turn == AT_ONCE
        return self._lines[min(waiting) if others_turn else max(waiting)]

    def first(self) -> Entry | None:
        """Return the message whose turn it is; None if there is none."""
        return self._next_line().first()

    def take(self) -> Entry:
        """Take away the message whose turn it is."""
        line = self._next_line()
        if line is not self._back:
            self._turn = (self._turn + 1) % (AT_ONCE + 1)
        return line.take()


__all__ = ["Lines", "Ready"]
