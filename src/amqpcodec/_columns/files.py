"""Which file of a recording a packet is in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from amqpcodec._state import Fields, damaged


class Files:
    """The packets of a recording are counted on from file to file; this knows their files.

    Args:
        name: of the first file; None for one without a name.
    """

    def __init__(self, name: str | None = None) -> None:
        self._before = [0]  # packets before each file
        self._names = [name]

    @property
    def name(self) -> str | None:
        """Return the name of the latest file."""
        return self._names[-1]

    @property
    def before(self) -> int:
        """Packets before the latest file."""
        return self._before[-1]

    def begin(self, before: int, name: str | None) -> None:
        """Another file begins, `before` packets from the start."""
        if before == self._before[-1]:  # the last one had no packets
            self._before.pop()
            self._names.pop()
        self._before.append(before)
        self._names.append(name)

    def locate(self, packet: int | None) -> tuple[str | None, int | None]:
        """The name of a packet's file and its number there; of no packet, the latest file."""
        if packet is None:
            return self._names[-1], None
        at = max(bisect_left(self._before, packet) - 1, 0)
        return self._names[at], packet - self._before[at]

    def state(self, packets: Iterable[int]) -> list[Any]:
        """Return the state for `restore`, as far as these packets need it."""
        used = {max(bisect_left(self._before, packet) - 1, 0) for packet in packets}
        return [[self._before[at], self._names[at]] for at in sorted(used | {len(self._names) - 1})]

    def restore(self, state: Iterable[Fields]) -> None:
        """Go on from a state."""
        before: list[int] = []
        names: list[str | None] = []
        for fields in state:
            before.append(fields.number(before[-1] + 1 if before else 0))
            names.append(fields.text_or_none())
            fields.end()
        if not names:
            raise damaged("there is no file")
        self._before, self._names = before, names
