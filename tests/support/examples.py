"""The programs of `examples/` as modules; the broker that they are run beside."""

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
def serving(build: str) -> Iterator[tuple[int, Path]]:
    """Run `python -m amqpcodec.testing` on a port of its own; the port, and where its errors and log go.

    Args:
        build: ``"c"`` or ``"py"``: the build of the package that it uses.
    """
    environment = {**os.environ, "AMQPCODEC_IMPL": build, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "error", "-m", "amqpcodec.testing", "--port", "0"]
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
                raise RuntimeError(f"the broker does not start: {log.read_text(encoding='utf-8')}")
            yield int(port), log
        finally:
            interrupt(process)
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()
                process.stdout.close()
    if process.returncode != 0 and os.name != "nt":  # Ctrl-Break, which is not its own, ends it at once
        raise RuntimeError(f"the broker has ended with {process.returncode}")
