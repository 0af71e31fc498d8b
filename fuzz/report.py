"""Writes the figures of the last runs into docs/reliability.md, between its two markers.

    python fuzz/report.py [--check]

With --check nothing is written; ends with 1 if the document does not have the stored figures.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FUZZ = Path(__file__).resolve().parent
DOCUMENT = FUZZ.parent / "docs" / "reliability.md"
SUMS = ("seconds", "executions", "findings")  # of all runs of a target; other figures are of the last one
BEGIN, END = "<!-- figures: written by fuzz/report.py -->", "<!-- end of figures -->"


def stored(name: str) -> dict[str, Any]:
    path = FUZZ / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def written(results: dict[str, Any]) -> str:
    """Return the text of stored figures: those of a run on one line."""
    runs = (
        f" {json.dumps(name)}: {json.dumps(run, sort_keys=True)}" for name, run in sorted(results.items())
    )
    return "{\n" + ",\n".join(runs) + "\n}\n"


def fuzzing(results: dict[str, Any]) -> Iterator[str]:
    """A line for each target, and one for all."""
    names = ("seconds", "executions", "seeds", "corpus", "edges", "features", "findings")
    yield f"| target | last run | {' | '.join(names)} |"
    yield "| --- |" + " --- |" * (1 + len(names))
    for target, run in results.items():
        figures = (f"{run[name]:,}" if name in run else "" for name in names)
        yield f"| {target} | {run['date']} | {' | '.join(figures)} |"
    seconds, executions, findings = (sum(run[name] for run in results.values()) for name in SUMS)
    yield f"| all | | {seconds:,} | {executions:,} | | | | | {findings:,} |"


def endurance(results: dict[str, Any]) -> Iterator[str]:
    """A line for each long run."""
    yield "| run | day | seconds | what was done | what was kept |"
    yield "| --- | --- | --- | --- | --- |"
    for name, run in results.items():
        if name == "soak":
            done = f"{run['streams']:,} streams, {run['values']:,} values, {run['octets']:,} octets"
            kept = f"{run['octets_grown']:,} octets"
        else:
            done = f"{run['frames']:,} frames"
            kept = f"{run['blocks_kept']:,} blocks, {run['octets_kept']:,} octets"
        yield f"| {name} | {run['date']} | {run['seconds']:,} | {done} | {kept} |"


def figures() -> str:
    """What belongs between the markers."""
    parts = []
    if results := stored("results"):
        parts.append("\n".join(fuzzing(results)))
    if results := stored("endurance"):
        parts.append("\n".join(endurance(results)))
    return "\n\n".join(parts) or "No run has been stored yet."


def main(arguments: list[str]) -> int:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    written = f"{before}{BEGIN}\n\n{figures()}\n\n{END}{after}"
    if "--check" in arguments:
        return int(written != text)
    DOCUMENT.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
