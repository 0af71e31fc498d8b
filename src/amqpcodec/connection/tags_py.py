# cython: nonecheck=True
"""Numbers that wait to be settled: delivery tags, and sequence numbers of publishes.

One text for both builds: tags_c is this file, compiled.
"""

from __future__ import annotations


class Tags:
    """The numbers sent on one channel that are not settled yet.

    Attributes:
        last: the highest number sent so far.
    """

    __slots__ = ("_forgotten", "_waiting", "last")

    def __init__(self) -> None:
        self.last = 0
        self._waiting: dict[int, None] = {}  # in the order of the numbers
        self._forgotten = 0  # numbers up to this one were taken back by basic.recover

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, tag: int) -> None:
        """A number is sent."""
        self.last = tag
        self._waiting[tag] = None

    def count(self) -> int:
        """Send the next number, and return it."""
        tag = self.last + 1
        self.last = tag
        self._waiting[tag] = None
        return tag

    def knows(self, tag: int, multiple: bool) -> bool:
        """Whether a number can be settled. 0 with `multiple` stands for all (0-9-1, basic.ack.multiple)."""
        return tag in self._waiting or (multiple and tag == 0) or 0 < tag <= self._forgotten

    def settle(self, tag: int, multiple: bool) -> tuple[int, ...]:
        """Settle a number, or all up to it; those that were waiting."""
        waiting = self._waiting
        if not multiple:
            if tag not in waiting:
                return ()
            del waiting[tag]
            return (tag,)
        if tag == 0:
            tag = self.last
        settled = []
        for number in waiting:
            if number > tag:
                break
            settled.append(number)
        for number in settled:
            del waiting[number]
        return tuple(settled)

    def restore(self, tags: list[int]) -> None:
        """Numbers that were settled wait again: a transaction was rolled back."""
        if tags:
            self._waiting = dict.fromkeys(sorted([*self._waiting, *tags]))

    def forget(self) -> None:
        """Nothing waits any more: everything is taken back. Late acknowledgements are no fault."""
        self._forgotten = self.last
        self._waiting.clear()

    def waiting(self) -> tuple[int, ...]:
        """The numbers that wait, in order."""
        return tuple(self._waiting)


__all__ = ["Tags"]
