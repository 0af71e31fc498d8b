"""Captures to columns: both builds give equal batches, whatever is in the file."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support import make_chaos as chaos
from support.implementation import wanted
from support.tiers import few

from amqpcodec import AmqpError, arrow

ROOT = Path(__file__).parents[2]
TABLES = ("frames", "methods", "messages", "connections", "errors", "packets")
CAPTURES = [
    *sorted((ROOT / "examples").glob("*.pcap")),
    *sorted((ROOT.parent / "shared/captures").glob("*.pcap")),
]
SEEDS = range(int(os.environ.get("AMQPCODEC_CHAOS_SEEDS", "8")))
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"port": None},
    {"out_of_order_bytes": 2000, "out_of_order_segments": 5},
    {"flow_timeout": 0.5},
)


def _batches(impl: str, octets: bytes, table: str, **options: Any) -> list[Any]:
    """Batches, the error that ended them, and the faults counted."""
    found: list[Any] = []
    reader = arrow.read_capture(io.BytesIO(octets), table, batch_rows=50, _impl=impl, **options)
    try:
        found.extend(reader)
    except AmqpError as error:
        found.append((type(error), str(error)))
    return [*found, reader.faults]


def _assert_same(octets: bytes, **options: Any) -> int:
    if len(wanted()) < 2:
        pytest.skip("the compiled build is left out")
    rows = 0
    for table in TABLES:
        compiled, pure = (_batches(impl, octets, table, **options) for impl in ("c", "py"))
        assert len(compiled) == len(pure)
        for one, other in zip(compiled, pure, strict=True):
            assert one == other or one.equals(other), (table, options)
        rows += sum(getattr(batch, "num_rows", 0) for batch in pure)
    return rows


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_recorded_captures(path: Path) -> None:
    assert _assert_same(path.read_bytes()) > 10


@pytest.mark.parametrize("seed", few(SEEDS, 4, "further seeds"))
def test_captures_in_which_everything_happens(seed: int) -> None:
    _assert_same(chaos.capture(seed), **OPTIONS[seed % len(OPTIONS)])


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_the_frames_that_were_sent(seed: int) -> None:
    truth = make.conversations(seed)
    packets, _ = make.disturb(truth.packets, seed, reorder=0.1, duplicate=0.1)
    for impl in wanted():
        file, columns = io.BytesIO(make.pcap(packets)), ["flow", "direction", "offset"]
        batches = arrow.read_capture(file, "frames", columns=columns, _impl=impl)
        rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        assert sorted(rows) == sorted(frame[:3] for frame in truth.frames)
