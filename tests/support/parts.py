"""Captures read in parts: their rows, where they may be cut, and some that lack packets."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from amqpcodec import capture
from support import make_capture as make

Rows = list[dict[str, Any]]


def rows_of(batches: Iterable[Any]) -> Rows:
    """Return the rows of batches, in order."""
    return [row for batch in batches for row in batch.to_pylist()]


def size_of(octets: bytes) -> int:
    """Return how many octets a capture has, decompressed where it is compressed."""
    with capture.ByteSource(io.BytesIO(octets)) as source:
        while source.read(1 << 16):
            pass
        return source.offset


def disturbed(seed: int) -> list[make.Recorded]:
    """Return packets of conversations, some out of order, twice or lost."""
    truth = make.conversations(seed, count=3, bursts=16, opening=seed % 2 == 0)
    packets, _ = make.disturb(truth.packets, seed, reorder=0.1, duplicate=0.1, loss=0.05 * (seed % 3))
    return packets[seed % 7 :]  # so that some begin inside a frame
