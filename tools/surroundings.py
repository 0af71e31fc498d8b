"""Runs the first tier of tests in other surroundings, and prints a table of what came of it.

    python tools/surroundings.py [--workers N] [NAME ...]

Each run has several surroundings at once, for the time it takes; with names, a single run has those alone.
"""

import argparse
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
USER: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}

# What each is, by name.
SURROUNDINGS = {
    "interrupts": "SIGINT is ignored, as in a script's background",
    "folder": "TMPDIR is long, with a space and a letter that is not ASCII",
    "locale": "LC_ALL is C",
    "user": "not as root",
    "cache": "without pytest's cache",
    "path": "the interpreter's path has ..",
    "workers": "in 8 processes",
    "order-1": "files in a random order",
    "order-2": "files in another",
    "order-3": "files in a third",
}
RUNS = (
    ("interrupts", "folder", "locale", "path", "order-1"),
    ("user", "cache", "order-2"),
    ("workers", "order-3"),
)


def for_anyone(folder: Path) -> str:
    """Return an interpreter that any user may run, with what this one has: root's may be out of reach."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for each in (sys.executable, *(os.path.join(place, name) for place in os.get_exec_path())):
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([each, "-m", "venv", "--without-pip", folder], **USER, check=True)
            modules = f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n"
            next(folder.glob("lib/*/site-packages"), folder).joinpath("all.pth").write_text(modules, "utf-8")
            return str(folder / "bin" / "python")
    raise SystemExit(f"no {name} here may be run by a user that is not root")


def run(names: tuple[str, ...], workers: str) -> tuple[int, str]:
    """Run the tests in those surroundings; what pytest ended with, and its last line."""
    python, environment, options = sys.executable, {**os.environ}, ["--dist", "loadfile"]
    started: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o777)
        for name in names:
            match name.partition("-"):
                case ("interrupts", _, _):
                    started["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
                case ("folder", _, _):
                    folder = Path(scratch, "a long folder é " + "x" * 60)
                    folder.mkdir()
                    environment["TMPDIR"] = str(folder)
                case ("locale", _, _):
                    environment["LC_ALL"] = "C"
                case ("user", _, _) if os.getuid() == 0:
                    started |= USER
                    environment["HOME"] = environment["TMPDIR"] = scratch
                    python = for_anyone(Path(scratch, "venv"))
                case ("cache", _, _):
                    options += ["-p", "no:cacheprovider"]
                case ("path", _, _):
                    at = Path(python)
                    python = os.path.join(at.parent, os.pardir, at.parent.name, at.name)
                case ("workers", _, _):
                    workers = "8"
                case ("order", _, seed):
                    environment["AMQPCODEC_TESTS_ORDER"] = seed
        command = [
            python,
            "-m",
            "pytest",
            "-q",
            "--numprocesses",
            workers,
            "--no-loadscope-reorder",
            *options,
        ]
        done = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, encoding="utf-8", **started
        )
        last = ""
        for line in done.stdout or ():
            print(line, end="", flush=True)
            last = line.strip() or last
        return done.wait(), last


def main() -> int:
    """Run what is asked for; 1 if a test failed anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="auto")
    parser.add_argument("names", nargs="*", choices=[[], *SURROUNDINGS], metavar="NAME")
    asked = parser.parse_args()
    table, failed = [], False
    for names in [tuple(asked.names)] if asked.names else RUNS:
        began = time.monotonic()
        ended, last = run(names, asked.workers)
        failed |= ended != 0
        table.append(f"{'ok' if ended == 0 else 'FAILED':7} {time.monotonic() - began:5.0f} s  {last}")
        table += [f"{'':17}{SURROUNDINGS[name]}" for name in names]
    print("\n".join(table))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
