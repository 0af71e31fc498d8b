"""`make bench-against BASE=<revision>`: how much faster or slower is each item than at an earlier revision?

The revision is compiled in build/against, once. It and this checkout have an environment each, made of the
same interpreter. The items are those of works.py here, for both. A pair is a process of each, in which every
item is timed in turn, one right after the other, on the same core. What is printed is the median of the
ratios of the pairs, the least and the largest, and the ratio of the two fastest processes, which other work
on the machine has disturbed least. Writes build/bench-against.md.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import guard
from counting import HERE, available
from works import items

from amqpcodec.bench.comparing import markdown, nanoseconds, table

ROOT = HERE.parent
FOLDER = ROOT / "build" / "against"
TABLE = ROOT / "build" / "bench-against.md"
PAIRS = 7
MARGIN = 0.10

Answer = Mapping[str, Any]


class Ratio(NamedTuple):
    """An item of both: median nanoseconds, the ratios of the pairs, and that of the fastest processes."""

    item: str
    before: float
    now: float
    ratios: list[float]
    fastest: float

    @classmethod
    def of(cls, item: str, answers: Sequence[tuple[Answer, Answer]]) -> Ratio:
        """Return the ratios of an item, of what both said in each pair."""
        before, now = zip(*((base["seconds"], later["seconds"]) for base, later in answers), strict=True)
        pairs = [later / base for base, later in zip(before, now, strict=True)]
        return cls(item, median(before) * 1e9, median(now) * 1e9, pairs, min(now) / min(before))

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        spread = f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"
        verdict = "**SLOWER**" if self.is_slower() else ""
        times = nanoseconds(self.before), nanoseconds(self.now)
        return (self.item, *times, f"{median(self.ratios):.2f}", spread, f"{self.fastest:.2f}", verdict)

    def is_slower(self) -> bool:
        """Return whether it takes longer by more than the margin."""
        return median(self.ratios) > 1 + MARGIN


def git(*arguments: str) -> bytes:
    """Return what git says about this checkout."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench-against: git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def commit_of(revision: str) -> str:
    """Return the commit that a revision names."""
    return git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()


def compiled(commit: str) -> Path:
    """Return the folder with the sources of a commit, compiled in place; make it if it is not there."""
    folder = FOLDER / commit[:12]
    whole = folder / "compiled"
    if whole.exists():
        return folder
    print(f"Compiling {commit[:12]} in {folder.relative_to(ROOT)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "AMQPCODEC_BUILD": "require"},
        check=True,
    )
    whole.touch()
    return folder


def environment(name: str, sources: Path) -> Path:
    """Return the interpreter of an environment that imports amqpcodec from a folder.

    What else it imports is what this interpreter has.
    """
    folder = FOLDER / f"{name}-environment"
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(ask, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    Path(packages, "amqpcodec.pth").write_text(
        "\n".join([str(sources), *sys.path[1:]]) + "\n", encoding="utf-8"
    )
    ask = [str(python), "-c", "import amqpcodec; print(amqpcodec.IMPL, amqpcodec.__file__)"]
    done = subprocess.run(ask, env=_variables(), capture_output=True, encoding="utf-8", check=False)
    if done.stdout.split() != ["c", str(sources / "amqpcodec" / "__init__.py")]:
        raise SystemExit(
            f"bench-against: {sources} holds no compiled amqpcodec: {done.stdout}{done.stderr[-1000:]}"
        )
    return python


def _variables() -> dict[str, str]:
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AMQPCODEC_"))
    }
    return {**ours, "PYTHONHASHSEED": "0"}


