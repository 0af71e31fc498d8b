"""The benchmarks of continuous integration: has a change made the codec slower?

Times are compared by their ratio to other libraries in the same run, and instructions as they are, both with
stored baselines, which hold for one interpreter. Writes build/bench-ci.md. What compares with an earlier
revision on this machine is against.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import guard
from counting import HERE, available
from results import store

from amqpcodec.bench.comparing import (
    IncomparableError,
    Row,
    compare,
    nanoseconds,
    processor,
    table,
    yardsticks,
)

ITEMS = (
    "decode basic.ack", "decode headers, 14 properties", "decode connection.start", "decode table, 10 mixed",
    "decode deliveries, 256 B, varied", "feed deliveries, 256 B, in chunks of 1460",
    "messages, 256 B, varied", "raw tables, 256 B, varied", "encode publishes, 256 B, varied",
    "encode basic.ack", "encode headers, 14 properties", "encode table, 10 mixed",
)  # fmt: skip
FILES = ("bench_decoding.py", "bench_deliveries.py", "bench_encoding.py")
BASELINE = HERE / "ci-baseline.json"
BUILD = HERE.parent / "build"
TABLE = BUILD / "bench-ci.md"
PASSES = 3  # processes: the places of objects in memory differ among them, and so do times
MARGIN = 0.10

Run = dict[str, Any]


def measured(name: str) -> Run:
    """Return every item, measured in a process of its own; `name` is that of the file that is kept."""
    out = BUILD / f"bench-ci-{name}.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-c", HERE / "pytest.ini", *(HERE / file for file in FILES)]
    command += ["-k", "not Cython", "--benchmark-max-time=0.1", "--benchmark-min-time=0.002"]
    command += [f"--benchmark-json={out}"]
    command += [option for item in ITEMS for option in ("--item", item)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench-ci: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    run: Run = json.loads(out.read_text(encoding="utf-8"))
    return run


def merged(runs: Sequence[Run]) -> Run:
    """One run with the shortest times of several: what else a machine does only adds to them."""
    entries: dict[tuple[str, str], Any] = {}
    for entry in (entry for run in runs for entry in run["benchmarks"]):
        work = entry["extra_info"]["item"], entry["extra_info"]["peer"]
        if work not in entries or entry["stats"]["min"] < entries[work]["stats"]["min"]:
            entries[work] = entry
    return {**runs[0], "benchmarks": list(entries.values())}


def times(now: Run) -> tuple[str, list[Row]]:
    """The part of the table that is about times, and its rows."""
    before = json.loads(BASELINE.read_text(encoding="utf-8"))
    # Ratios differ among processors by more than the margin.
    if processor(before) != processor(now):
        return f"Times are not compared: the baseline is of {processor(before)}.\n", []
    try:
        rows = compare(before, now)
    except IncomparableError as reason:
        return f"Times are not compared: {reason}.\n", []
    beside = ", ".join(yardsticks(before, now))
    note = f"CPU time of an operation. The change is that of the ratio to {beside}, margin {MARGIN:.0%}."
    return f"{note}\n\n{table(rows, MARGIN, nanoseconds)}", rows


def instructions() -> tuple[str, list[Row]]:
    """The part of the table that is about instructions, and its rows."""
    if not available():
        return "Instructions are not counted: valgrind is not installed.\n", []
    before = guard.stored()
    if isinstance(before, str):
        return f"Instructions are not compared: {before}.\n", []
    rows = guard.rows(guard.counted(), before)
    note = f"Instructions of an operation in the compiled build, margin {guard.MARGIN:.0%}."
    return f"{note}\n\n{table(rows, guard.MARGIN, str)}", rows


def main() -> int:
    """Measure, compare, write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="store the ratios as the baseline")
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    if arguments.accept:
        store(BASELINE.stem, merged([measured(str(number)) for number in range(2 * PASSES)]), HERE)
        return 0
    about_times, timed = times(merged([measured(str(number)) for number in range(PASSES)]))
    about_counts, counted = instructions()
    failed = [f"{row.work} (time)" for row in timed if row.fails(MARGIN)]
    failed += [f"{row.work} (instructions)" for row in counted if row.fails(guard.MARGIN)]
    verdict = f"**Slower, or gone: {'; '.join(failed)}.**" if failed else "Nothing is slower."
    text = f"## Benchmarks\n\n{verdict}\n\n{about_times}\n{about_counts}"
    TABLE.write_text(text, encoding="utf-8")
    print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
