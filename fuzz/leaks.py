"""Ten million frames, good and bad ones mixed: nothing may be kept of them.

    python fuzz/leaks.py --frames 10000000 [--impl c|py]

Watches the resident size of the process, the blocks of the allocator, and the reference counts of what
every frame touches: classes, the dialect, None and the small objects. Ends with 1 if anything grows. The
figures of a run of a million frames or more are written to fuzz/endurance.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from report import written
from support import vectors
from support.implementation import Implementation

from amqpcodec import DIALECTS, DecodeError, EncodeError, Limits

RESULTS = Path(__file__).resolve().parent / "endurance.json"
WORTH_KEEPING = 1_000_000  # frames
PAGE = 4096


def keep(name: str, figures: dict[str, Any]) -> None:
    """Store the figures of a run for the report."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results[name] = figures | {"date": time.strftime("%Y-%m-%d")}
    RESULTS.write_text(written(results), encoding="utf-8")


def resident() -> int:
    """Octets of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE


class Work:
    """The same round of streams over and over: each holds frames of the vectors, valid and damaged."""

    def __init__(self, impl: str, dialect: str) -> None:
        self.module: ModuleType = Implementation(impl).dialect(dialect)
        numbers = random.Random(9)
        valid = [
            bytes.fromhex(vector["hex"]) for vector in vectors.vectors(dialect, "method", "header", "content")
        ]
        self.streams = [
            b"".join(self._damaged(numbers, frame) for frame in numbers.sample(valid, 40)) for _ in "12345"
        ]
        self.streams.append(b"".join(valid))
        self.decoders = [self.module.FrameDecoder(), self.module.MessageDecoder(aborted="keep")]
        self.decoders.append(
            self.module.FrameDecoder(tables="raw", strict=True, limits=Limits(table_depth=3))
        )
        self.frames = 0

    def _damaged(self, numbers: random.Random, frame: bytes) -> bytes:
        octets = bytearray(frame)
        if numbers.random() < 0.5 and len(frame) > 8 and frame[0] < 4:
            octets[numbers.randrange(7, len(frame) - 1)] ^= 1 << numbers.randrange(8)
        return bytes(octets)

    def round(self) -> None:
        for decoder in self.decoders:
            for stream in self.streams:
                decoder.reset()
                for at in range(0, len(stream), 1000):
                    decoder.feed(stream[at : at + 1000])
                    for value in self._values(decoder):
                        self._send_on(value)

    def _values(self, decoder: Any) -> Iterator[Any]:
        while True:
            try:
                for value in decoder:
                    self.frames += 1
                    yield value
                return
            except DecodeError as error:
                self.frames += 1
                if error.fatal:
                    decoder.reset()
                    return
                decoder.skip_frame()

    def _send_on(self, value: Any) -> None:
        """Encode it, and fail at it, half-way through."""
        try:
            self.module.encode(value)
            if self.frames % 16 == 0:
                self.module.encode_method(1, self.module.Queue.Declare(arguments={"k": [1, {"x": object()}]}))
        except EncodeError:
            pass

    def watched(self) -> dict[str, int]:
        """Reference counts of what all frames share."""
        shared: dict[str, Any] = {
            "dialect": self.module.DIALECT,
            "None": None,
            "empty bytes": b"",
            "empty str": "",
        }
        shared |= {cls.__name__: cls for cls in self.module.METHODS.values()}
        shared |= {cls.__name__: cls for cls in self.module.PROPERTIES.values()}
        shared |= {cls.__name__: cls for cls in (DecodeError, EncodeError, self.module.FrameDecoder)}
        return {name: sys.getrefcount(value) for name, value in shared.items()}


def measure(work: Work) -> tuple[int, int, dict[str, int]]:
    for _ in range(3):  # without a global lock, some of what one finds is free only after the next
        gc.collect()
    return sys.getallocatedblocks(), resident(), work.watched()


def check(impl: str, dialect: str, frames: int) -> dict[str, Any]:
    """Do the work; what grew.

    Raises:
        AssertionError: something grew with the number of frames.
    """
    work = Work(impl, dialect)
    # What the interpreter makes once, such as its own caches, comes to an end in the first quarter.
    while work.frames < frames // 4:
        work.round()
    measure(work)
    begun, started = work.frames, time.monotonic()
    blocks, size, counts = measure(work)
    while work.frames - begun < frames:
        work.round()
    blocks_after, size_after, counts_after = measure(work)
    done = work.frames - begun
    grown = {
        name: counts_after[name] - count for name, count in counts.items() if counts_after[name] - count > 20
    }
    assert not grown, f"references kept after {done} frames: {grown}"
    assert blocks_after - blocks < 400, f"{blocks_after - blocks} blocks kept after {done} frames"
    assert size_after - size < 4 * 1024 * 1024, f"{size_after - size} octets kept after {done} frames"
    return {
        "frames": done,
        "seconds": round(time.monotonic() - started),
        "blocks_kept": blocks_after - blocks,
        "octets_kept": size_after - size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Look for leaks.")
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--impl", choices=("c", "py"), default="c")
    given = parser.parse_args()
    share = given.frames // len(DIALECTS) + 1
    rows = [check(given.impl, dialect, share) for dialect in DIALECTS]
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    print(json.dumps(total))
    if given.frames >= WORTH_KEEPING:
        keep(f"leaks-{given.impl}", total)


if __name__ == "__main__":
    main()
