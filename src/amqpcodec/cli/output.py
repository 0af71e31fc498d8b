"""Writing to standard output and standard error, such that a failure is blamed on the right one."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class OutputError(Exception):
    """Standard output takes no more; the text is the reason. No `OSError`, since those are about input."""


class _Closed(io.TextIOBase):
    """A stream that was closed before the command began; Python has None for it."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def stand_in() -> None:
    """Have a stream in place of standard output, or standard error, where there is none."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = _Closed()


@contextmanager
def blaming_output() -> Iterator[None]:
    """Makes an error in the block one of the output; a reader that went away stays a `BrokenPipeError`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.strerror or str(error)) from error


def flush() -> None:
    """Write what is buffered.

    Raises:
        OutputError: it cannot be written.
        BrokenPipeError: nobody reads it any more.
    """
    with blaming_output():
        sys.stdout.flush()


def discard(stream: TextIO) -> None:
    """Send what is still buffered, and what may come, to nowhere: it must not fail again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(text: str) -> None:
    """One line for the user on standard error; whether it gets there changes nothing."""
    try:
        print(f"amqpcodec: {text}", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)
