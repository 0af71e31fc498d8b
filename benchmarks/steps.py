"""`make bench-steps`: what a capture costs step by step, and on Spark how much of it is the JVM's.

CPU seconds for 100 MB of a seeded capture. Each step does what the one before does, and more. The steps
take turns in processes of their own, and the file is read once before. The ceiling of the columns is the
step before them, which follows the same frames of the same file. Stored as `steps.json`.

    python benchmarks/steps.py [--mb 500] [--turns 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from captures import capture
from results import store
from spark.work import NUMBERS, session

CONNECTIONS = 200
CHUNK = 1 << 20  # octets that the file is read by
STEPS = {
    "reading": None,  # tables and columns of the others
    "packets": ("packets", []),
    "frames": ("frames", []),
    "columns": ("frames", list(NUMBERS)),
}


def step(name: str, path: Path) -> float:
    """Return the CPU seconds of a step, the second time: the first compiles and imports."""
    from amqpcodec import arrow

    for _ in range(2):
        begin = process_time()
        chosen = STEPS[name]
        if chosen is None:
            with path.open("rb", buffering=0) as file:
                buffer = bytearray(CHUNK)
                while file.readinto(buffer):
                    pass
        else:
            table, columns = chosen
            for _ in arrow.read_capture(path, table, columns=columns):
                pass
        seconds = process_time() - begin
    return seconds


def on_spark(path: Path, turns: int) -> dict[str, float]:
    """Return the CPU seconds that five columns of numbers take on Spark, and the JVM's part of them."""
    with session("local[1]") as (spark, _):
        from amqpcodec.spark import register

        register(spark)
        reader = spark.read.format("amqp").options(table="frames", columns=",".join(NUMBERS))
        frames = reader.load(str(path))
        taken = []
        for _ in range(turns + 1):
            before = spent(os.getpid())
            frames.write.format("noop").mode("overwrite").save()
            after = spent(os.getpid())
            taken.append({name: after[name] - before.get(name, 0.0) for name in after})
    jvm = median(each["java"] for each in taken[1:])
    return {"all": median(sum(each.values()) for each in taken[1:]), "jvm": jvm}


def spent(root: int) -> dict[str, float]:
    """Return the CPU seconds of a process and all below it, by the names of programs."""
    parents, seconds, names = {}, {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, fields = (folder / "stat").read_text(encoding="utf-8").split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue  # it has ended
            values = fields.split()
            pid = int(folder.name)
            names[pid], parents[pid] = name, int(values[1])
            seconds[pid] = (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    found: dict[str, float] = {}
    for pid, name in names.items():
        above = pid
        while above not in (root, 0):
            above = parents.get(above, 0)
        if above == root:
            found[name] = found.get(name, 0.0) + seconds[pid]
    return found


def measure(path: Path, megabytes: float, turns: int) -> dict[str, Any]:
    """Return CPU seconds for 100 MB."""
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    for _ in range(turns):
        for name in STEPS:
            command = [sys.executable, __file__, "--step", name, str(path)]
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
            times[name].append(float(done.stdout))
    found = {name: round(median(each) * 100 / megabytes, 4) for name, each in times.items()}
    spark = {name: round(each * 100 / megabytes, 4) for name, each in on_spark(path, turns).items()}
    return {"megabytes": megabytes, "steps": found, "spark": spark}


def main() -> None:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mb", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--step", nargs=2, metavar=("NAME", "PATH"), help="of one process")
    options = parser.parse_args()
    if options.step:
        name, path = options.step
        print(step(name, Path(path)))
        return
    path, _ = capture(options.mb, CONNECTIONS)
    found = measure(path, path.stat().st_size / 1e6, options.turns)
    store("steps", found)
    print(found)


if __name__ == "__main__":
    main()
