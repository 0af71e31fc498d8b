"""Running Python with a chosen build of the package."""

from __future__ import annotations

import os
import subprocess
import sys


def python(*arguments: str, impl: str | None, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the interpreter with this process's import path.

    Args:
        arguments: what follows the interpreter.
        impl: the value of AMQPCODEC_IMPL; None to leave it unset.
        stdin: what it may read.
    """
    environment = {key: value for key, value in os.environ.items() if key != "AMQPCODEC_IMPL"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    if impl is not None:
        environment["AMQPCODEC_IMPL"] = impl
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )


def output(*arguments: str, impl: str | None, stdin: bytes = b"") -> bytes:
    """The same, for programs that must not fail."""
    finished = python(*arguments, impl=impl, stdin=stdin)
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout
