"""Two runs beside each other: is our time, measured by a yardstick, more than it was?

A run is JSON as pytest-benchmark writes it. Each of its benchmarks says in `extra_info` which ``item`` was
worked on, by which ``peer``, and how many ``operations`` one call is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

OURS = ("amqpcodec", "amqpcodec pure")  # peers whose rows are judged; all others are yardsticks
_INTERPRETER = ("python_implementation", "python_version", "python_compiler", "system", "machine")

Run = Mapping[str, Any]
_Pair = tuple[str, str]  # item and peer


class IncomparableError(Exception):
    """Two runs that say nothing about each other; the text is the reason."""


class Row(NamedTuple):
    """A work before and now.

    Attributes:
        work: its name.
        before: what it needed, None if it was not measured.
        now: what it needs, likewise.
        change: by how much that is more, as a fraction.
    """

    work: str
    before: float | None
    now: float | None
    change: float | None

    def verdict(self, margin: float) -> str:
        """In a word; in capitals if it is a failure."""
        if self.now is None:
            return "GONE"
        if self.change is None:
            return "new"
        return "SLOWER" if self.change > margin else "faster" if self.change < -margin else "ok"

    def fails(self, margin: float) -> bool:
        """Return whether it is slower by more than the margin, or not measured any more."""
        return self.verdict(margin).isupper()


def figures(run: Run) -> dict[str, dict[str, float]]:
    """The nanoseconds of one operation in the shortest round, by item and peer.

    What else a machine does only adds to a time. So the shortest is what an operation takes.

    Raises:
        IncomparableError: it is not such a run.
    """
    found: dict[str, dict[str, float]] = {}
    try:
        for entry in run["benchmarks"]:
            info, stats = entry["extra_info"], entry["stats"]
            scale = 1e9 / info["operations"]
            found.setdefault(info["item"], {})[info["peer"]] = stats["min"] * scale
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise IncomparableError(f"not a run of amqpcodec.bench ({type(error).__name__}: {error})") from None
    return found


def compare(before: Run, now: Run) -> list[Row]:
    """Our works beside the yardsticks that both runs have for them; beside all yardsticks, if there are none.

    Args:
        before: a run.
        now: another one.

    Returns:
        a row for each work.

    Raises:
        IncomparableError: other octets, another interpreter, or no yardstick in common.
    """
    _check_same(before, now)
    old, new = _least(before), _least(now)
    common = [
        pair for pair in old if pair[1] not in OURS and pair in new and _same_version(pair[1], before, now)
    ]
    if not common:
        raise IncomparableError("no yardstick of the same version is in both runs")
    return [_row(pair, old, new, common) for pair in dict.fromkeys((*old, *new)) if pair[1] in OURS]


def table(rows: Iterable[Row], margin: float, show: Callable[[float], str]) -> str:
    """Rows as a table in Markdown, which is legible as it stands.

    Args:
        rows: its rows.
        margin: what `Row.verdict` allows.
        show: makes text of what a work needs.
    """
    lines = [("work", "before", "now", "change", "")]
    for row in rows:
        before, now = ("" if value is None else show(value) for value in (row.before, row.now))
        change = "" if row.change is None else f"{round(row.change, 3) + 0:+.1%}"
        verdict = row.verdict(margin)
        lines.append((row.work, before, now, change, f"**{verdict}**" if verdict.isupper() else verdict))
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table of cells, legible as it stands: text in the first column, numbers in the others."""
    columns = range(len(lines[0]))
    widths = [max(2, *(len(line[at]) for line in lines)) for at in columns]
    rule = [("-" * width) if at == 0 else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    padded = [
        [line[at].rjust(widths[at]) if at else line[at].ljust(widths[at]) for at in columns] for line in lines
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (padded[0], rule, *padded[1:]))


def nanoseconds(time: float) -> str:
    """A time as text."""
    return f"{time:.0f} ns" if time < 1000 else f"{time / 1000:.2f} us"


def yardsticks(before: Run, now: Run) -> list[str]:
    """Names of the libraries that `compare` takes for yardsticks, with their versions."""
    versions = before.get("versions", {})
    return [
        f"{name} {version}"
        for name, version in versions.items()
        if name not in OURS and _same_version(name, before, now)
    ]


def processor(run: Run) -> str:
    """Return the processor that a run was measured on; empty where it is not known."""
    return str(run.get("machine_info", {}).get("cpu", {}).get("brand_raw") or "")


def _check_same(before: Run, now: Run) -> None:
    """Ratios hold for one interpreter and the same octets; the speed of the machine does not matter."""
    for what in _INTERPRETER:
        old, new = (run.get("machine_info", {}).get(what) for run in (before, now))
        if old != new:
            raise IncomparableError(f"{what} was {old}, and is {new}")
    if before.get("octets") != now.get("octets"):
        raise IncomparableError("they are of different octets")


def _same_version(peer: str, before: Run, now: Run) -> bool:
    return bool(before.get("versions", {}).get(peer) == now.get("versions", {}).get(peer))


def _least(run: Run) -> dict[_Pair, float]:
    return {
        (item, peer): nanoseconds
        for item, peers in figures(run).items()
        for peer, nanoseconds in peers.items()
        if nanoseconds > 0  # a clock may be too coarse for one call
    }


def _row(
    pair: _Pair, old: Mapping[_Pair, float], new: Mapping[_Pair, float], yardsticks: Sequence[_Pair]
) -> Row:
    item, peer = pair
    same_item = [other for other in yardsticks if other[0] == item] or yardsticks
    change = None
    if pair in old and pair in new:
        machine = fmean(math.log(new[other] / old[other]) for other in same_item)
        change = new[pair] / old[pair] / math.exp(machine) - 1
    work = item if peer == OURS[0] else f"{item}, {peer.removeprefix('amqpcodec ')}"
    return Row(work, old.get(pair), new.get(pair), change)
