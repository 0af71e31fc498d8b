"""Which captures of a series follow each other, by the numbers in their names and by their times.

Several recorders may fill one series, side by side. A file follows the one whose number is one less, if times
allow it and no other has these numbers. Else it follows the one that ended before it begins, if it is the
first to begin since. It may begin a little earlier: clocks are set, and packets are not always in order.
Nothing is guessed: files that could belong to two recordings are not stitched, and that is said.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from math import inf
from operator import methodcaller
from typing import NamedTuple

from ..capture.series import may_overlap, natural, serials
from .files import File, side_by_side

_SHOWN = 8  # names in a warning
_CLOSE = 10  # a pause so many times as long as another may be its rival
# How much two files may have in common where one follows the other by their times: a part of the shorter one.
_BY_TIME = 1 / 100
# Two files that are cut, and have no more than this part of the shorter one in common, are named.
_TOLD = 1 / 2


class UnstitchedWarning(UserWarning):
    """Captures of a series may follow each other, but which one follows which is not certain."""


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
        first, last: whether nothing is before it, or behind it: the one that numbers put there begins later,
            or earlier.
    """

    def __init__(self, file: File, end: int | None) -> None:
        self.file, self.begin, self.end = file, file.first_ns or 0, end
        self.serials = serials(file.name)
        self.horizon = inf
        self.before: _Span | None = None
        self.behind: _Span | None = None
        self.doubtful = self.first = self.last = False

    @property
    def length(self) -> float:
        """Return the time from its first packet to its last; infinite if the end is not known."""
        return inf if self.end is None else max(self.end - self.begin, 0)

    def pause(self, following: _Span) -> float:
        """Return the time between the two, below zero if they overlap; infinite if the end is not known."""
        return inf if self.end is None else following.begin - self.end

    def overlaps(self, following: _Span, part: float) -> bool:
        """Return whether the two have time in common, and no more than a part of the shorter one."""
        return 0 < -self.pause(following) <= part * min(self.length, following.length)

    def may_precede(self, following: _Span, longest: float) -> bool:
        """Return whether no whole file lies between the two, and no longer pause."""
        return following.begin < self.horizon and self.pause(following) <= longest

    def might_as_well(self, following: _Span, behind: _Span) -> bool:
        """Return whether a file has as good a claim to follow as the one that does."""
        names = self.counts_on(following) - self.counts_on(behind)
        return names > 0 or (names == 0 and self.pause(following) <= _CLOSE * abs(self.pause(behind)))

    def is_numbered_before(self, following: _Span, longest: float) -> bool:
        """Return whether times allow that a file follows whose number is one more."""
        if self.end is None:
            return self.begin <= following.begin
        common = may_overlap(self.length, self.length if following.end is None else following.length)
        return -common <= self.pause(following) <= longest

    def stitch(self, following: _Span) -> None:
        """Have a file follow."""
        self.behind, following.before = following, self

    def counts_on(self, following: _Span) -> int:
        """Return which number is the first that differs, from 1, if it is one more there; else 0."""
        pairs = zip_longest(self.serials, following.serials, fillvalue=0)
        return next((at * (more == one + 1) for at, (one, more) in enumerate(pairs, 1) if one != more), 0)

    def run(self) -> list[_Span]:
        """Return the files that follow each other from this one on."""
        found = [self]
        while found[-1].behind is not None:
            found.append(found[-1].behind)
        return found


def chains(files: Sequence[File], flow_timeout: float) -> Chains:
    """Return which captures of a series follow each other.

    Args:
        files: captures whose first times are known.
        flow_timeout: seconds of silence behind which nothing follows.

    Raises:
        OSError: a file cannot be read.
    """
    longest = flow_timeout * 1e9
    ordered = sorted(files, key=lambda file: (file.first_ns or 0, natural(file.name)))
    before = ordered[:-1]
    ends = side_by_side(
        methodcaller("last_ns"), before, [file.path for file in before], "ends of files found"
    )
    spans = [_Span(file, end) for file, end in zip(ordered, [*ends, None], strict=True)]
    numbered = list(_numbered(spans))
    for one, following in numbered:
        if one.is_numbered_before(following, longest):
            one.stitch(following)
        elif following.begin < one.begin:
            one.last = following.first = True
    unsure = _stitched_by_time(spans, longest)
    unsure |= _cut(spans, numbered, longest)
    runs = [tuple(each.file for each in span.run()) for span in spans if span.before is None]
    return Chains(runs, [span.file for span in spans if span in unsure])


