"""Times of works, and their JSON in the form of pytest-benchmark."""

from __future__ import annotations

import gc
import math
import platform
import re
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._version import __version__
from .works import Work, versions

LEAST_ROUNDS = 5
_ROUND = 0.005  # seconds of one round, at least


def measure(
    works: Sequence[Work], seconds: float, timer: Callable[[], float] = time.process_time
) -> dict[str, Any]:
    """Time works in turns, so that what else the machine does concerns all of them.

    Args:
        works: what to time.
        seconds: how long, for each of them.
        timer: a clock; the CPU time of the process by default.

    Returns:
        a run, as pytest-benchmark writes it.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        iterations = [_iterations(work, timer) for work in works]
        rounds = max(LEAST_ROUNDS, round(seconds / _ROUND))
        times: list[list[float]] = [[] for _ in works]
        begin = timer()
        for done in range(rounds):
            if done >= LEAST_ROUNDS and timer() - begin > seconds * len(works):
                break
            for work, count, kept in zip(works, iterations, times, strict=True):
                kept.append(_time(work, count, timer))
    finally:
        if collecting:
            gc.enable()
    return {
        "machine_info": machine(),
        "commit_info": {},
        "benchmarks": [
            _entry(work, count, kept) for work, count, kept in zip(works, iterations, times, strict=True)
        ],
        "datetime": datetime.now(UTC).isoformat(),
        "version": __version__,
        "versions": versions(works),
    }


def machine() -> dict[str, Any]:
    """Describe the machine of a run, by pytest-benchmark's names."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "release": platform.release(),
        "python_implementation": platform.python_implementation(),
        "python_version": platform.python_version(),
        "python_compiler": platform.python_compiler(),
        "python_build": platform.python_build(),
        "cpu": {"brand_raw": _processor()},
    }


def _processor() -> str:
    """The model of the processor."""
    try:
        found = re.search(
            r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE
        )
    except OSError:
        found = None
    return found[1] if found else platform.processor()


def _iterations(work: Work, timer: Callable[[], float]) -> int:
    """How many calls make a round, so that the clock is fine enough; warms up as well."""
    count = 1
    while count < 1 << 20 and (took := _time(work, count, timer) * count) < _ROUND:
        count = max(count + 1, min(count * 10, math.ceil(count * _ROUND / max(took, 1e-9))))
    return count


def _time(work: Work, count: int, timer: Callable[[], float]) -> float:
    """Seconds of one call, of so many in a row."""
    call = work.call
    begin = timer()
    for _ in range(count):
        call()
    return (timer() - begin) / count


def _entry(work: Work, iterations: int, times: list[float]) -> dict[str, Any]:
    name = f"{work.item}[{work.peer}]"
    return {
        "group": work.item,
        "name": name,
        "fullname": f"amqpcodec.bench::{name}",
        "params": None,
        "param": None,
        "extra_info": {"item": work.item, "peer": work.peer, "operations": work.operations},
        "options": {},
        "stats": {**_statistics(times), "iterations": iterations},
    }


def _statistics(times: list[float]) -> dict[str, Any]:
    ordered = sorted(times)
    mean, deviation = statistics.fmean(times), statistics.stdev(times)
    q1, median, q3 = statistics.quantiles(ordered, method="inclusive")
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
    within = [taken for taken in ordered if low <= taken <= high]
    around = sum(abs(taken - mean) > deviation for taken in times)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": len(times),
        "median": median,
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": len(times) - len(within),
        "stddev_outliers": around,
        "outliers": f"{around};{len(times) - len(within)}",
        "ld15iqr": within[0],
        "hd15iqr": within[-1],
        "ops": 1 / mean if mean else 0.0,
        "total": math.fsum(times),
    }
