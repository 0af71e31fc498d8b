"""Running Python with a chosen build of the package; interrupting programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

# Options for what is to be interrupted: what a shell runs in the background ignores Ctrl-C, and so would what
# it starts. On Windows another process can be sent Ctrl-Break only, if it is of a group of its own.
INTERRUPTIBLE: dict[str, Any]
if sys.platform == "win32":
    INTERRUPTIBLE = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    INTERRUPTIBLE = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}


def interrupt(process: subprocess.Popen[Any]) -> None:
    """Send what Ctrl-C sends to a process that was started with `INTERRUPTIBLE`; Ctrl-Break on Windows."""
    process.send_signal(signal.CTRL_BREAK_EVENT if sys.platform == "win32" else signal.SIGINT)


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
