"""Captures through Spark, beside the same jobs with nothing to decode and beside tshark on the same file.

    PYTHONPATH=benchmarks python -m spark.pipeline [--mb 250] [--turns 3] [--only JOB]

Three sessions are open: `local[2]`, `local[1]`, in which the JVM and its one worker keep more than one core
busy, and `local[1]` held on a single core. They take turns: a job, its ceiling, and where that is wanted the
job in the other sessions and tshark, again and again. So a machine that becomes slower on the way does so
for all that is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from captures import tshark
from results import store

from .work import Jobs, captures, session

EVERYWHERE = ("frames, numbers", "messages", "pcap_to_parquet")  # measured in every session
ONE_CORE = "one core"
SESSIONS = ("local[2]", "local[1]", ONE_CORE)


class Taken(NamedTuple):
    """The seconds that something took, and how many cores of the machine were busy meanwhile."""

    seconds: float
    cores: float


def _worked() -> float:
    """Seconds that all cores together have worked since the machine was started."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _idle, _waiting, *interrupts = map(int, file.readline().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


class Session:
    """A session in a process of its own, since a process has only one; it works on request."""

    def __init__(self, name: str, megabytes: int) -> None:
        command = [sys.executable, "-m", "spark.pipeline", "--serve", name, "--mb", str(megabytes)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.jobs: dict[str, list[Any]] = self._answer()

    def measure(self, job: str, side: str) -> Taken:
        """What the work of a job takes, or its ceiling."""
        assert self._process.stdin is not None
        worked = _worked()
        self._process.stdin.write(json.dumps([job, side]) + "\n")
        self._process.stdin.flush()
        seconds = float(self._answer())
        return Taken(seconds, (_worked() - worked) / seconds)

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
def opened(name: str, megabytes: int) -> Iterator[Session]:
    """A session for a block."""
    session = Session(name, megabytes)
    try:
        yield session
    finally:
        session.close()


def serve(name: str, megabytes: int) -> None:
    """Run a session: report the jobs, then do what each line requests."""
    if name == ONE_CORE:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    master = "local[1]" if name == ONE_CORE else name
    paths, counts = captures(megabytes)
    with session(master) as (spark, scratch):
        from .ceiling import Ceiling

        spark.dataSource.register(Ceiling)
        jobs = Jobs(spark, paths, counts, scratch).all()
        _answer({name: [job.unit, job.amount] for name, job in jobs.items()})
        for line in sys.stdin:
            name, side = json.loads(line)
            begin = perf_counter()
            getattr(jobs[name], side)()
            _answer(perf_counter() - begin)


def _answer(value: Any) -> None:
    print("answer", json.dumps(value), flush=True)


def measure(megabytes: int, turns: int, only: list[str]) -> dict[str, Any]:
    """Rates of jobs and ceilings, millions of octets or rows a second, and how they compare."""
    paths, counts = captures(megabytes)
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(opened(name, megabytes)) for name in SESSIONS}
        for name, (unit, amount) in sessions[SESSIONS[0]].jobs.items():
            if only and name not in only:
                continue
            found[name] = {"unit": unit, **_job(name, amount, sessions, Path(paths[0]), turns)}
            print(name, found[name], file=sys.stderr, flush=True)
    return {"megabytes": counts["octets"] / 1e6, "messages": counts["messages"], "jobs": found}


def _job(name: str, amount: int, sessions: dict[str, Session], path: Path, turns: int) -> dict[str, float]:
    """What is known of a job after some turns, and one before them that does not count."""
    first, *others = sessions
    sides = {first: partial(sessions[first].measure, name, "work")}
    sides["ceiling"] = partial(sessions[first].measure, name, "ceiling")
    if name in EVERYWHERE:
        sides |= {each: partial(sessions[each].measure, name, "work") for each in others}
    taken: list[dict[str, Taken]] = []
    for _ in range(turns + 1):
        taken.append({side: measured() for side, measured in sides.items()})
        if name == "messages" and (rate := tshark_rate(path)):
            taken[-1]["tshark"] = Taken(amount / 1e6 / rate, 1)
    taken = taken[1:]

    def beside(slower: str, faster: str) -> float:
        return median(turn[slower].seconds / turn[faster].seconds for turn in taken)

    found = {side: amount / 1e6 / median(turn[side].seconds for turn in taken) for side in taken[0]}
    found["of ceiling"] = beside("ceiling", first)
    found |= {f"beside {each}": beside(each, first) for each in others if each in sides}
    found |= {f"cores busy, {each}": median(turn[each].cores for turn in taken) for each in sides}
    if "tshark" in found:
        found["beside tshark"] = beside("tshark", ONE_CORE)
    return found


def tshark_rate(path: Path) -> float | None:
    """Return the messages a second of tshark, in millions, by one core; None without it."""
    messages = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))["messages"]
    seconds = tshark(path)
    return messages / 1e6 / seconds if seconds else None


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="Measure captures through Spark.")
    parser.add_argument("--mb", type=int, default=500, help="size of each of the captures")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--serve", choices=SESSIONS, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], help="this job only; repeatable")
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.mb)
        return
    result = measure(given.mb, given.turns, given.only)
    print(json.dumps(result, indent=1))
    if not given.only:
        store("spark", result)


if __name__ == "__main__":
    main()
