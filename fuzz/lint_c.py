"""Compiles the C of the kernel with every warning on; fails on those that our own sources cause.

    python fuzz/lint_c.py

The C that Cython makes of any program, such as its module set-up, is not clean under -Wconversion, and
nothing here could make it so. With `#line` directives the compiler names the line of our source for each
statement made of one; a warning that names the generated file is Cython's own and is counted, not reported.
Cython's warnings about our sources are errors here as well.
"""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "lint-c"
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wsign-compare",
    "-Wno-unused-parameter",
    "-Wno-cast-function-type",
]
_WARNING = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.*)$", re.MULTILINE)


def make_c() -> list[Path]:
    """The C sources of the kernel with `#line` directives, in a folder of their own."""
    from Cython.Compiler import Options

    sys.path.insert(0, str(ROOT / "src"))
    from amqpcodec import _build

    Options.warning_errors = True
    modules = _build.extensions(
        "amqpcodec", source=ROOT / "src", stage=STAGE, emit_linenums=True, force=True, quiet=True
    )
    return [Path(source) for module in modules for source in module.sources]


def warnings_of(source: Path) -> list[tuple[str, int, str]]:
    """What the compiler says of one C source: file, line, text."""
    include = sysconfig.get_paths()["include"]
    # The generated dialects are alike, and take half the time so.
    level = "-O1" if "_generated" in source.parts else "-O2"
    command = [
        shutil.which("gcc") or "cc",
        level,
        "-fPIC",
        *WARNINGS,
        "-isystem",
        include,
        "-S",
        "-o",
        "/dev/null",
    ]
    done = subprocess.run(
        [*command, str(source)], capture_output=True, encoding="utf-8", check=False, cwd=ROOT
    )
    found = [(w["file"], int(w["line"]), w["text"]) for w in _WARNING.finditer(done.stderr)]
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return found


def main() -> int:
    """Print our warnings; how many there are decides the exit code."""
    with ThreadPoolExecutor(2) as pool:
        found = [warning for each in pool.map(warnings_of, make_c()) for warning in each]
    ours = {warning for warning in found if Path(warning[0]).suffix in (".py", ".pyx", ".pxd")}
    for file, line, text in sorted(ours):
        print(f"{file}:{line}: {text}")
    kinds = collections.Counter(text.rpartition("[")[2].rstrip("]") for *_, text in found)
    print(f"{len(ours)} warnings of ours, {len(found) - len(ours)} in what Cython adds: {dict(kinds)}")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
