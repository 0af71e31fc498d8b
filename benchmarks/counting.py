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

HERE = Path(__file__).parent
# Operations of a short and of a longer run: the difference leaves the start of the interpreter out.
SHORT, LONG = 500, 3500
# A line of callgrind_annotate: count, share, file:function, object.
_LINE = re.compile(r"^ *([\d,]+) \([ \d.]+%\)  (?:\S*:)?(\S+) \[(\S+)\]$", re.MULTILINE)


def available() -> bool:
    """Whether valgrind is there; says so if not."""
    if shutil.which("valgrind") is not None:
        return True
    print("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)")
    return False


def per_operation(item: str) -> int:
    """Instructions of one operation of a work item of guard_work.py."""
    return round((_total(item, LONG) - _total(item, SHORT)) / (LONG - SHORT))


def by_function(item: str) -> dict[tuple[str, str], float]:
    """Instructions of one operation by object file and function."""
    short, long = _functions(item, SHORT), _functions(item, LONG)
    return {key: (count - short[key]) / (LONG - SHORT) for key, count in long.items()}


def _total(item: str, count: int) -> int:
    with _counted(item, count) as out:
        found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{item}: callgrind counted nothing")
    return int(found[1])


def _functions(item: str, count: int) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    with _counted(item, count) as out:
        command = ["callgrind_annotate", "--threshold=100", "--auto=no", str(out)]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for number, function, path in _LINE.findall(listing):
        counts[Path(path).name.partition(".")[0], function] += int(number.replace(",", ""))
    return counts


@contextmanager
def _counted(item: str, count: int) -> Iterator[Path]:
    """Callgrind's file of a process that does an item `count` times."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable]
        done = subprocess.run(
            [*command, str(HERE / "guard_work.py"), item, str(count)],
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"{item}: {done.stderr[-2000:]}")
        yield out
