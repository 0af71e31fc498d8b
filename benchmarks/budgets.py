"""`make bench-budgets`: what the package costs besides time to decode, beside the budgets in budgets.toml.

It fails where a figure is more than 5% over its budget. A change that costs more changes the number there,
with its reason. Budgets hold for one kind of machine; on another, figures are printed and not judged. Seconds
never are: of the same tree, a busy machine takes four times as many as an idle one. `make bench-build` builds
alone, and stores nothing.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import guard
from counting import HERE, available
from results import store

ROOT = HERE.parent
BUDGETS = HERE / "budgets.toml"
MARGIN = 0.05
NAMES = {"decoder": "idle decoder", "channel": "open channel", "stats": "connection in stats"}
ROUNDS = 9  # imports that are timed
GENERATED = ("src/amqpcodec/_generated", "src/amqpcodec/_protocol")


def texts() -> Iterator[tuple[str, float]]:
    """Count the generated lines that git has."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *GENERATED], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    yield "generated lines", sum(path.read_bytes().count(b"\n") for path in paths if path.exists())


def build() -> Iterator[tuple[str, float]]:
    """Build the wheel as releases are, from a copy of what git has, so that nothing built before helps."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    released = {**os.environ, **settings["linux"]["environment"]}
    with tempfile.TemporaryDirectory() as folder:
        source, target, archive = (Path(folder, name) for name in ("source", "wheel", "source.tar"))
        subprocess.run(["git", "archive", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(source, filter="data")
        print(f"Building a wheel; the load of this machine is {os.getloadavg()[0]:.1f} before", flush=True)
        before, begin = _children_seconds(), time.monotonic()
        options = ["-q", "--no-deps", "--no-cache-dir", "-w", str(target)]
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", *options, str(source)], env=released, check=True
        )
        yield "build, CPU s", round(_children_seconds() - before, 1)
        yield "build, s", round(time.monotonic() - begin, 1)
        yield "C to compile, octets", sum(path.stat().st_size for path in source.rglob("build/**/*.c"))
        wheel = next(target.glob("*.whl"))
        yield "wheel, octets", wheel.stat().st_size
        with zipfile.ZipFile(wheel) as files:
            yield "installed, octets", sum(info.file_size for info in files.infolist())


def imports() -> Iterator[tuple[str, float]]:
    """Import the usual dialect in fresh processes: milliseconds for people, instructions to compare."""
    timed = "from time import perf_counter as t; b = t(); import amqpcodec.rabbitmq; print((t() - b) * 1e3)"
    with tempfile.TemporaryDirectory() as folder:
        # As it is for users: modules are not compiled at each start.
        cached = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        _python(cached, "-c", timed)
        yield "import, ms", round(median(float(_python(cached, "-c", timed)) for _ in range(ROUNDS)), 1)
        if available():
            texts = "import amqpcodec.rabbitmq", "pass"
            with_it, without = (_instructions(cached, text) for text in texts)
            yield "import, million instructions", round((with_it - without) / 1e6, 1)
        # Twice: the first process of a kind compiles what it imports.
        used = [int(_python(cached, str(HERE / "footprint.py"), kind)) for kind in 2 * ("nothing", "import")]
        yield "import, octets of memory", used[-1] - used[-2]


def objects() -> Iterator[tuple[str, float]]:
    """Octets of memory of one more of each."""
    for kind, name in NAMES.items():
        yield f"{name}, octets of memory", int(_python({**os.environ}, str(HERE / "footprint.py"), kind))


def table(figures: dict[str, float], budgets: dict[str, dict[str, Any]]) -> tuple[str, list[str]]:
    """Return a table of figures beside their budgets, and the figures that are over theirs or have none."""
    lines, over = ["| figure | budget | now | |", "| --- | ---: | ---: | --- |"], []
    for item, figure in figures.items():
        budget = budgets.get(item, {"most": 0})
        verdict = "ok" if figure <= budget["most"] * (1 + MARGIN) else "OVER"
        if not budget.get("judged", True):
            verdict = "for people"
        elif verdict == "OVER":
            over.append(item)
        lines.append(f"| {item} | {budget['most']:,} | {figure:,} | {verdict} |")
    return "\n".join(lines) + "\n", over


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _python(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True)
    return done.stdout


def _instructions(environment: dict[str, str], text: str) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", text]
    fixed = {**environment, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=fixed, capture_output=True, encoding="utf-8", check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def main() -> int:
    """Measure, store, and judge where the machine is the one that the budgets are for."""
    if sys.argv[1:] == ["build"]:
        figures = dict(build())
    else:
        figures = dict([*texts(), *imports(), *objects(), *build()])
        store("budgets", {"figures": figures, "cores": os.cpu_count()})
    settings = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    shown, over = table(figures, settings["budget"])
    print(shown, end="")
    if settings["environment"] != guard.environment():
        print(
            f"bench-budgets: budgets for {settings['environment']}, this is {guard.environment()}: not judged"
        )
        return 0
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