def _numbered(spans: Sequence[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Yield the files of which one alone has a number, and one alone the next.

    It is the first number that differs. One that is not there counts as zero: tcpdump's first file has none.
    """
    most = max((len(span.serials) for span in spans), default=0)
    numbers = {span: (*span.serials, *[0] * (most - len(span.serials))) for span in spans}
    found: defaultdict[tuple[int, ...], list[_Span]] = defaultdict(list)
    for span, each in numbers.items():
        for count in range(1, most + 1):
            found[each[:count]].append(span)
    for each, following in found.items():
        before = found.get((*each[:-1], each[-1] - 1), [])
        if len(before) == len(following) == 1:
            yield before[0], following[0]


def _stitched_by_time(spans: Sequence[_Span], longest: float) -> set[_Span]:
    """Stitch files to those that ended before; return those for which it is in doubt."""
    unsure: set[_Span] = set()
    running = _Ends([])
    ended: list[_Span] = []
    for span in spans:
        ended += running.pop(span.begin)
        ended = [one for one in ended if one.may_precede(span, longest)]
        ending = [
            one for one in running.until(span.begin + _BY_TIME * span.length) if one.overlaps(span, _BY_TIME)
        ]
        if span.before is None and not span.first:
            unsure |= _placed(span, ended, ending)
        for one in ended if span.before is None else (*ended, span.before):
            one.horizon = min(one.horizon, span.begin if span.end is None else span.end)
        running.add(span)
    return unsure


class _Ends:
    """Files in the order in which they end, as far as that is known."""

    def __init__(self, spans: Iterable[_Span]) -> None:
        self._spans: list[_Span] = []
        for span in spans:
            self.add(span)

    def add(self, span: _Span) -> None:
        """Add a file."""
        if span.end is not None:
            insort(self._spans, span, key=_end)

    def until(self, moment: float, since: float = -inf) -> list[_Span]:
        """Return the files that end after one moment, and by another."""
        first = bisect_right(self._spans, since, key=_end)
        return self._spans[first : bisect_right(self._spans, moment, key=_end)]

    def pop(self, moment: float) -> list[_Span]:
        """Remove and return the files that end by a moment."""
        found = self.until(moment)
        del self._spans[: len(found)]
        return found


def _end(span: _Span) -> float:
    return inf if span.end is None else span.end


def _placed(span: _Span, ended: Sequence[_Span], ending: Sequence[_Span]) -> set[_Span]:
    """Stitch a file to the one before it; return the files for which that is in doubt.

    Args:
        span: the file.
        ended: those that ended before it begins.
        ending: those that end just after.
    """
    # Numbers may have put a file before another that begins earlier.
    taken = {one for one in (*ended, *ending) if one.behind is not None or one.last} | {span.run()[-1]}
    free = [one for one in ended if one not in taken and (one.horizon == inf or one.counts_on(span))]
    nearest = min((one.pause(span) for one in free), default=inf)
    # One that has not ended is stitched only where no other is about as near.
    over = [one for one in ending if one not in taken and _CLOSE * -one.pause(span) < nearest]
    free = over or free
    if free:
        most = max(one.counts_on(span) for one in free)
        best = [one for one in free if one.counts_on(span) == most]
        if len(best) == 1:
            best[0].stitch(span)
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


def _cut(spans: Sequence[_Span], numbered: Iterable[tuple[_Span, _Span]], longest: float) -> set[_Span]:
    """Return files that are not stitched, though their numbers or times say that one may follow the other."""
    pairs = [pair for pair in numbered if pair[0].pause(pair[1]) <= longest or pair[0].end is None]
    pairs += [pair for pair in pairwise(spans) if pair[0].end is None]
    last = _Ends(span for span in spans if span.behind is None)
    for span in spans:
        near = last.until(span.begin + span.length * _TOLD, since=span.begin) if span.before is None else []
        pairs += [(one, span) for one in near if one.overlaps(span, _TOLD)]
    cut = [(one, span) for one, span in pairs if one.behind is None and span.before is None]
    return {span for pair in cut if not _is_ring(*pair) for span in pair}


def _is_ring(last: _Span, first: _Span) -> bool:
    """Return whether files are those of a ring, in which the first number follows the last one."""
    run = first.run()
    return run[-1] is last and all(
        one.counts_on(following) or one.pause(following) <= one.length for one, following in pairwise(run)
    )


def doubted(files: Sequence[File], flow_timeout: float) -> list[File]:
    """Return the files of a series that follow each other by name, but that `chains` would not stitch.

    Args:
        files: in the order of their names.
        flow_timeout: as for `chains`. A longer pause is in no doubt.

    Raises:
        OSError: a file cannot be read.
    """
    follows = {pair for run in chains(files, flow_timeout).runs for pair in pairwise(run)}
    found: dict[File, None] = {}
    for one, following in pairwise(files):
        begin, end = following.first_ns, one.last_ns()
        if begin is None or (one, following) in follows:
            continue
        if begin < (one.first_ns or 0) if end is None else begin - end <= flow_timeout * 1e9:
            found |= {one: None, following: None}
    return list(found)


def unstitched(unsure: Sequence[File]) -> str:
    """Return the text of a warning about files that are not stitched."""
    return (
        "connections do not go on from one capture to the next where it is not certain which one that is (a "
        f"compressed one does not show when it ends): {_named(unsure)}; rotated=true takes all captures of a "
        "folder as one recording, rotated=false each as its own; seriesPattern says which names belong "
        "together"
    )


def against_times(files: Sequence[File]) -> str:
    """Return the text of a warning about files that a stream puts together by their names."""
    return (
        "a stream reads the captures of a series as one recording, in the order of their names; by their "
        f"times, these may not follow each other: {_named(files)}; seriesPattern says which names belong "
        "together"
    )


def _named(files: Sequence[File]) -> str:
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(repr(file.path) for file in files[:_SHOWN]) + more
