"""Where the instructions of some work items go: by object file and by function, from callgrind."""

from __future__ import annotations

import sys

from counting import available, by_function
from results import store

ITEMS = (
    "consume deliveries 256 B varied", "consume messages 256 B varied", "decode delivery 256 B varied",
    "encode publish 256 B varied", "decode table 10 mixed",
    "encode basic.ack", "decode delivery 256 B raw tables",
)  # fmt: skip
SHOWN = 12  # functions of each


def profile(counts: dict[tuple[str, str], float]) -> dict[str, object]:
    """Shares of the object files, and the functions with the most instructions."""
    total = sum(counts.values())
    objects: dict[str, float] = {}
    for (name, _), count in counts.items():
        objects[name] = objects.get(name, 0) + count
    heaviest = sorted(counts.items(), key=lambda entry: -entry[1])[:SHOWN]
    return {
        "total": round(total),
        "objects": {
            name: count / total for name, count in sorted(objects.items(), key=lambda entry: -entry[1])
        },
        "functions": [[_short(function), round(count), count / total] for (_, function), count in heaviest],
    }


def _short(function: str) -> str:
    """Cython's names without what it puts around them."""
    for mark in ("_kernel_", "_generated_"):
        head, found, rest = function.partition(mark)
        if found and head.startswith("__pyx_"):
            return rest.lstrip("0123456789")
    return function


def main() -> int:
    """Count and store."""
    if not available():
        return 0
    profiles = {item: profile(counts) for item, counts in by_function(list(ITEMS)).items()}
    store("profile", profiles)
    return 0


if __name__ == "__main__":
    sys.exit(main())
