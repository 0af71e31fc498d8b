"""Decode many deliveries in chunks and print the peak memory before and after, as JSON.

Usage: memory.py {c|py} COUNT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import corpus

from amqpcodec._backend import load

BLOCK = 1000  # deliveries that are made once and fed over and over, so that the input itself stays small
CHUNK = 65536
STATUS = Path("/proc/self/status")


def peak() -> int:
    """The most memory the process has had, in octets.

    Linux hands ru_maxrss of a parent on to the program it starts, so the kernel's own mark is read there.
    """
    if STATUS.exists():
        line = next(
            line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:")
        )
        return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak() -> None:
    """Let the kernel's mark start from what the process uses now; elsewhere it stays as it is."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def main(impl: str, count: int) -> None:
    """Feed COUNT deliveries, rounded up to whole blocks."""
    amqp = load("amqpcodec._generated.rabbitmq", impl)
    chunks = corpus.chunks(corpus.delivery_stream(corpus.varied(256, BLOCK)), CHUNK)
    decoder = amqp.MessageDecoder()
    forget_peak()
    start = peak()
    messages = 0
    for _ in range(-(-count // BLOCK)):
        for chunk in chunks:
            for _message in decoder.feed(chunk):
                messages += 1
    print(json.dumps({"messages": messages, "start": start, "peak": peak()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
