"""A large capture through Spark with workers that have little memory.

    PYTHONPATH=benchmarks python -m spark.memory [--mb 4000] [--limit 500m]

Every job has to end with all rows: `spark.executor.pyspark.memory` is a limit of address space, and what goes
beyond it fails. The process that plans has the same limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from captures import capture
from results import store

from .work import nowhere, session

CONNECTIONS = 200
WHOLE = 1 << 40  # octets of a part: all of a file


def jobs(spark: Any, path: Path, target: Path) -> dict[str, Callable[[], int | None]]:
    """From name to work, which returns how many rows it wrote, if it knows."""
    from amqpcodec.spark import pcap_to_parquet

    def read(table: str, **options: Any) -> None:
        nowhere(spark.read.format("amqp").option("table", table).options(**options).load(str(path)))

    def convert(**options: Any) -> int:
        written = pcap_to_parquet(spark, str(path), str(target), save="overwrite", **options)
        return sum(row.rows for row in written.collect())

    return {
        "messages": lambda: read("messages"),
        "frames": lambda: read("frames"),
        "pcap_to_parquet": convert,
        "pcap_to_parquet, one part": lambda: convert(max_partition_bytes=WHOLE),
    }


def measure(path: Path, limit: str, messages: int, only: list[str]) -> dict[str, float]:
    """Seconds of each job in one session."""
    seconds = {}
    with session("local[2]", **{"spark.executor.pyspark.memory": limit}) as (spark, scratch):
        for name, work in jobs(spark, path, scratch / "out").items():
            if only and name not in only:
                continue
            begin = perf_counter()
            rows = work()
            assert rows in (None, messages), f"{name}: {rows} rows of {messages}"
            seconds[name] = perf_counter() - begin
            print(f"{name}: {seconds[name]:.1f} s", file=sys.stderr, flush=True)
    return seconds


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="A large capture through workers with little memory.")
    parser.add_argument("--mb", type=int, default=4000, help="size of the capture")
    parser.add_argument("--limit", default="500m", help="spark.executor.pyspark.memory")
    parser.add_argument("--only", action="append", default=[], help="this job only; repeatable")
    given = parser.parse_args()
    path, counts = capture(given.mb, CONNECTIONS)
    seconds = measure(path, given.limit, counts["messages"], given.only)
    size = {"octets": path.stat().st_size, "limit": given.limit, "connections": CONNECTIONS}
    print(json.dumps(size | {"seconds": seconds}, indent=1))
    if not given.only:
        store("spark-memory", size | {"seconds": seconds})


if __name__ == "__main__":
    main()
