"""Runs fuzz targets for a given time on the build with sanitizers, and keeps the figures.

    python fuzz/campaign.py --seconds 60 tables          one target
    python fuzz/campaign.py --seconds 1200 --jobs 2 all  every target, two at a time
    python fuzz/campaign.py --until 10000000 all         on with the campaign, to so many executions in all

What is found lies in build/fuzz/findings, one file a finding; the corpus grows in build/fuzz/corpus, and
each run begins with it. A campaign goes on with the target that has had the least time, in runs of
`--seconds`, and adds the figures of each run to fuzz/results.json. To stop it loses the figures of one run.
Executions are those beyond seeds and corpus. An input that took long counts as a finding if it takes long by
itself, in time of the processor: the machine may be busy. Ends with 1 when anything was found.
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
from report import SUMS, written

ROOT = sanitized.ROOT
BASE = ROOT / "build" / "fuzz"
RESULTS = ROOT / "fuzz" / "results.json"
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
    "packets",
    "columns",
    "values",
    "batches",
    "session",
    "connection",
    "broker",
)
_READ = re.compile(r"^#(\d+)\s+INITED", re.MULTILINE)  # seeds and corpus, before anything new is tried
_STATUS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")


def write_seeds(environment: dict[str, str]) -> None:
    """Write seeds and dictionaries, by a Python that has the build to read the vectors with."""
    program = [sys.executable, str(ROOT / "fuzz" / "seeds.py"), str(BASE / "seeds")]
    subprocess.run(program, env=environment, check=True)


def run(target: str, seconds: int, environment: dict[str, str]) -> dict[str, Any]:
    """Run one target for that long; it continues after a finding, as long as there is time."""
    folders = {name: BASE / name / target for name in ("corpus", "findings", "seeds")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    before = findings(folders["findings"])
    log = BASE / f"{target}.log"
    log.unlink(missing_ok=True)
    started = time.monotonic()
    figures = {"executions": 0}
    processor = 0.0
    while (left := seconds - (time.monotonic() - started)) > 1:
        ended, text, used = measured(command(target, int(left), folders), environment)
        processor += used
        with log.open("a", encoding="utf-8") as output:
            output.write(text)
        _count(figures, text)
        if ended == 0:
            break
        if not _EXECUTIONS.search(text) and not _STATUS.search(text):
            raise RuntimeError(f"{target} did not start, see {log}:\n{text[-2000:]}")
    figures["seconds"] = round(processor)
    figures["seeds"] = len(list(folders["seeds"].iterdir()))
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


def keep(target: str, figures: dict[str, Any]) -> None:
    """Add the figures of a run to those of its target, beside what others write meanwhile."""
    BASE.mkdir(parents=True, exist_ok=True)
    with (BASE / "results.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = stored()
        before = results.get(target, {})
        results[target] = before | figures | {name: before.get(name, 0) + figures[name] for name in SUMS}
        part = RESULTS.with_suffix(".part")
        part.write_text(written(results), encoding="utf-8")
        part.replace(RESULTS)


def stored() -> dict[str, Any]:
    """Return the figures of the campaign so far, by target."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


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
    if (dictionary := folders["seeds"].with_suffix(".dict")).exists():
        options.append(f"dict={dictionary}")
    program = [sys.executable, str(ROOT / "fuzz" / "run.py"), target, *(f"-{option}" for option in options)]
    return [*program, str(folders["corpus"]), str(folders["seeds"])]


def findings(folder: Path) -> set[Path]:
    """What libFuzzer kept, but for inputs that were merely slow."""
    return {path for path in folder.iterdir() if not path.name.startswith("slow-unit")}


def _count(figures: dict[str, int], text: str) -> None:
    """Add what one run of libFuzzer says of itself, once it has read seeds and corpus."""
    if (read := _READ.search(text)) is None:
        return
    executions = _EXECUTIONS.findall(text) or re.findall(r"^#(\d+)", text, re.MULTILINE)
    figures["executions"] += int(executions[-1]) - int(read[1])
    edges, features, corpus = map(int, _STATUS.findall(text)[-1])
    figures |= {"edges": edges, "features": features, "corpus": corpus}


def go_on(wanted: Sequence[str], executions: int, seconds: int, environment: dict[str, str]) -> int:
    """Go on with the campaign until targets together have had so many executions; the findings of it."""
    found = 0
    while True:
        rows = {target: stored().get(target, dict.fromkeys(SUMS, 0)) for target in wanted}
        if sum(row["executions"] for row in rows.values()) >= executions:
            return found
        target = min(rows, key=lambda name: rows[name]["seconds"])
        found += said(target, run(target, seconds, environment), is_kept=True)


def said(target: str, figures: dict[str, Any], is_kept: bool) -> int:
    """Print the figures of a run, and keep them if they are those of a campaign; its findings."""
    print(target, json.dumps(figures), flush=True)
    if is_kept:
        keep(target, figures | {"date": time.strftime("%Y-%m-%d")})
    return int(figures["findings"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the codec.")
    parser.add_argument("target", choices=(*TARGETS, "all"))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--until", type=int, metavar="EXECUTIONS", help="go on with the campaign")
    given = parser.parse_args()
    wanted = TARGETS if given.target == "all" else (given.target,)
    try:
        sanitized.runtimes("fuzz")
        environment = sanitized.environment("fuzz", sanitized.build("fuzz"))
    except sanitized.MissingToolError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2
    write_seeds(environment)
    if given.until is not None:
        return int(go_on(wanted, given.until, given.seconds, environment) > 0)
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = {target: pool.submit(run, target, given.seconds, environment) for target in wanted}
        found = [said(target, future.result(), is_kept=False) for target, future in runs.items()]
    return int(any(found))


if __name__ == "__main__":
    sys.exit(main())
