"""The command `amqpcodec record` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.subprocesses import INTERRUPTIBLE, interrupt

SOURCES = Path(__file__).resolve().parents[2] / "src"


@contextmanager
def recording(*arguments: object, code: int = 0, build: str = "") -> Iterator[tuple[int, list[str]]]:
    """Run the command on a port of its own; that port, and what it has said once it is over.

    Args:
        arguments: of the command.
        code: its exit code.
        build: of the package that it uses, ``"c"`` or ``"py"``; empty for the usual one.
    """
    said: list[str] = []
    process = subprocess.Popen(
        [sys.executable, "-m", "amqpcodec", "record", "--listen", "127.0.0.1:0", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(SOURCES), "AMQPCODEC_IMPL": build},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        **INTERRUPTIBLE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().rpartition(":")[2]
        assert port, process.communicate()
        yield int(port), said
        interrupt(process)
        said += process.communicate(timeout=30)
        assert process.returncode == code, said
    finally:
        process.kill()
        process.communicate()
