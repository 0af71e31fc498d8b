"""What the report says of a target: in the unit in which the target is set."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import targets


def results(octets: int) -> Any:
    """A stored run in which everything takes so many octets."""
    sizes = {"start": 0, "peak": octets, "messages": 1, "extensions": octets, "package": octets}
    names = ("peak memory of a stream of deliveries", "installed size")
    wheel = {"octets": octets, "cores": 2, "seconds": 1.0}
    return SimpleNamespace(extra={(name, "amqpcodec"): sizes for name in names}, wheel=wheel)


@pytest.mark.parametrize(
    ("octets", "reached", "met"),
    [(2_999_999, "3 MB", True), (3_133_928, "3.13 MB", False), (3 << 20, "3.15 MB", False)],
)
def test_the_size_of_a_wheel_is_judged_in_millions_of_octets(octets: int, reached: str, met: bool) -> None:
    verdict = next(iter(targets._wheel(results(octets))))
    assert verdict == ("wheel", "under 3 MB", reached, met)


def test_memory_of_a_stream_is_judged_in_millions_of_octets() -> None:
    assert targets._memory(results(8 << 20))[1:] == ("under 8 MB above the start", "8.39 MB", False)
    assert targets._memory(results(7_900_000)).met


def test_sizes_in_the_report_are_in_the_unit_of_the_targets() -> None:
    report = pytest.importorskip(
        "report", reason="a library that the benchmarks use is missing", exc_type=ImportError
    )
    sizes = [
        row for row in report._footprint(results(3_133_928)) if "deliveries" in row or "installed" in row
    ]
    assert [row.split("| ")[2] for row in sizes] == ["3.1 MB |"] * 3
