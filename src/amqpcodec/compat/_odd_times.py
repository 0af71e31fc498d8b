"""Timestamps of messages that pamqp refuses, such as those in microseconds, where it is tolerant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from importlib import import_module
from types import ModuleType

from .._typing import Any
from ..types import UnreadableTime
from ._fast_c import Counts

_HEADER, _BASIC = 2, 60  # the type of the frame, and the class
_PROPERTIES = 21  # where they begin, after one word of flags
_TIMESTAMP = 6  # the bit of its flag
# Those before it by their flags: short strings but for a table and two octets.
_TABLE, _OCTETS = 13, (12, 11)


def reads_odd_times(
    unmarshal: Callable[[bytes], Any], frame: ModuleType, counts: Counts
) -> Callable[[bytes], Any]:
    """Return a function that reads what `pamqp.frame.unmarshal` does, and content headers that it refuses.

    Args:
        unmarshal: the original.
        frame: its module, whose function reads the rest, with whatever is in place of the original there.
        counts: of what is tolerated.
    """

    @wraps(unmarshal)
    def tolerant(data_in: bytes) -> Any:
        try:
            return unmarshal(data_in)
        except Exception:
            at = _timestamp_at(data_in)
            if at is None or data_in[at : at + 4] == bytes(4):
                raise
            tolerated = counts.tolerated
            answer = frame.unmarshal(data_in[:at] + bytes(8) + data_in[at + 8 :])
        answer[2].properties.timestamp = _time(data_in[at : at + 8])
        counts.tolerated = tolerated + 1
        return answer

    return tolerant


def _time(octets: bytes) -> datetime:
    """Return a timestamp as pamqp reads it, which takes large ones for milliseconds; or one in its place."""
    try:
        time: datetime = import_module("pamqp.decode").timestamp(octets)[1]
    except Exception:
        return UnreadableTime.of(int.from_bytes(octets, "big"))
    return time


def _timestamp_at(octets: bytes) -> int | None:
    """Return where a frame has the timestamp of a message; None if it has none."""
    if octets[:1] != bytes((_HEADER,)) or octets[7:9] != _BASIC.to_bytes(2, "big"):
        return None
    flags, at = int.from_bytes(octets[19:21], "big"), _PROPERTIES
    if flags & 1 or not flags >> _TIMESTAMP & 1:
        return None
    for bit in range(15, _TIMESTAMP, -1):
        if flags >> bit & 1:
            if bit in _OCTETS:
                at += 1
            elif bit == _TABLE:
                at += 4 + int.from_bytes(octets[at : at + 4], "big")
            else:
                at += 1 + int.from_bytes(octets[at : at + 1], "big")
    return at if at + 8 <= len(octets) else None


__all__ = ["reads_odd_times"]
