"""Captures through Spark, beside the same jobs with nothing to decode and beside tshark on the same file.

    python benchmarks/spark_pipeline.py [--mb 250] [--turns 3]

Four captures made from seeds are read in one session of two cores, then some of the jobs in one of one core.
A ceiling has as many rows, of the same kind, made before it begins.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULT = HERE / "results" / "spark.json"
CAPTURES = 4
SAMPLE = 20  # batches of a ceiling
NUMBERS = ("ts", "offset", "channel", "size", "method_id")
THREE = "ts timestamp, exchange string, routing_key string"
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def captures(folder: Path, megabytes: int) -> tuple[list[str], dict[str, int]]:
    """Seeded captures, made if they are not there, and the sums of the counts of what is in them."""
    paths, sums = [], {"octets": 0, "frames": 0, "messages": 0, "connections": 0}
    for seed in range(CAPTURES):
        path = folder / f"spark-{megabytes}-{seed}.pcap"
        counts = path.with_name(path.name + ".json")
        if not counts.exists():
            command = [sys.executable, str(ROOT / "tools" / "synthetic_capture.py"), str(path)]
            subprocess.run([*command, "--mb", str(megabytes), "--seed", str(seed)], check=True)
        paths.append(str(path))
        found = json.loads(counts.read_text()) | {"octets": path.stat().st_size}
        sums = {name: sums[name] + found[name] for name in sums}
    return paths, sums


class Jobs:
    """The jobs, each to be run in a session; all of them give a number of rows."""

    def __init__(self, spark: Any, paths: list[str], counts: dict[str, int], folder: Path) -> None:
        self.spark, self.paths, self.counts, self.folder = spark, paths, counts, folder

    def read(
        self, table: str, schema: str | None = None, paths: list[str] | None = None, **options: Any
    ) -> Any:
        """Our source."""
        reader = self.spark.read.format("amqp").option("table", table).options(**options)
        return (reader.schema(schema) if schema else reader).load(paths or self.paths)

    def ceiling(self, sample: str, rows: int, schema: str | None = None) -> Any:
        """The source of batches that are made already."""
        reader = self.spark.read.format("ceiling").option("parts", CAPTURES).option("rows", rows // CAPTURES)
        return (reader.schema(schema) if schema else reader).load(sample)

    def direct(self) -> None:
        """Captures to Parquet inside the workers."""
        from amqpcodec.spark import pcap_to_parquet

        written = pcap_to_parquet(self.spark, self.paths, str(self.folder / "direct"), save="overwrite")
        assert sum(row.rows for row in written.collect()) == self.counts["messages"], "messages are missing"

    def direct_ceiling(self, sample: str) -> None:
        """Batches that are made already to Parquet inside the workers."""
        from spark_ceiling import WriteParquet

        target = self.folder / "direct-ceiling"
        target.mkdir(exist_ok=True)
        write = WriteParquet(sample, self.counts["messages"] // CAPTURES, target)
        self.spark.range(0, CAPTURES, 1, CAPTURES).mapInArrow(write.__call__, "id long").collect()


def nowhere(frame: Any) -> None:
    """Compute every row and drop it."""
    frame.write.format("noop").mode("overwrite").save()


def jvm_parquet(frame: Any, target: Path) -> None:
    """Parquet written by Spark itself."""
    frame.write.mode("overwrite").option("compression", "zstd").parquet(str(target))


def sample(paths: list[str], folder: Path, table: str, columns: tuple[str, ...] | None = None) -> str:
    """An Arrow file of some batches of a table."""
    import pyarrow as pa

    from amqpcodec import arrow

    reader = arrow.read_capture(paths[0], table, columns=columns)
    target = folder / f"{table}.arrow"
    with pa.ipc.new_file(str(target), reader.schema) as file:
        for batch in islice(reader, SAMPLE):
            file.write_batch(batch)
    return str(target)


def best(work: Callable[[], Any], turns: int) -> float:
    """Seconds of the fastest of some turns, after one that does not count."""
    seconds = []
    for turn in range(turns + 1):
        begin = perf_counter()
        work()
        if turn:
            seconds.append(perf_counter() - begin)
    return min(seconds)


def pairs(jobs: Jobs, folder: Path) -> dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Name to what is counted, the work, and its ceiling."""
    counts = jobs.counts
    messages = sample(jobs.paths, folder, "messages")
    frames = sample(jobs.paths, folder, "frames", NUMBERS)
    rows = counts["messages"]
    numbers, made_numbers = (
        jobs.read("frames", columns=",".join(NUMBERS)),
        jobs.ceiling(frames, counts["frames"]),
    )
    whole, made = jobs.read("messages"), jobs.ceiling(messages, rows)
    three, made_three = jobs.read("messages", THREE), jobs.ceiling(messages, rows, THREE)
    return {
        "frames, numbers": ("octets", partial(nowhere, numbers), partial(nowhere, made_numbers)),
        "messages": ("messages", partial(nowhere, whole), partial(nowhere, made)),
        "messages, counted": ("messages", whole.count, made.count),
        "messages, 3 columns": ("messages", partial(nowhere, three), partial(nowhere, made_three)),
        "pcap_to_parquet": ("messages", jobs.direct, partial(jobs.direct_ceiling, messages)),
        "write.parquet": (
            "messages",
            partial(jvm_parquet, whole, folder / "jvm"),
            partial(jvm_parquet, made, folder / "jvm"),
        ),
    }  # fmt: skip