class Process:
    """A process of works.py."""

    def __init__(self, python: Path) -> None:
        command = [str(python), str(HERE / "works.py")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            cwd=ROOT,
            env=_variables(),
        )

    def ask(self, item: str) -> Answer:
        """Return what it says about an item."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(item, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench-against: the process that timed {item!r} ended")
        found: Answer = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def pair(base: Path, now: Path, chosen: Sequence[str], *, reverse: bool) -> dict[str, tuple[Answer, Answer]]:
    """Return what a process of each says about every item, one right after the other."""
    processes = Process(base), Process(now)
    try:
        answers = {}
        for item in chosen:
            # Every other pair the other way round: whoever comes second finds another machine.
            said = {process: process.ask(item) for process in (processes[::-1] if reverse else processes)}
            answers[item] = said[processes[0]], said[processes[1]]
        return answers
    finally:
        for process in processes:
            process.close()


def shares(pairs: Sequence[Mapping[str, tuple[Answer, Answer]]], others: Mapping[str, str]) -> list[Ratio]:
    """Return what items take now, beside what others that do as much in the usual way take at the base.

    Args:
        pairs: what both said about each item.
        others: by item, the other one.
    """
    found = []
    for item, other in others.items():
        answers = [(each[other][0], each[item][1]) for each in pairs if item in each and other in each]
        if answers and not any("lacks" in said for said in answers[0]):
            found.append(Ratio.of(f"{item}, of: {other}", answers))
    return found


def ratios(pairs: Sequence[Mapping[str, tuple[Answer, Answer]]]) -> tuple[list[Ratio], list[str]]:
    """Return the items that both have, and a sentence for each of the others."""
    found, notes = [], []
    for item in pairs[0]:
        answers = [each[item] for each in pairs]
        for side, name in ((1, "this checkout"), (0, "the base")):
            if "lacks" in answers[0][side]:
                notes.append(f"{item}: {name} lacks it ({answers[0][side]['lacks']})")
                break
        else:
            if answers[0][0]["found"] != answers[0][1]["found"]:
                notes.append(f"{item}: the results differ")
            found.append(Ratio.of(item, answers))
    return found, notes


def report(
    commit: str, found: Sequence[Ratio], others: Sequence[Ratio], notes: Sequence[str], about_counts: str
) -> str:
    """Return the text that is printed and written."""
    slower = [ratio.item for ratio in found if ratio.is_slower()]
    verdict = f"**Slower: {'; '.join(slower)}.**" if slower else "Nothing is slower."
    head = ("item", "base", "now", "ratio", "of the pairs", "of the fastest", "")
    pairs = len(found[0].ratios) if found else 0
    parts = [
        f"## Against {commit[:12]}\n\n{verdict}\n",
        f"CPU time of an operation, medians of {pairs} pairs of processes; margin {MARGIN:.0%}.\n",
        markdown([head, *(ratio.cells() for ratio in found)]),
        "Now, beside another item at the base:\n",
        markdown([head[:-1], *(ratio.cells()[:-1] for ratio in others)]),
        "".join(f"- {note}\n" for note in notes),
        about_counts,
    ]
    return "\n".join(part for part in parts if part)


def instructions(sources: Path) -> tuple[str, list[str]]:
    """Return the part of the text that is about instructions, and the items that need more of them."""
    if not available():
        return "Instructions are not counted: valgrind is not installed.\n", []
    rows = guard.rows(guard.counted(), guard.counted(sources))
    note = f"Instructions of an operation in the compiled build, margin {guard.MARGIN:.0%}."
    return f"{note}\n\n{table(rows, guard.MARGIN, str)}", [
        row.work for row in rows if row.fails(guard.MARGIN)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, measure, compare, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", help="a revision of this repository")
    parser.add_argument("--item", action="append", default=[], help="only items with this in their name")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of processes")
    parser.add_argument("--instructions", action="store_true", help="count those of the guard as well")
    options = parser.parse_args(arguments)
    chosen = [name for name in items() if not options.item or any(part in name for part in options.item)]
    if not chosen or options.pairs < 1:
        parser.error("nothing to measure")
    commit = commit_of(options.base)
    sources = compiled(commit) / "src"
    base, now = environment(commit[:12], sources), environment("now", ROOT / "src")
    pairs = [pair(base, now, chosen, reverse=bool(number % 2)) for number in range(options.pairs)]
    found, notes = ratios(pairs)
    about_counts, more = instructions(sources) if options.instructions else ("", [])
    others = {item: how.share_of for item, how in items().items() if how.share_of}
    text = report(commit, found, shares(pairs, others), notes, about_counts)
    TABLE.write_text(text, encoding="utf-8")
    print(text)
    return 1 if more or any(ratio.is_slower() for ratio in found) else 0


if __name__ == "__main__":
    sys.exit(main())
