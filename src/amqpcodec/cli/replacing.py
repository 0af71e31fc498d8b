"""Writing a file such that its name never stands for a part of it."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Gives the name of a new, empty file beside `path`, which takes its place when the block has ended.

    If the block is left by an exception, an interrupt among them, the new file is removed and what was at
    `path` stays.

    Raises:
        OSError: the file cannot be made, or not put in its place.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    part = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with open(part, "xb"):
            pass
        yield part
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.remove(part)
        raise


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Lets SIGTERM leave the block by `SystemExit`, with the exit code that a shell gives it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