def measure(master: str, megabytes: int, turns: int, only: list[str]) -> dict[str, Any]:
    """Rates of jobs and ceilings in one session: millions of octets or rows a second."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(ROOT / "src")])
    from pyspark.sql import SparkSession
    from spark_ceiling import Ceiling

    from amqpcodec.spark.java import local_java

    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    paths, counts = captures(folder, megabytes)
    rates: dict[str, Any] = {}
    with local_java(), tempfile.TemporaryDirectory(dir=folder) as scratch:
        builder = SparkSession.builder.master(master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            spark.dataSource.register(Ceiling)
            jobs = Jobs(spark, paths, counts, Path(scratch))
            assert jobs.read("messages").count() == counts["messages"], "messages are missing"
            for name, (what, work, ceiling) in pairs(jobs, Path(scratch)).items():
                if only and name not in only:
                    continue
                amount = counts[what] / 1e6
                rates[name] = {"unit": what, "rate": amount / best(work, turns)}
                if not only:
                    rates[name]["ceiling"] = amount / best(ceiling, turns)
                print(master, name, rates[name], file=sys.stderr, flush=True)
            if not only:
                rates["divided"] = divided(jobs, turns)
        finally:
            spark.stop()
    return {"megabytes": counts["octets"] / 1e6, "messages": counts["messages"], "jobs": rates}


def divided(jobs: Jobs, turns: int) -> dict[str, Any]:
    """One capture read by two tasks, for which it is followed once in advance, and by a single one."""
    path = jobs.paths[:1]
    half = os.path.getsize(path[0]) // 2 + 1
    octets = os.path.getsize(path[0]) / 1e6
    whole = best(partial(nowhere, jobs.read("messages", paths=path)), turns)
    parts = best(partial(nowhere, jobs.read("messages", paths=path, maxPartitionBytes=half)), turns)
    return {"unit": "octets", "one": octets / whole, "two": octets / parts}


def tshark(path: str) -> float | None:
    """Messages a second of tshark, in millions, by one core; None without it."""
    from columnar_captures import FIELDS

    program = shutil.which("tshark")
    if program is None:
        return None
    command = [program, "-r", path, "-d", "tcp.port==5672,amqp", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    messages = json.loads(Path(path + ".json").read_text())["messages"]
    begin = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return float(messages / 1e6 / (perf_counter() - begin))


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="Measure captures through Spark.")
    parser.add_argument("--mb", type=int, default=250, help="size of each of the captures")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--master", help="measure in this session only, and print")
    parser.add_argument("--only", action="append", default=[], help="this job only; repeatable")
    given = parser.parse_args()
    if given.master:
        print(json.dumps(measure(given.master, given.mb, given.turns, given.only)))
        return
    found = session(given, "local[2]", [])
    found["one core"] = session(given, "local[1]", ["messages", "pcap_to_parquet"])["jobs"]
    paths, _ = captures(ROOT / "build" / "bench", given.mb)
    found["tshark"] = tshark(paths[0])
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def session(given: argparse.Namespace, master: str, only: list[str]) -> dict[str, Any]:
    """Measure in a process of its own, since a process has one session."""
    command = [
        sys.executable,
        __file__,
        "--master",
        master,
        "--mb",
        str(given.mb),
        "--turns",
        str(given.turns),
    ]
    for name in only or given.only:
        command += ["--only", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
