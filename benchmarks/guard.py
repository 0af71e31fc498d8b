"""Instructions per operation of the compiled build, compared with a stored baseline; no clock is involved.

`--accept` stores what was counted.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import guard_work
from counting import HERE, available, per_operation
from peers.ours import Ours
from results import store

from amqpcodec.bench.comparing import Row, table

BASELINE = HERE / "guard-baseline.json"
MARGIN = 0.03


def environment() -> dict[str, str]:
    """What a baseline holds for: counts of another interpreter or machine cannot be compared."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
    }


def rows(counts: dict[str, int], before: dict[str, int]) -> list[Row]:
    """Each item beside what it needed before."""
    return [
        Row(item, old, count, None if old is None else (count - old) / old)
        for item, count in counts.items()
        for old in (before.get(item),)
    ]


def stored() -> dict[str, int] | str:
    """The baseline, or the reason why nothing can be compared with it."""
    if not BASELINE.exists():
        return "no baseline yet; `make bench-guard-accept` stores one"
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    if baseline["environment"] != environment():
        return f"baseline for {baseline['environment']}, this is {environment()}: not compared"
    counts: dict[str, int] = baseline["instructions"]
    return counts


def counted(sources: Path | None = None) -> dict[str, int]:
    """Instructions of every item; `sources` as for `per_operation`."""
    return per_operation(list(guard_work.items(Ours("amqpcodec", "c"))), sources)


def main() -> int:
    """Count, then compare or accept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="store the counts as the new baseline")
    arguments = parser.parse_args()
    if not available():
        return 0
    if arguments.accept:
        entry = {"environment": environment(), "instructions": counted()}
        store(BASELINE.stem, entry, HERE)
        return 0
    before = stored()
    if isinstance(before, str):
        print(f"bench-guard: {before}")
        return 0
    found = rows(counted(), before)
    print(table(found, MARGIN, str), end="")
    # An item without a baseline is not guarded.
    return 1 if any(row.fails(MARGIN) or row.before is None for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
