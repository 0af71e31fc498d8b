"""Captures through Spark, beside the same jobs with nothing to decode and beside tshark on the same file.

    python benchmarks/spark_pipeline.py [--mb 250] [--turns 3] [--only JOB]

Two sessions are open, of two cores and of one, and take turns: a job, its ceiling, and where that is wanted
the job on one core and tshark, again and again. So a machine that becomes slower on the way does so for all
that is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from spark_work import HERE, ROOT, SETTINGS, Jobs, captures

RESULT = HERE / "results" / "spark.json"
ONE_CORE = ("frames, numbers", "messages", "pcap_to_parquet")
FOLDER = ROOT / "build" / "bench"


class Session:
    """A session in a process of its own, since a process has only one; it works when it is told to."""

    def __init__(self, cores: int, megabytes: int) -> None:
        command = [sys.executable, __file__, "--serve", f"local[{cores}]", "--mb", str(megabytes)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.jobs: dict[str, list[Any]] = self._answer()

    def seconds(self, job: str, side: str) -> float:
        """What the work of a job takes, or its ceiling."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([job, side]) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the session."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise SystemExit("a session has ended before its time")


@contextmanager
def opened(cores: int, megabytes: int) -> Iterator[Session]:
    """A session for a block."""
    session = Session(cores, megabytes)
    try:
        yield session
    finally:
        session.close()


def serve(master: str, megabytes: int) -> None:
    """Be a session: tell of the jobs there are, then do what each line asks for."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(ROOT / "src")])
    from pyspark.sql import SparkSession
    from spark_ceiling import Ceiling

    from amqpcodec.spark.java import local_java

    paths, counts = captures(FOLDER, megabytes)
    with local_java(), tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        builder = SparkSession.builder.master(master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            spark.dataSource.register(Ceiling)
            jobs = Jobs(spark, paths, counts, Path(scratch)).all()
            _tell({name: [job.unit, job.amount] for name, job in jobs.items()})
            for line in sys.stdin:
                name, side = json.loads(line)
                begin = perf_counter()
                getattr(jobs[name], side)()
                _tell(perf_counter() - begin)
        finally:
            spark.stop()


def _tell(value: Any) -> None:
    print("answer", json.dumps(value), flush=True)


def measure(megabytes: int, turns: int, only: list[str]) -> dict[str, Any]:
    """Rates of jobs and ceilings, millions of octets or rows a second, and how they compare."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    paths, counts = captures(FOLDER, megabytes)
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        two, one = (stack.enter_context(opened(cores, megabytes)) for cores in (2, 1))
        for name, (unit, amount) in two.jobs.items():
            if only and name not in only:
                continue
            found[name] = {"unit": unit, **_job(name, amount, two, one, paths[0], turns)}
            print(name, found[name], file=sys.stderr, flush=True)
    return {"megabytes": counts["octets"] / 1e6, "messages": counts["messages"], "jobs": found}


def _job(name: str, amount: int, two: Session, one: Session, path: str, turns: int) -> dict[str, float]:
    """What is known of a job after some turns, and one before them that does not count."""
    sides = {"rate": lambda: two.seconds(name, "work"), "ceiling": lambda: two.seconds(name, "ceiling")}
    if name in ONE_CORE:
        sides["one core"] = lambda: one.seconds(name, "work")
    taken: list[dict[str, float]] = []
    for _ in range(turns + 1):
        taken.append({side: measured() for side, measured in sides.items()})
        if name == "messages" and (rate := tshark(path)):
            taken[-1]["tshark"] = amount / 1e6 / rate
    taken = taken[1:]
    rates = {side: amount / 1e6 / median(turn[side] for turn in taken) for side in taken[0]}
    found = rates | {"of ceiling": median(turn["ceiling"] / turn["rate"] for turn in taken)}
    if "one core" in sides:
        found["beside one core"] = median(turn["one core"] / turn["rate"] for turn in taken)
    if "tshark" in rates:
        found["beside tshark"] = median(turn["tshark"] / turn["one core"] for turn in taken)
    return found


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
    parser.add_argument("--serve", metavar="MASTER", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], help="this job only; repeatable")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.mb)
        return
    text = json.dumps(measure(given.mb, given.turns, given.only), indent=1)
    print(text)
    if not given.only:
        RESULT.write_text(text + "\n")


if __name__ == "__main__":
    main()
