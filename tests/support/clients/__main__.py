"""``python -m support.clients CLIENT publish|consume URL QUEUE COUNT``: prints a line of JSON."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from itertools import zip_longest
from typing import Any

from . import SAMPLED, UVLOOP
from .samples import Clock, Sample, samples
from .sampling import SamplingClock


def main(name: str, action: str, url: str, queue: str, count: int) -> None:
    """Do it, and print CPU time a message, what `amqpcodec.compat` says of itself, and shares of functions.

    Raises:
        AssertionError: something else arrived than was sent.
    """
    client = import_module(f"{__package__}.on_{name}")
    if os.environ.get(UVLOOP):
        import_module("uvloop").install()
    clock = SamplingClock() if os.environ.get(SAMPLED) else Clock()
    if action == "publish":
        client.publish(url, queue, list(samples(count)), clock)
    else:
        compare(client.consume(url, queue, count, clock), count)
    shares = clock.shares() if isinstance(clock, SamplingClock) else {}
    print(json.dumps({"microseconds": clock.seconds * 1e6 / count, "status": status(), "shares": shares}))


def compare(received: list[Sample], count: int) -> None:
    """Every message has arrived once, in order, with its body and headers."""
    for number, (found, sent) in enumerate(zip_longest(received, samples(count))):
        if found != sent:
            raise AssertionError(f"message {number} is {found!r:.300}, not {sent!r:.300}")


def status() -> dict[str, Any]:
    """What is replaced in this process, and how often it fell back; empty if nothing was asked for."""
    compat = sys.modules.get("amqpcodec.compat")
    if compat is None:
        return {}
    return {
        name: {
            "active": found.active,
            "why": found.why,
            "fast": found.fast,
            "fallbacks": dict(found.fallbacks),
            "stock": dict(found.stock),
        }
        for name, found in compat.status().items()
        if found.wanted
    }


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))  # type: ignore[call-arg]
