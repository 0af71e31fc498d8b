"""Measures which lines of Python and of Cython the tests run, and prints one table.

    python tools/line_coverage.py [--workers N] [--whole] [--report] [python] [cython]

Python lines are those of src/amqpcodec, of both builds, under the whole default run of the tests. Cython
lines are those of the modules of the compiled build. These are compiled once more, with tracing of lines, in
build/coverage; the build in src is not touched. A traced build is slow, so some tests run on it, or all with
`--whole`.
A module that Cython makes of the text of `X_py.py` is listed as `X_c.py`.

The HTML report is build/coverage/html/index.html. Ends with 1 if a test fails.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "build" / "coverage"
STAGE = BASE / "cython"
LIB = BASE / "lib"
# The folders of tests whose subject is compiled.
COMPILED = ("codec", "capture", "arrow", "connection", "compat", "stats")
PLUGIN = "Cython.Coverage"
LEAST = 10


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
    """Compile the modules that trace their lines, as far as their sources have changed."""
    from setuptools import setup

    sys.path.insert(0, str(ROOT / "src"))
    from amqpcodec import _build

    modules = _build.extensions(
        "amqpcodec",
        source=Path("src"),
        stage=STAGE.relative_to(ROOT),
        # The plugin finds lines by the comments in the C.
        compiler_directives={"linetrace": True, "emit_code_comments": True},
        quiet=True,
    )
    for module in modules:
        module.extra_compile_args = ["-O0", "-g0", "-w"]
        module.define_macros = [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
    command = ["-q", "build", "--build-base", str(BASE), "--build-lib", str(LIB)]
    setup(ext_modules=modules, script_args=[*command, "build_ext", "--parallel", str(os.cpu_count())])


def settings(kind: str) -> Path:
    """Write the settings of coverage.py for one kind of lines; the file.

    Absolute paths serve the programs that tests start in other folders.
    """
    chosen = [f"source = {ROOT / 'src' / 'amqpcodec'}"]
    if kind == "cython":
        chosen = [f"plugins = {PLUGIN}", f"include = {STAGE}/*"]
    path = BASE / f"{kind}.ini"
    common = ["[run]", "core = ctrace", "patch = subprocess", "parallel = true"]
    path.write_text("\n".join([*common, f"data_file = {BASE / 'data' / kind}", *chosen, ""]))
    return path


def run(kind: str, workers: str, paths: Iterable[str]) -> int:
    """Run tests and keep which lines they ran; what pytest ended with."""
    data = BASE / "data"
    data.mkdir(parents=True, exist_ok=True)
    for old in data.glob(f"{kind}*"):
        old.unlink()
    environment = dict(os.environ)
    # What a build with sanitizers cannot keep, such as the depth of small stacks, a traced one cannot either.
    environment["AMQPCODEC_SANITIZED"] = "1"
    if kind == "cython":
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (LIB, ROOT / "tests")))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings(kind)}", "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", "--numprocesses", workers, "--dist", "loadfile"]
    command += ["--no-loadscope-reorder", *paths]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def measured(kinds: Sequence[str]) -> dict[str, list[File]]:
    """The files of each kind of lines, from the data of the last runs. Writes the HTML report as well."""
    import coverage

    together = BASE / "data" / "all"
    together.unlink(missing_ok=True)
    summary = coverage.Coverage(data_file=str(together), config_file=False)
    summary.set_option("run:plugins", [PLUGIN])
    summary.combine([str(path) for kind in kinds for path in (BASE / "data").glob(f"{kind}*")], keep=True)
    if "cython" in kinds:
        sources = [str(path) for path in STAGE.rglob("*_c.py*") if path.suffix in (".py", ".pyx")]
        # Modules that no test loads have no line that is run.
        summary.get_data().touch_files(sources, f"{PLUGIN}.Plugin")
    shutil.rmtree(BASE / "html", ignore_errors=True)
    summary.html_report(directory=str(BASE / "html"), title="amqpcodec: lines that tests run")
    summary.json_report(outfile=str(BASE / "coverage.json"))
    files: dict[str, Any] = json.loads((BASE / "coverage.json").read_text())["files"]
    found: dict[str, list[File]] = {kind: [] for kind in kinds}
    for name, figures in files.items():
        path = ROOT / name
        kind, folder = ("cython", STAGE) if path.is_relative_to(STAGE) else ("python", ROOT / "src")
        totals = figures["summary"]
        file = File(str(path.relative_to(folder)), totals["num_statements"], totals["covered_lines"])
        found[kind].append(file)
    return found


def table(found: dict[str, list[File]]) -> str:
    """The totals, and the files of each kind that have the smallest share of their lines run."""
    heading = f"{'':<48}{'lines':>7}{'not run':>9}{'%':>7}"
    out = [heading]
    for kind, files in found.items():
        total = File(f"{kind.title()} lines", sum(f.lines for f in files), sum(f.covered for f in files))
        out.append(_row(total))
    for kind, files in found.items():
        out += ["", f"Least covered of {kind.title()}"]
        least = sorted(files, key=lambda file: (file.percent, file.name))[:LEAST]
        out += [_row(file) for file in least if file.missing]
    return "\n".join(out)


def _row(file: File) -> str:
    return f"{file.name:<48}{file.lines:>7}{file.missing:>9}{file.percent:>7.1f}"


def main(arguments: Sequence[str]) -> int:
    """Build, test, report."""
    parser = argparse.ArgumentParser(description="Lines of Python and of Cython that the tests run.")
    parser.add_argument("--workers", default="auto", help="processes of tests")
    parser.add_argument("--whole", action="store_true", help="all tests on the traced build as well")
    parser.add_argument("--report", action="store_true", help="only report the last runs")
    parser.add_argument("kinds", nargs="*", choices=("python", "cython", []), help="both by default")
    options = parser.parse_args(arguments)
    kinds = options.kinds or ["python", "cython"]
    os.chdir(ROOT)
    ended = []
    if not options.report:
        if "cython" in kinds:
            build()
        for kind in kinds:
            some = kind == "cython" and not options.whole
            ended.append(run(kind, options.workers, [f"tests/{name}" for name in COMPILED] if some else []))
    print(table(measured(kinds)))
    print(f"\nThe HTML report is {(BASE / 'html' / 'index.html').relative_to(ROOT)}")
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
