"""Instructions per operation of the compiled build, compared with a stored baseline; no clock is involved.

`--accept` stores what was counted.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys

import guard_work
from counting import HERE, available, per_operation
from peers.ours import Ours

BASELINE = HERE / "guard-baseline.json"


def environment() -> dict[str, str]:
    """What a baseline holds for: counts of another interpreter or machine cannot be compared."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
    }


def compare(counts: dict[str, int], baseline: dict[str, int], tolerance: float) -> bool:
    """Print each item beside its baseline; whether none is beyond the tolerance."""
    good = True
    for item, count in counts.items():
        before = baseline.get(item)
        if before is None:
            print(f"{item:36} {count:8}  not in the baseline")
            good = False
            continue
        change = 100 * (count - before) / before
        verdict = "MORE" if change > tolerance else "less: accept it" if change < -tolerance else "ok"
        print(f"{item:36} {count:8}  {before:8}  {change:+6.1f} %  {verdict}")
        good = good and change <= tolerance
    return good


def main() -> int:
    """Count, then compare or accept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="store the counts as the new baseline")
    parser.add_argument("--tolerance", type=float, default=3.0, help="per cent, default 3")
    arguments = parser.parse_args()
    if not available():
        return 0
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else None
    if not arguments.accept:
        if stored is None:
            print("bench-guard: no baseline yet; `make bench-guard-accept` stores one")
            return 0
        if stored["environment"] != environment():
            print(f"bench-guard: baseline for {stored['environment']}, this is {environment()}: not compared")
            return 0
    counts = per_operation(list(guard_work.items(Ours("amqpcodec", "c"))))
    if arguments.accept:
        BASELINE.write_text(
            json.dumps({"environment": environment(), "instructions": counts}, indent=1) + "\n"
        )
        print("\n".join(f"{item:36} {count:8}" for item, count in counts.items()))
        return 0
    assert stored is not None
    return 0 if compare(counts, stored["instructions"], arguments.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
