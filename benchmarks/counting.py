"""Work items under callgrind, which counts instructions, not seconds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guard_work import BLOCK, BLOCKS, MARK

HERE = Path(__file__).parent
OPERATIONS = BLOCK * BLOCKS
# A line of callgrind_annotate: count, share, file:function, object.
_LINE = re.compile(r"^ *([\d,]+) \([ \d.]+%\)  (?:\S*:)?(\S+) \[(\S+)\]$", re.MULTILINE)


def available() -> bool:
    """Whether valgrind is there; says so if not."""
    if shutil.which("valgrind") is not None:
        return True
    print("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)")
    return False


def per_operation(items: list[str], sources: Path | None = None) -> dict[str, int]:
    """Instructions of one operation of each work item of guard_work.py.

    `sources` is a folder with another amqpcodec, compiled in place, to count. What it lacks is left out.
    """
    with _counted(items, sources) as files:
        return {item: round(_total(file) / OPERATIONS) for item, file in files.items()}


def by_function(items: list[str]) -> dict[str, dict[tuple[str, str], float]]:
    """Instructions of one operation of each, by object file and function."""
    with _counted(items) as files:
        return {item: _functions(file) for item, file in files.items()}


def _total(file: Path) -> int:
    found = re.search(
        r"^(?:summary|totals): (\d+)", file.read_text(errors="replace", encoding="utf-8"), re.MULTILINE
    )
    if found is None:
        raise SystemExit(f"{file.name}: callgrind counted nothing")
    return int(found[1])


def _functions(file: Path) -> dict[tuple[str, str], float]:
    # Calls that had not returned at a mark: callgrind_annotate takes what they cost for the caller's own.
    file.write_bytes(re.sub(rb"^calls=0 .*\n.*\n", b"", file.read_bytes(), flags=re.MULTILINE))
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", str(file)]
    listing = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    counts: Counter[tuple[str, str]] = Counter()
    for number, function, path in _LINE.findall(listing):
        counts[Path(path).name.partition(".")[0], function] += int(number.replace(",", ""))
    return {key: count / OPERATIONS for key, count in counts.items()}


@contextmanager
def _counted(items: list[str], sources: Path | None = None) -> Iterator[dict[str, Path]]:
    """Callgrind's file of each item, of what a process does between its two marks."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if sources is not None:
        environment["PYTHONPATH"] = str(sources)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={MARK}"]
        done = subprocess.run(
            [*command, sys.executable, str(HERE / "guard_work.py"), *items],
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"callgrind: {done.stderr[-2000:]}")
        had = done.stdout.splitlines()
        if sources is None and had != items:
            raise SystemExit(f"callgrind: this checkout lacks {', '.join(set(items) - set(had))}")
        # A file ends at each mark: the odd ones are of what came before an item.
        yield {item: out.with_suffix(f".{2 * at}") for at, item in enumerate(had, 1)}
