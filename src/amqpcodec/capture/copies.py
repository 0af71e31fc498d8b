"""Connections that were recorded twice: before and after a translation of addresses, or on two interfaces.

A translation of addresses leaves sequence numbers as they are. Two connections between different ends, one of
which has the same first segments as the other at about the same time, are therefore one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from zlib import crc32

from .._state import Fields
from .model import Segment
from .network import ACK

COMPARED = 4  # segments of a connection; a recording may begin between one and its copy
ENOUGH = 2  # of them; one with octets counts twice
_APART_NS = 1_000_000_000  # at most between a segment and its copy
_MOST = 4096  # segments that are remembered

_Key = tuple[int, int, int, int]


class Copies:
    """The first segments of connections."""

    def __init__(self) -> None:
        self._recent: OrderedDict[_Key, tuple[int, int | None]] = OrderedDict()

    def original(self, number: int, segment: Segment) -> int | None:
        """Return the connection that had a segment before; None if that is new.

        Args:
            number: that of its connection.
            segment: the segment.
        """
        if not segment.flags & ACK:
            return None
        key = segment.seq, segment.ack, segment.length, crc32(segment.data)
        found = self._recent.get(key)
        if found is not None:
            other, then = found
            if other == number:
                return None
            if then is None or segment.time_ns is None or abs(segment.time_ns - then) <= _APART_NS:
                return other
        self._recent[key] = number, segment.time_ns
        if len(self._recent) > _MOST:
            self._recent.popitem(last=False)
        return None

    def state(self) -> list[Any]:
        """Return the state that `restore` takes."""
        return [[*key, *found] for key, found in self._recent.items()]

    def restore(self, state: Fields) -> None:
        """Go on from what comes next in a state."""
        for fields in state.items():
            seq, ack = fields.number(0, 0xFFFFFFFF), fields.number(0, 0xFFFFFFFF)
            key = seq, ack, fields.number(0), fields.number(0, 0xFFFFFFFF)
            self._recent[key] = fields.number(0), fields.time()
            fields.end()
