"""Connections and channels from their beginning to their end, as far as they are worth showing."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from .summary import SUCCESS, Life

CHANNELS = 4  # of a connection that are shown: the first ones, or the first that an error closed


class Closed(NamedTuple):
    """A close method."""

    by: str
    reply_code: int | None
    reply_text: str | None


class Stay(NamedTuple):
    """A channel.

    Attributes:
        channel: its number.
        begin_ns: when its first method came.
        end_ns: when its end was agreed on; None if it was not.
        closed: the close method, if there was one.
    """

    channel: int
    begin_ns: int | None
    end_ns: int | None
    closed: Closed | None

    @property
    def failed(self) -> bool:
        """Return whether an error closed it."""
        return self.closed is not None and self.closed.reply_code not in SUCCESS


class Stays:
    """The channels of a connection: how many there were, and the first ones."""

    __slots__ = ("count", "kept")

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[Stay] = []

    def add(self, stay: Stay) -> None:
        """Add a channel that has ended."""
        self.count += 1
        if len(self.kept) < CHANNELS:
            self.kept.append(stay)
        elif stay.failed:
            for place in reversed(range(CHANNELS)):
                if not self.kept[place].failed:
                    self.kept[place] = stay
                    break


class Lives:
    """Keeps the connections with the most octets, and the first that went wrong.

    Args:
        top: how many of either.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._largest: list[tuple[int, int, list[Life]]] = []
        self._wrong: list[tuple[int, int, list[Life]]] = []
        self._added = 0

    def add(self, file: str, row: dict[str, Any], stays: Stays, ended: str, end_ns: int | None) -> None:
        """Add a connection.

        Args:
            file: name of its file.
            row: its row in the table `connections`.
            stays: its channels.
            ended, end_ns: as in `Life`.
        """
        closed = Closed(row["closed_by"], row["close_code"], row["close_text"]) if ended == "closed" else None
        begin_ns = None if row["ts_first_us"] is None else row["ts_first_us"] * 1000
        whole = _life(file, row, Stay(0, begin_ns, end_ns, closed), ended)
        lives = [replace(whole, channels=stays.count), *_channels(file, row, stays, whole)]
        entry = row["octets_sent"] + row["octets_received"], -self._added, lives
        self._added += 1
        if len(self._wrong) < self._top and any(life.went_wrong for life in lives):
            self._wrong.append(entry)
            return
        heapq.heappush(self._largest, entry)  # of equal ones the first stays
        if len(self._largest) > self._top:
            heapq.heappop(self._largest)

    def shown(self) -> list[Life]:
        """Return each connection and then its channels, in the order in which connections begin."""
        entries = sorted(
            self._largest + self._wrong, key=lambda entry: (entry[2][0].begin_ns or 0, -entry[1])
        )
        return [life for *_, lives in entries for life in lives]


def _channels(file: str, row: dict[str, Any], stays: Stays, whole: Life) -> Iterator[Life]:
    for stay in stays.kept:
        ended = "closed" if stay.closed else "recording" if whole.ended == "recording" else "with-connection"
        end_ns = whole.end_ns if stay.end_ns is None else stay.end_ns
        yield _life(file, row, stay._replace(end_ns=end_ns), ended)


def _life(file: str, row: dict[str, Any], stay: Stay, ended: str) -> Life:
    by, code, text = stay.closed or (None, None, None)
    name = row["connection_name"] or row["client_product"]
    return Life(
        file, row["flow"], row["client"], name, stay.channel, stay.begin_ns, stay.end_ns, ended, by, code,
        text, 0,
    )  # fmt: skip
