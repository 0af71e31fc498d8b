"""How long a query over very many files plans before its first task runs.

    PYTHONPATH=benchmarks python -m spark.planning [--files 10000] [--mb 4]

The files are links to a few captures. Each is a recording at first, and all of them are one at last
(`rotated=true`). The seconds are those up to the first row: `head` asks for the first task alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from captures import FOLDER, capture

from .work import session

CAPTURES = 4
CONNECTIONS = 8  # of each


def links(folder: Path, paths: Sequence[Path], count: int) -> None:
    """Fill a folder with links to captures, named as one recorder does."""
    for number in range(count):
        (folder / f"trace_{number:05}.pcap").symlink_to(paths[number % len(paths)])


def measure(spark: Any, folder: Path, paths: Sequence[Path]) -> dict[str, dict[str, float]]:
    """Return seconds up to the first row, and how many tasks there are; of the captures alone as well."""
    found = {}
    few, many = [str(path) for path in paths], [str(folder)]
    for name, rotated, what in (
        ("first query of the session", "false", few),
        ("captures alone", "false", few),
        ("recordings of their own", "false", many),
        ("by their times", "auto", many),
        ("one", "true", many),
    ):
        messages = spark.read.format("amqp").option("rotated", rotated).load(what)
        begin = perf_counter()
        assert messages.head() is not None
        found[name] = {"seconds": perf_counter() - begin, "tasks": messages.rdd.getNumPartitions()}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long a query over very many files plans.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--mb", type=int, default=4, help="size of each capture")
    given = parser.parse_args()
    paths = [capture(given.mb, CONNECTIONS, seed)[0] for seed in range(CAPTURES)]
    with session("local[2]") as (spark, _), tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        links(Path(folder), paths, given.files)
        found = measure(spark, Path(folder), paths)
    size = {"files": given.files, "megabytes": given.mb}
    print(json.dumps(size | {"planned": found}, indent=1))


if __name__ == "__main__":
    main()
