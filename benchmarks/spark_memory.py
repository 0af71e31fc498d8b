"""A large capture through Spark with workers that have little memory.

    python benchmarks/spark_memory.py [--mb 4000] [--limit 500m]

Every job has to end with all rows: `spark.executor.pyspark.memory` is a limit of address space, and what goes
beyond it fails. The process that plans has the same limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from spark_work import ROOT, SETTINGS, nowhere

RESULT = ROOT / "benchmarks" / "results" / "spark-memory.json"
CONNECTIONS = 200
WHOLE = 1 << 40  # octets of a part: all of a file


def capture(folder: Path, megabytes: int) -> tuple[Path, dict[str, int]]:
    """A seeded capture, made if it does not exist, and the counts of its contents."""
    path = folder / f"spark-memory-{megabytes}.pcap"
    counts = path.with_name(path.name + ".json")
    if not counts.exists():
        command = [sys.executable, str(ROOT / "tools" / "synthetic_capture.py"), str(path)]
        subprocess.run([*command, "--mb", str(megabytes), "--connections", str(CONNECTIONS)], check=True)
    return path, json.loads(counts.read_text())


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
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    from pyspark.sql import SparkSession

    from amqpcodec.spark.java import local_java

    seconds = {}
    with local_java(), tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        builder = SparkSession.builder.master("local[2]").config("spark.executor.pyspark.memory", limit)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            for name, work in jobs(spark, path, Path(scratch, "out")).items():
                if only and name not in only:
                    continue
                begin = perf_counter()
                rows = work()
                assert rows in (None, messages), f"{name}: {rows} rows of {messages}"
                seconds[name] = perf_counter() - begin
                print(f"{name}: {seconds[name]:.1f} s", file=sys.stderr, flush=True)
        finally:
            spark.stop()
    return seconds


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="A large capture through workers with little memory.")
    parser.add_argument("--mb", type=int, default=4000, help="size of the capture")
    parser.add_argument("--limit", default="500m", help="spark.executor.pyspark.memory")
    parser.add_argument("--only", action="append", default=[], help="this job only; repeatable")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="for the capture")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    path, counts = capture(given.folder, given.mb)
    found = {"octets": path.stat().st_size, "limit": given.limit, "connections": CONNECTIONS}
    result = json.dumps(
        found | {"seconds": measure(path, given.limit, counts["messages"], given.only)}, indent=1
    )
    print(result)
    if not given.only:
        RESULT.write_text(result + "\n")


if __name__ == "__main__":
    main()
