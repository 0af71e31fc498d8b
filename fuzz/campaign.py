"""Runs fuzz targets for a given time on the build with sanitizers, and keeps the figures.

    python fuzz/campaign.py --seconds 60 tables          one target
    python fuzz/campaign.py --seconds 1200 --jobs 2 all  every target, two at a time

What is found lies in build/fuzz/findings, one file a finding; the corpus grows in build/fuzz/corpus. The
figures of each target's last run are written to fuzz/results.json if it had nine minutes or more of a
processor, else to build/fuzz/results.json; several campaigns may write there. An input that took long counts
as a finding if it takes long by itself, in time of the processor: the machine may be busy. Ends with 1 when
anything was found.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sanitized

ROOT = sanitized.ROOT
BASE = ROOT / "build" / "fuzz"
RESULTS = ROOT / "fuzz" / "results.json"
WORTH_KEEPING = 540  # seconds of a processor
SLOW = 20  # seconds that no input may take
TARGETS = (
    "stream",
    "amqp08",
    "qpid08",
    "amqp09",
    "amqp091",
    "rabbitmq",
    "tables",
    "encoder",
    "capture",
    "columns",
    "values",
    "batches",
    "session",
    "connection",
    "broker",
)
_STATUS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")


def write_seeds(environment: dict[str, str]) -> None:
    """The seed corpus of every target, made by a Python that has the build to read the vectors with."""
    program = (
        "import pathlib, hashlib, seeds, sys\n"
        f"for target in {TARGETS!r}:\n"
        f"    folder = pathlib.Path({str(BASE / 'seeds')!r}) / target\n"
        "    folder.mkdir(parents=True, exist_ok=True)\n"
        "    for octets in seeds.seeds(target):\n"
        "        (folder / hashlib.sha1(octets).hexdigest()[:16]).write_bytes(octets)\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def run(target: str, seconds: int, environment: dict[str, str]) -> dict[str, Any]:
    """Run one target for that long; it continues after a finding, as long as there is time."""
    folders = {name: BASE / name / target for name in ("corpus", "findings", "seeds")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    before = findings(folders["findings"])
    log = BASE / f"{target}.log"
    log.unlink(missing_ok=True)
    started = time.monotonic()
    figures = {"seconds": 0, "executions": 0, "edges": 0, "features": 0, "corpus": 0}
    processor = 0.0
    while (left := seconds - (time.monotonic() - started)) > 1:
        ended, text, used = measured(command(target, int(left), folders), environment)
        processor += used
        with log.open("a") as output:
            output.write(text)
        _count(figures, text)
        if ended == 0:
            break
        if not _EXECUTIONS.search(text) and not _STATUS.search(text):
            raise RuntimeError(f"{target} did not start, see {log}:\n{text[-2000:]}")
    figures["seconds"] = round(processor)
    new = findings(folders["findings"]) - before
    figures["findings"] = sum(not _was_only_busy(target, path, environment) for path in sorted(new))
    return figures


def measured(arguments: Sequence[str], environment: dict[str, str]) -> tuple[int, str, float]:
    """Run a program: how it ended, what it said, and the seconds of a processor that it took."""
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=BASE
    ) as process:
        assert process.stdout is not None
        text = process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, text, usage.ru_utime + usage.ru_stime


def _was_only_busy(target: str, path: Path, environment: dict[str, str]) -> bool:
    """Whether an input is kept only because the machine was busy: alone it takes little time of a processor.

    It is renamed then, as one that was merely slow.
    """
    if not path.name.startswith("timeout-"):
        return False
    start = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2); "
    program = [sys.executable, "-c", start + "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"]
    options = [str(SLOW), str(ROOT / "fuzz" / "run.py"), target, "-timeout=0", str(path)]
    if measured([*program, *options], environment)[0] != 0:
        return False
    path.rename(path.with_name(f"slow-unit-{path.name}"))
    return True


def keep(path: Path, target: str, figures: dict[str, Any]) -> None:
    """Write the figures of a target to a file of results, beside those that others write meanwhile."""
    BASE.mkdir(parents=True, exist_ok=True)
    with (BASE / "results.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = json.loads(path.read_text()) if path.exists() else {}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(results | {target: figures}, indent=1, sort_keys=True) + "\n")
        part.replace(path)


def command(target: str, seconds: int, folders: dict[str, Path]) -> list[str]:
    """A run of libFuzzer."""
    options = [
        f"timeout={SLOW}",
        "rss_limit_mb=2048",
        "max_len=4096",
        "print_final_stats=1",
        "use_value_profile=1",
    ]
    options += [f"max_total_time={seconds}", f"artifact_prefix={folders['findings']}/"]
    program = [sys.executable, str(ROOT / "fuzz" / "run.py"), target, *(f"-{option}" for option in options)]
    return [*program, str(folders["corpus"]), str(folders["seeds"])]


def findings(folder: Path) -> set[Path]:
    """What libFuzzer kept, but for inputs that were merely slow."""
    return {path for path in folder.iterdir() if not path.name.startswith("slow-unit")}


def _count(figures: dict[str, int], text: str) -> None:
    """Add what one run of libFuzzer says of itself."""
    if executions := _EXECUTIONS.findall(text):
        figures["executions"] += int(executions[-1])
    elif numbers := re.findall(r"^#(\d+)", text, re.MULTILINE):
        figures["executions"] += int(numbers[-1])
    for name, value in zip(("edges", "features", "corpus"), _last(text), strict=False):
        figures[name] = max(figures[name], value)


def _last(text: str) -> tuple[int, ...]:
    found = _STATUS.findall(text)
    return tuple(map(int, found[-1])) if found else ()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the codec.")
    parser.add_argument("target", choices=(*TARGETS, "all"))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    given = parser.parse_args()
    wanted = TARGETS if given.target == "all" else (given.target,)
    try:
        sanitized.runtimes("fuzz")
        environment = sanitized.environment("fuzz", sanitized.build("fuzz"))
    except sanitized.MissingToolError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2
    write_seeds(environment)
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = {target: pool.submit(run, target, given.seconds, environment) for target in wanted}
        for target, future in runs.items():
            figures = future.result() | {"date": time.strftime("%Y-%m-%d")}
            print(target, json.dumps(figures), flush=True)
            keep(RESULTS if figures["seconds"] >= WORTH_KEEPING else BASE / "results.json", target, figures)
            found += figures["findings"]
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
