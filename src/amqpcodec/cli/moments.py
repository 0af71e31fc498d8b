"""The times that ``--since`` and ``--until`` take."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from .._options import Seconds

_NS = 1_000_000_000
_DAY = 86_400 * _NS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_EPOCH_TIME = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?", re.ASCII)
FORMS = "2026-11-22T10:15:03.5, 2026-11-22, 10:15:03.5, +90s (behind the first), or seconds since 1970"


class Moment(NamedTuple):
    """A time, perhaps relative to the first one of a file.

    Attributes:
        offset_ns: nanoseconds.
        base: what they count from: ``"1970"``, ``"first"``, the first time in the file, or ``"day"``, the
            beginning of its day in UTC.
    """

    offset_ns: int
    base: str

    def at(self, first_ns: int) -> int:
        """Nanoseconds since 1970, given the first time in the file."""
        match self.base:
            case "first":
                return first_ns + self.offset_ns
            case "day":
                return first_ns - first_ns % _DAY + self.offset_ns
            case _:
                return self.offset_ns


def moment(text: str) -> Moment:
    """Read a time. Without an offset it is in UTC.

    Raises:
        ValueError: it is none.
    """
    given = text.strip()
    try:
        if given.startswith("+"):
            return Moment(round(Seconds().parse(given[1:]) * _NS), "first")
        if found := _DATE.fullmatch(given):
            return Moment(_date(found), "1970")
        if found := _CLOCK.fullmatch(given):
            hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
            if hours < 24 and minutes < 60 and seconds < 60:
                whole = timedelta(hours=hours, minutes=minutes, seconds=seconds) // timedelta(seconds=1)
                return Moment(whole * _NS + _fraction(found[4]), "day")
        if found := _EPOCH_TIME.fullmatch(given):
            return Moment(int(found[1]) * _NS + _fraction(found[2]), "1970")
    except ValueError:
        pass  # such as the 30th of February
    raise ValueError(f"{text!r} is no time; a time is {FORMS}")


def _date(found: re.Match[str]) -> int:
    day, clock, fraction, offset = found.groups()
    moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{offset or 'Z'}")
    return (moment - _EPOCH) // timedelta(seconds=1) * _NS + _fraction(fraction)


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))
