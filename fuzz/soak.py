"""Random streams through decoder, encoder and decoder again, in random chunks: nothing lost, nothing grown.

    python fuzz/soak.py --minutes 60

Streams of messages and methods on many channels, woven into each other, with content of all sizes; every
dialect and both builds in turn. Ends with 1 at the first difference, or if the process has grown. The
figures of a run of ten minutes or more are written to fuzz/endurance.json.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from leaks import keep, resident
from structured import Builder
from support.implementation import Implementation, wanted
from support.outcomes import describe

from amqpcodec import DIALECTS, EncodeError

WORTH_KEEPING = 10  # minutes
MOST_GROWTH = 32 * 1024 * 1024


class Stream:
    """Frames of several channels woven into one stream, and what they say, channel by channel."""

    def __init__(self, module: ModuleType, numbers: random.Random) -> None:
        self.module = module
        self.numbers = numbers
        self.frame_max = numbers.choice((4096, 300, 64, 131072))
        self.content = {ids: cls for ids, cls in module.METHODS.items() if cls.spec.content}
        channels = [list(self._channel(channel)) for channel in range(1, numbers.randint(2, 6))]
        self.octets = b"".join(self._woven(channels))

    def _channel(self, channel: int) -> Iterator[bytes]:
        """The frames of one channel, each on its own."""
        for _ in range(self.numbers.randint(1, 6)):
            build = Builder(self.numbers.randbytes(self.numbers.randint(10, 300)))
            try:
                if self.numbers.random() < 0.6:
                    method = build.record(self.content)
                    properties = build.record({0: self.module.PROPERTIES[method.spec.class_id]})
                    body = self.numbers.randbytes(self.numbers.choice((0, 1, 50, 3000, 200_000)))
                    octets = self.module.encode_message(
                        channel, method, properties, body, frame_max=self.frame_max
                    )
                else:
                    method = build.record(self._plain())
                    octets = self.module.encode_method(channel, method, frame_max=self.frame_max)
            except EncodeError:
                continue  # the builder also makes values that cannot be sent
            yield from cut_into_frames(octets)

    def _plain(self) -> dict[Any, Any]:
        return {ids: cls for ids, cls in self.module.METHODS.items() if not cls.spec.content}

    def _woven(self, channels: list[list[bytes]]) -> Iterator[bytes]:
        while channels:
            frames = self.numbers.choice(channels)
            if frames:
                yield frames.pop(0)
            else:
                channels.remove(frames)
            if self.numbers.random() < 0.1:
                yield self.module.encode_heartbeat()

    def chunks(self) -> Iterator[bytes]:
        at, most = 0, self.numbers.choice((3, 50, 2000, 70_000))
        while at < len(self.octets):
            size = self.numbers.randint(1, most)
            yield self.octets[at : at + size]
            at += size


def cut_into_frames(octets: bytes) -> Iterator[bytes]:
    while octets:
        size = 8 + int.from_bytes(octets[3:7], "big")
        yield octets[:size]
        octets = octets[size:]


def pass_through(stream: Stream, tables: str) -> tuple[int, int]:
    """Decode, encode and decode again; the numbers of octets and of values."""
    module = stream.module
    first = module.MessageDecoder(frame_max=0, tables=tables, body=stream.numbers.choice(("bytes", "chunks")))
    second = module.MessageDecoder(frame_max=0, tables=tables)
    values, again = [], []
    for chunk in stream.chunks():
        for value in first.feed(chunk):
            try:
                octets = module.encode(value, frame_max=stream.numbers.choice((stream.frame_max, 2**31)))
            except EncodeError:
                if tables == "raw":
                    raise
                continue  # a Python value may be one that no tag carries, such as a time beyond 2**63
            values.append(value)
            again += second.feed(octets)
    assert first.pending == second.pending == 0
    assert first.offset == len(stream.octets)
    for value in values:
        if type(value).__name__ == "Message" and isinstance(value.body, list):
            value.body = b"".join(value.body)
    assert [describe(value) for value in values] == [describe(value) for value in again]
    return len(stream.octets), len(values)


def rounds(seed: int) -> Iterator[tuple[int, int]]:
    """Every build and dialect, again and again."""
    numbers = random.Random(seed)
    while True:
        for name in DIALECTS:
            for impl in wanted():
                stream = Stream(Implementation(impl).dialect(name), numbers)
                yield pass_through(stream, "raw" if numbers.random() < 0.7 else "dict")


def soak(seconds: float, seed: int) -> dict[str, int]:
    """Go on for that long.

    Raises:
        AssertionError: something was lost or changed, or the process has grown.
    """
    begun, figures = time.monotonic(), {"streams": 0, "octets": 0, "values": 0}
    size = 0
    for octets, values in rounds(seed):
        figures["streams"] += 1
        figures["octets"] += octets
        figures["values"] += values
        passed = time.monotonic() - begun
        if not size and passed > seconds / 10:
            size = resident()
        if passed > seconds:
            break
    figures |= {"seconds": round(seconds), "octets_grown": resident() - size}
    assert figures["octets_grown"] < MOST_GROWTH, figures
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Soak the codec.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else time.time_ns() % 2**32
    print(f"seed {seed}", flush=True)
    figures = soak(given.minutes * 60, seed) | {"seed": seed}
    print(json.dumps(figures))
    if given.minutes >= WORTH_KEEPING:
        keep("soak", figures)


if __name__ == "__main__":
    main()
