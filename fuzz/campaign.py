"""Runs fuzz targets for a given time on the build with sanitizers, and keeps the figures.

    python fuzz/campaign.py --seconds 60 tables          one target
    python fuzz/campaign.py --seconds 1200 --jobs 2 all  every target, two at a time

What is found lies in build/fuzz/findings, one file a finding; the corpus grows in build/fuzz/corpus. The
figures of each target's last run are written to fuzz/results.json if it took ten minutes or more, else to
build/fuzz/results.json. Ends with 1 when anything was found.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sanitized

ROOT = sanitized.ROOT
BASE = ROOT / "build" / "fuzz"
RESULTS = ROOT / "fuzz" / "results.json"
WORTH_KEEPING = 600  # seconds
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
    """One target for that long; goes on after a finding, as long as there is time."""
    folders = {name: BASE / name / target for name in ("corpus", "findings", "seeds")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    before = findings(folders["findings"])
    log = BASE / f"{target}.log"
    log.unlink(missing_ok=True)
    started = time.monotonic()
    figures = {"seconds": seconds, "executions": 0, "edges": 0, "features": 0, "corpus": 0}
    while (left := seconds - (time.monotonic() - started)) > 1:
        done = subprocess.run(
            command(target, int(left), folders),
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=BASE, check=False,
        )  # fmt: skip
        text = done.stdout.decode(errors="replace")
        with log.open("a") as output:
            output.write(text)
        _count(figures, text)
        if done.returncode == 0:
            break
        if not _EXECUTIONS.search(text) and not _STATUS.search(text):
            raise RuntimeError(f"{target} did not start, see {log}:\n{text[-2000:]}")
    figures["findings"] = len(findings(folders["findings"]) - before)
    return figures


def command(target: str, seconds: int, folders: dict[str, Path]) -> list[str]:
    """A run of libFuzzer."""
    options = [
        "timeout=20",
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
    kept = RESULTS if given.seconds >= WORTH_KEEPING else BASE / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = {target: pool.submit(run, target, given.seconds, environment) for target in wanted}
        for target, future in runs.items():
            results[target] = future.result() | {"date": time.strftime("%Y-%m-%d")}
            print(target, json.dumps(results[target]), flush=True)
            kept.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return int(any(results[target]["findings"] for target in wanted))


if __name__ == "__main__":
    sys.exit(main())
