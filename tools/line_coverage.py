"""Measures which lines of Python and of Cython the tests run, and prints one table.

    python tools/line_coverage.py [--workers N] [--report] [PATH ...]

The package is laid out in build/coverage/lib, with its modules compiled once more without optimization; the
build in src is not touched. The tests of the paths (all by default) run on that. coverage.py counts lines of
Python, of both builds. The C compiler counts lines of Cython (gcov), since Cython can write which line each
part of the C is of. A module that Cython makes of the text of `X_py.py` is listed as `X_c.py`.

build/coverage/html has a page for each Python file, and cython.txt, which lists the Cython lines that were
not run. Ends with 1 if a test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "build" / "coverage"
STAGE = BASE / "cython"
LIB = BASE / "lib"
HTML = BASE / "html"
LEAST = 10  # files that are named


@dataclass(frozen=True)
class File:
    """How much of one source the tests run."""

    name: str
    lines: int
    covered: int

    @property
    def missing(self) -> int:
        """Lines that no test runs."""
        return self.lines - self.covered

    @property
    def percent(self) -> float:
        """The share of lines that tests run; a file without lines is covered."""
        return 100 * self.covered / self.lines if self.lines else 100.0


def build() -> None:
    """Lay out the package, and compile its modules to count their lines, as far as sources have changed."""
    from setuptools import setup

    sys.path.insert(0, str(ROOT / "src"))
    from amqpcodec import _build

    stage = STAGE.relative_to(ROOT)
    modules = _build.extensions("amqpcodec", source=Path("src"), stage=stage, emit_linenums=True, quiet=True)
    for module in modules:
        module.extra_compile_args = ["-O0", "-g0", "-w", "--coverage"]
        module.extra_link_args = ["--coverage"]
    command = ["-q", "build", "--build-base", str(BASE), "--build-lib", str(LIB)]
    setup(ext_modules=modules, script_args=[*command, "build_ext", "--parallel", str(os.cpu_count())])


def settings() -> Path:
    """Write the settings of coverage.py; the file. Programs that tests start elsewhere find it as well."""
    path = BASE / "python.ini"
    path.write_text(
        "[run]\ncore = ctrace\npatch = subprocess\nparallel = true\n"
        f"data_file = {BASE / 'data' / 'python'}\nsource = {LIB / 'amqpcodec'}\n",
        encoding="utf-8",
    )
    return path


def run(workers: str, paths: Iterable[str]) -> int:
    """Run tests and keep which lines they ran; what pytest ended with."""
    shutil.rmtree(BASE / "data", ignore_errors=True)
    (BASE / "data").mkdir(parents=True)
    for counts in BASE.rglob("*.gcda"):
        counts.unlink()
    environment = dict(os.environ)
    # What a build with sanitizers cannot keep, such as the depth of small stacks, this one cannot either.
    environment["AMQPCODEC_SANITIZED"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (LIB, ROOT / "tests")))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings()}", "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", "--numprocesses", workers, "--dist", "loadfile"]
    command += ["--no-loadscope-reorder", *paths]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def python_files() -> list[File]:
    """The Python files, by the data of the last run; writes a page for each."""
    import coverage

    together = BASE / "data" / "all"
    together.unlink(missing_ok=True)
    measured = coverage.Coverage(data_file=str(together), config_file=False)
    measured.combine([str(path) for path in (BASE / "data").glob("python*")], keep=True)
    measured.html_report(directory=str(HTML / "python"), title="amqpcodec: Python lines that tests run")
    report = BASE / "python.json"
    measured.json_report(outfile=str(report))
    found = []
    for name, figures in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        totals = figures["summary"]
        path = (ROOT / name).relative_to(LIB)
        found.append(File(str(path), totals["num_statements"], totals["covered_lines"]))
    return found


def cython_files() -> list[File]:
    """The Cython files, by the counts of the last run; lists the lines that were not run."""
    counts: dict[str, dict[int, int]] = {}
    for notes in sorted(BASE.rglob("*_c.gcno")):
        command = ["gcov", "--json-format", "--stdout", str(notes)]
        done = subprocess.run(command, cwd=STAGE, check=True, capture_output=True, encoding="utf-8")
        for source in json.loads(done.stdout)["files"]:
            if source["file"].endswith(("_c.py", "_c.pyx")):
                lines = counts.setdefault(source["file"], {})
                for line in source["lines"]:
                    lines[line["line_number"]] = max(lines.get(line["line_number"], 0), line["count"])
    HTML.mkdir(parents=True, exist_ok=True)
    missed = {
        name: [line for line, ran in sorted(lines.items()) if not ran] for name, lines in counts.items()
    }
    listing = "".join(f"{name}: {', '.join(map(str, lines))}\n" for name, lines in missed.items() if lines)
    (HTML / "cython.txt").write_text(listing, encoding="utf-8")
    return [File(name, len(lines), len(lines) - len(missed[name])) for name, lines in counts.items()]


def table(found: dict[str, list[File]]) -> str:
    """The totals, and the files of each kind that have the smallest share of their lines run."""
    out = [f"{'':<48}{'lines':>7}{'not run':>9}{'%':>7}"]
    for kind, files in found.items():
        out.append(_row(File(f"{kind} lines", sum(f.lines for f in files), sum(f.covered for f in files))))
    for kind, files in found.items():
        out += ["", f"Least covered of {kind}"]
        least = sorted(files, key=lambda file: (file.percent, file.name))[:LEAST]
        out += [_row(file) for file in least if file.missing]
    return "\n".join(out)


def _row(file: File) -> str:
    return f"{file.name:<48}{file.lines:>7}{file.missing:>9}{file.percent:>7.1f}"


def main(arguments: Sequence[str]) -> int:
    """Build, test, report."""
    parser = argparse.ArgumentParser(description="Lines of Python and of Cython that the tests run.")
    parser.add_argument("--workers", default="auto", help="processes of tests")
    parser.add_argument("--report", action="store_true", help="only report the last run")
    parser.add_argument("paths", nargs="*", help="the tests to run; all by default")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    ended = 0
    if not options.report:
        build()
        ended = run(options.workers, options.paths)
    shutil.rmtree(HTML, ignore_errors=True)
    print(table({"Python": python_files(), "Cython": cython_files()}))
    print(f"\nThe pages are in {HTML.relative_to(ROOT)}")
    return int(ended != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
