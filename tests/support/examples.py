"""The programs of `examples/`: as modules, and as processes that serve."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from support.subprocesses import INTERRUPTIBLE, interrupt

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
STOP_SECONDS = 20


def example(name: str) -> ModuleType:
    """An example as a module, which may import others of its folder."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


@contextmanager
def serving(name: str, build: str, *arguments: str) -> Iterator[tuple[int, Path]]:
    """Run an example that listens on a port of its own; the port, and where its errors and log go.

    Args:
        name: the example.
        build: ``"c"`` or ``"py"``: the build of the package that it uses.
        arguments: further ones.
    """
    environment = {**os.environ, "AMQPCODEC_IMPL": build, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), "--port", "0", *arguments]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                **INTERRUPTIBLE,
            )
        assert process.stdout is not None
        try:
            port = process.stdout.readline().decode().rpartition(":")[2]
            if not port:
                raise RuntimeError(f"{name} does not start: {log.read_text(encoding='utf-8')}")
            yield int(port), log
        finally:
            interrupt(process)
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()
                process.stdout.close()
    if (
        process.returncode != 0 and os.name != "nt"
    ):  # Ctrl-Break, which is not that of the example, ends it at once
        raise RuntimeError(f"{name} has ended with {process.returncode}")
