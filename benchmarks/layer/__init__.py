"""Clients of the client layer's benchmark, each run in a process of its own that prints a line of JSON.

A module has ``publish(url, queue, count, clock)`` and ``consume(url, queue, count, clock)``. Publishing waits
for confirms, with at most `WINDOW` outstanding. Consuming acknowledges every message, with at most `PREFETCH`
unsettled, and compares each with what was published. What opens and closes the connection is not within the
clock.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from support.clients.samples import CONTENT_TYPE, Clock, Sample, sample

WINDOW = 128
PREFETCH = 200
TRANSIENT = 1  # delivery mode
Message = tuple[bytes, dict[str, Any], str, int]  # body, headers, message id, timestamp


def messages(count: int) -> Iterator[Message]:
    """Return messages to publish, made before the clock runs; each client makes its own properties."""
    made = map(sample, range(count))
    return _kept([(each.body, each.headers, each.message_id, each.seconds) for each in made])


def expected(count: int) -> Iterator[Sample]:
    """Return the messages that have to arrive, made before the clock runs."""
    return _kept([sample(number) for number in range(count)])


def _kept(made: list[Any]) -> Iterator[Any]:
    """The same, out of the garbage collector's sight: no program has all its messages at once."""
    gc.freeze()
    return iter(made)


__all__ = ["CONTENT_TYPE", "PREFETCH", "TRANSIENT", "WINDOW", "Clock", "Message", "expected", "messages"]
