# cython: nonecheck=True
"""Numbers that wait to be settled: delivery tags, and sequence numbers of publishes.

One text for both builds: tags_c is this file, compiled.
"""

from __future__ import annotations

from heapq import heappop, heappush

SETTLED_KEPT = 64  # numbers that are settled and still in the order, beyond as many as wait


class Tags:
    """The numbers sent on one channel that are not settled yet.

    Attributes:
        last: the highest number sent so far.
    """

    __slots__ = ("_forgotten", "_order", "_waiting", "last")

    def __init__(self) -> None:
        self.last = 0
        self._waiting: set[int] = set()
        # A heap of these, and of some that are settled already: whatever is settled in whatever order, the
        # cost of a number does not grow with how many wait.
        self._order: list[int] = []
        self._forgotten = 0  # numbers up to this one were taken back by basic.recover

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, tag: int) -> None:
        """A number is sent that waits to be settled. It does not wait yet."""
        self._waiting.add(tag)
        if tag > self.last:
            self._order.append(tag)  # the greatest may stand last in a heap
            self.last = tag
        else:
            heappush(self._order, tag)

    def skip(self, tag: int) -> None:
        """A number is sent that does not."""
        if tag > self.last:
            self.last = tag

    def count(self) -> int:
        """Send the next number, and return it."""
        tag = self.last + 1
        self.add(tag)
        return tag

    def knows(self, tag: int, multiple: bool) -> bool:
        """Return whether a number can be settled; 0 with `multiple` is all (0-9-1, basic.ack.multiple)."""
        return tag in self._waiting or (multiple and tag == 0) or 0 < tag <= self._forgotten

    def waits_for(self, tag: int) -> bool:
        """Return whether a number waits."""
        return tag in self._waiting

    def settle(self, tag: int, multiple: bool) -> tuple[int, ...]:
        """Settle a number, or all up to it; those that were waiting."""
        waiting = self._waiting
        order = self._order
        if not multiple:
            waited = len(waiting)
            waiting.discard(tag)
            if len(waiting) == waited:
                return ()
            if len(order) > 2 * len(waiting) + SETTLED_KEPT:
                self._order = sorted(waiting)
            return (tag,)
        settled = []
        while order and (order[0] <= tag or tag == 0):
            number = heappop(order)
            if number in waiting:
                waiting.remove(number)
                settled.append(number)
        return tuple(settled)

    def restore(self, tags: list[int]) -> None:
        """Numbers that were settled wait again: a transaction was rolled back."""
        for tag in tags:
            self._waiting.add(tag)
            heappush(self._order, tag)

    def forget(self) -> None:
        """Nothing waits any more: everything is taken back. Late acknowledgements are no fault."""
        self._forgotten = self.last
        self._waiting.clear()
        self._order.clear()

    def waiting(self) -> tuple[int, ...]:
        """The numbers that wait, in order."""
        return tuple(sorted(self._waiting))


__all__ = ["Tags"]
