"""Which captures of a series follow each other: their times decide, and their names where times do not.

Several recorders may fill one series, side by side. A file follows the one that ended before it begins, if it
is the first to begin since. Where that leaves a choice, the numbers in names may settle it. Nothing is
guessed: files that could belong to two recordings are not stitched.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise, zip_longest
from math import inf
from operator import methodcaller
from typing import NamedTuple

from .files import File, side_by_side
from .series import natural, serials

_SHOWN = 8  # names in a warning
_CLOSE = 10  # a pause so many times as long as another may be its rival


class UnstitchedWarning(UserWarning):
    """Captures of a series could follow each other, but which one follows which is not certain."""


class Chains(NamedTuple):
    """Files in runs.

    Attributes:
        runs: files that follow each other, in order.
        unsure: files that are not stitched to the next or the one before, though they may belong to it.
    """

    runs: list[tuple[File, ...]]
    unsure: list[File]


class _Span:
    """A file and its place in time, in nanoseconds.

    Attributes:
        end: of its last packet; None if it is not known.
        horizon: when the first of the files that began behind it ended. What begins later cannot follow.
        before, behind: the files that it is stitched to.
        doubtful: whether several could be behind it.
    """

    def __init__(self, file: File, end: int | None) -> None:
        self.file, self.begin, self.end = file, file.first_ns or 0, end
        self.serials = serials(file.name)
        self.horizon = inf
        self.before: _Span | None = None
        self.behind: _Span | None = None
        self.doubtful = False

    def pause(self, following: _Span) -> float:
        """Return the time between the two; infinite if the end is not known."""
        return inf if self.end is None else following.begin - self.end

    def may_precede(self, following: _Span, longest: float) -> bool:
        """Return whether no whole file lies between the two, and no longer pause."""
        return following.begin < self.horizon and self.pause(following) <= longest

    def might_as_well(self, following: _Span, behind: _Span) -> bool:
        """Return whether a file has as good a claim to follow as the one that does."""
        names = self.counts_on(following) - self.counts_on(behind)
        return names > 0 or (names == 0 and self.pause(following) <= _CLOSE * self.pause(behind))

    def counts_on(self, following: _Span) -> int:
        """Return which number is the first that differs, from 1, if it is one more there; else 0."""
        pairs = zip_longest(self.serials, following.serials, fillvalue=0)
        return next((at * (more == one + 1) for at, (one, more) in enumerate(pairs, 1) if one != more), 0)

    def run(self) -> tuple[File, ...]:
        """Return the files that follow each other from this one on."""
        found, span = [self.file], self.behind
        while span is not None:
            found.append(span.file)
            span = span.behind
        return tuple(found)


def chains(files: Sequence[File], flow_timeout: float) -> Chains:
    """Return which captures of a series follow each other.

    Args:
        files: captures whose first times are known.
        flow_timeout: seconds of silence behind which nothing follows.

    Raises:
        OSError: a file cannot be read.
    """
    ordered = sorted(files, key=lambda file: (file.first_ns or 0, natural(file.name)))
    before = ordered[:-1]
    ends = side_by_side(
        methodcaller("last_ns"), before, [file.path for file in before], "ends of files found"
    )
    spans = [_Span(file, end) for file, end in zip(ordered, [*ends, None], strict=True)]
    unsure = {span for pair in pairwise(spans) if pair[0].end is None for span in pair}
    running: list[tuple[int, int]] = []  # when they end, and their places in `spans`
    ended: list[_Span] = []
    for at, span in enumerate(spans):
        while running and running[0][0] <= span.begin:
            ended.append(spans[heappop(running)[1]])
        ended = [one for one in ended if one.may_precede(span, flow_timeout * 1e9)]
        unsure |= _placed(span, ended)
        for one in ended:
            one.horizon = min(one.horizon, span.begin if span.end is None else span.end)
        if span.end is not None:
            heappush(running, (span.end, at))
    runs = [span.run() for span in spans if span.before is None]
    return Chains(runs, [span.file for span in spans if span in unsure])


def _placed(span: _Span, ended: Sequence[_Span]) -> set[_Span]:
    """Stitch a file to the one before it; returns those files for which that is in doubt."""
    free = [one for one in ended if one.behind is None and (one.horizon == inf or one.counts_on(span))]
    if free:
        most = max(one.counts_on(span) for one in free)
        best = [one for one in free if one.counts_on(span) == most]
        if len(best) == 1:
            best[0].behind, span.before = span, best[0]
            return set()
        for one in best:
            one.doubtful = True
        return {span, *best}
    doubtful = {one for one in ended if one.doubtful and one.behind is None}
    for one in ended:
        rival = one.behind
        if rival is not None and one.might_as_well(span, rival):
            one.behind = rival.before = None
            one.doubtful = True
            doubtful |= {one, rival}
    return doubtful and {span, *doubtful}


def unstitched(unsure: Sequence[File]) -> str:
    """Return the text of a warning about files that are not stitched."""
    names = ", ".join(repr(file.path) for file in unsure[:_SHOWN])
    more = f" and {len(unsure) - _SHOWN} more" if len(unsure) > _SHOWN else ""
    return (
        "connections do not go on from one capture to the next where it is not certain which one that is (a "
        f"compressed one does not show when it ends): {names}{more}; rotated=true takes all captures of a "
        "folder as one recording, rotated=false each as its own; seriesPattern says which names belong "
        "together"
    )
