"""Running a suite: its sources in the cache, and what it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import brokerj

SECONDS = 1800
# Ends a program, and what it has started, once no one holds the other end of the standard input: nor does a
# runner that was killed.
GUARD = """\
exec 3<&0
"$@" 3<&- </dev/null & program=$!
(read -r _ <&3; kill -9 -$$) & watch=$!
wait $program; code=$?
kill $watch 2>/dev/null
exit $code
"""


def source(name: str, fetch: Callable[[], Path]) -> Path:
    """Return a copy of fetched sources, in the cache."""
    folder = brokerj.CACHE / "interop" / name
    if not folder.exists():
        # Without the bits of what cannot be written.
        shutil.copytree(fetch(), folder, copy_function=shutil.copyfile)
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
    return folder


def run(command: list[str], folder: Path, errors: int | None = None, **variables: str) -> str:
    """Run a program, whatever its exit code; returns what it prints, with its errors if asked for."""
    read, held = os.pipe()
    try:
        done = subprocess.run(
            ["sh", "-c", GUARD, "sh", *command],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=read,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(read)
        os.close(held)
    return done.stdout


def fetch(command: list[str], folder: Path) -> str:
    """Run a program that fetches or builds; returns what it prints.

    Raises:
        RuntimeError: it fails; with the end of what it printed.
    """
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout
