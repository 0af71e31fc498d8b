"""Lines on standard error for whoever waits while very many files are planned."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

Done = TypeVar("Done")

LONG = 1.0  # seconds: what takes less is not worth a line


def shown(done: Iterable[Done], count: int, what: str) -> Iterator[Done]:
    """Pass on what is done, and say every second how many of all that are.

    Args:
        done: results, in turn.
        count: how many there will be.
        what: the end of the line, such as ``"files looked at"``.
    """
    due = monotonic() + LONG
    for number, each in enumerate(done, 1):
        if monotonic() >= due:
            say(f"{number:,} of {count:,} {what}")
            due = monotonic() + LONG
        yield each


def say(text: str) -> None:
    """Write a line, in the log of the driver."""
    print(f"amqp: {text}", file=sys.stderr, flush=True)
