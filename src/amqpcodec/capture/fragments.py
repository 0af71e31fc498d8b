"""Fragments of IP datagrams (RFC 791, 8200) joined, in bounded memory and time.

Where two copies of an octet differ, the first one counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

from .._state import Fields

MOST_NS = 30_000_000_000  # how long the rest of a datagram is awaited, as receivers do
MOST_DATAGRAMS = 1024  # that wait at once
MOST_OCTETS = 16 * 1024 * 1024
_LONGEST = 65535
_BESIDE = 200  # bytes of memory of a fragment beside its octets, about

Key = tuple[str, bytes, int, int]  # tunnel, both addresses, protocol, identification


class Fragment(NamedTuple):
    """A fragment.

    Attributes:
        key: what it has in common with the others of its datagram.
        head: the headers before it, as the joined datagram has them but for its length.
        start: where its octets belong.
        length: how many it had on the wire.
        octets: those recorded.
        last: whether the datagram ends with it.
    """

    key: Key
    head: bytes
    start: int
    length: int
    octets: bytes
    last: bool


class Datagram:
    """A datagram of which some octets have come."""

    __slots__ = ("count", "foreign", "head", "number", "octets", "pieces", "time_ns", "total", "version")

    def __init__(self, version: int, number: int, time_ns: int | None) -> None:
        self.version = version
        self.number, self.time_ns = number, time_ns  # of its first packet
        self.count = 0  # packets
        self.foreign = False  # known to carry no TCP
        self.head = b""  # of its first fragment
        self.total = -1  # octets behind the head, once that is known
        self.octets = 0  # that have come
        self.pieces: list[tuple[int, int, bytes]] = []  # (start, end, recorded), in order, without overlaps

    @property
    def kept(self) -> int:
        """Approximate bytes of memory."""
        return self.octets + _BESIDE * (len(self.pieces) + 1)

    def add(self, start: int, end: int, octets: bytes) -> None:
        """Add what is new of a fragment."""
        index = bisect_right(self.pieces, (start, _LONGEST + 1, b""))
        if index and self.pieces[index - 1][1] > start:
            index -= 1
        at = start
        while at < end:
            following = self.pieces[index] if index < len(self.pieces) else None
            stop = end if following is None else min(end, following[0])
            if at < stop:
                self.pieces.insert(index, (at, stop, octets[at - start : stop - start]))
                self.octets += stop - at
                index += 1
            if following is None:
                return
            at = max(at, following[1])
            index += 1

    def limit(self, total: int) -> None:
        """Record where the datagram ends; what came before for places behind that is dropped."""
        self.total = total
        while self.pieces and self.pieces[-1][1] > total:
            start, end, octets = self.pieces.pop()
            self.octets -= end - start
            if start < total:
                self.add(start, total, octets[: total - start])

    def joined(self) -> bytes:
        """The octets, up to the first that was not recorded."""
        chunks = []
        for start, end, octets in self.pieces:
            chunks.append(octets)
            if len(octets) < end - start:
                break
        return b"".join(chunks)


class Fragments:
    """The datagrams of which fragments have come, and not yet all."""

    def __init__(self) -> None:
        self._datagrams: OrderedDict[Key, Datagram] = OrderedDict()
        self._kept = 0
        self._given_up: list[Datagram] = []

    def add(self, fragment: Fragment, number: int, time_ns: int | None) -> Datagram | None:
        """Add a fragment; returns its datagram once it is whole, or if this was its first fragment.

        Args:
            fragment: the fragment.
            number: of its packet.
            time_ns: of its packet.
        """
        self._forget_late(time_ns)
        datagram = self._datagrams.get(fragment.key)
        if datagram is None:
            datagram = Datagram(_version(fragment.key), number, time_ns)
            self._datagrams[fragment.key] = datagram
            self._kept += datagram.kept
        datagram.count += 1
        if datagram.foreign:
            return None
        self._kept -= datagram.kept
        end = fragment.start + fragment.length
        if fragment.last and datagram.total < 0 and end <= _LONGEST:
            datagram.limit(end)
        end = min(end, datagram.total if datagram.total >= 0 else _LONGEST)
        datagram.add(fragment.start, end, fragment.octets)
        if not fragment.start and not datagram.head:
            datagram.head = fragment.head
        self._kept += datagram.kept
        if datagram.octets == datagram.total:
            self._forget(fragment.key)
            return datagram
        while self._kept > MOST_OCTETS or len(self._datagrams) > MOST_DATAGRAMS:
            self._give_up(next(iter(self._datagrams)))
        return datagram if not fragment.start else None

    def pass_over(self, key: Key) -> None:
        """The first fragment of a datagram shows that it carries no TCP: keep nothing of the others."""
        datagram = self._datagrams.get(key)
        if datagram is not None:
            self._kept -= datagram.kept
            datagram.foreign, datagram.octets, datagram.pieces = True, 0, []
            self._kept += datagram.kept

    def take_given_up(self) -> list[Datagram]:
        """The datagrams since the last call whose others are not awaited any more."""
        taken, self._given_up = self._given_up, []
        return taken

    def take_unfinished(self) -> list[Datagram]:
        """Give up all that are not whole, and take them: nothing more will come."""
        for key in list(self._datagrams):
            self._give_up(key)
        return self.take_given_up()

    def state(self) -> list[Any]:
        """The state that `restore` takes."""
        return [
            [
                *key, each.number, each.time_ns, each.count, each.foreign, each.head, each.total,
                [[*piece] for piece in each.pieces],
            ]
            for key, each in self._datagrams.items()
        ]  # fmt: skip

    def restore(self, state: Iterable[Fields]) -> None:
        """Continue from a state."""
        for fields in state:
            key = fields.text(), fields.octets(), fields.number(0, 255), fields.number(0, 0xFFFFFFFF)
            datagram = Datagram(_version(key), fields.number(1), fields.time())
            datagram.count, datagram.foreign = fields.number(1), fields.flag()
            datagram.head, datagram.total = fields.octets(), fields.number(-1, _LONGEST)
            for piece in fields.items():
                start = piece.number(0, _LONGEST)
                datagram.add(start, piece.number(start, _LONGEST), piece.octets())
                piece.end()
            fields.end()
            self._datagrams[key] = datagram
            self._kept += datagram.kept

    def _forget_late(self, time_ns: int | None) -> None:
        while time_ns is not None and self._datagrams:
            key, oldest = next(iter(self._datagrams.items()))
            if oldest.time_ns is not None and time_ns - oldest.time_ns <= MOST_NS:
                return
            self._give_up(key)

    def _give_up(self, key: Key) -> None:
        datagram = self._forget(key)
        if not datagram.foreign:
            datagram.pieces = []
            self._given_up.append(datagram)

    def _forget(self, key: Key) -> Datagram:
        datagram = self._datagrams.pop(key)
        self._kept -= datagram.kept
        return datagram


def _version(key: Key) -> int:
    return 4 if len(key[1]) == 8 else 6
