"""Verdicts of the report, each in the unit in which its target is set."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.benchmark_modules import module


@pytest.fixture
def targets() -> Iterator[ModuleType]:
    yield from module("targets")


@pytest.fixture
def report() -> Iterator[ModuleType]:
    yield from module("report")


def results(octets: int) -> Any:
    """A stored run in which everything takes so many octets."""
    sizes = {"start": 0, "peak": octets, "messages": 1}
    budgets = {"wheel, octets": octets, "installed, octets": octets, "build, CPU s": 1.0}
    extra = {("peak memory of a stream of deliveries", "amqpcodec"): sizes}
    return SimpleNamespace(extra=extra, budgets=budgets)


@pytest.mark.parametrize(
    ("octets", "reached", "met"),
    [(2_949_999, "2.95 MB", True), (3_133_928, "3.13 MB", False), (3 << 20, "3.15 MB", False)],
)
def test_the_size_of_a_wheel_is_judged_in_millions_of_octets(
    targets: ModuleType, octets: int, reached: str, met: bool
) -> None:
    verdict = next(iter(targets._wheel(results(octets))))
    assert verdict == ("wheel", "at most 2.95 MB", reached, met)


def test_memory_of_a_stream_is_judged_in_millions_of_octets(targets: ModuleType) -> None:
    assert targets._memory(results(8 << 20))[1:] == ("under 8 MB above the start", "8.39 MB", False)
    assert targets._memory(results(7_900_000)).met


def test_sizes_in_the_report_are_in_the_unit_of_the_targets(report: ModuleType) -> None:
    sizes = [
        row for row in report._footprint(results(3_133_928)) if "deliveries" in row or "installed" in row
    ]
    assert [row.split("| ")[2] for row in sizes] == ["3.1 MB |", "3.13 MB |"]


@pytest.fixture
def stored() -> Iterator[ModuleType]:
    yield from module("results")


def test_the_shortest_of_several_runs_is_kept_item_by_item(stored: ModuleType) -> None:
    def run(commit: str, **times: float) -> dict[str, Any]:
        entries = [
            {"extra_info": {"item": item, "peer": "pika"}, "stats": {"min": time}}
            for item, time in times.items()
        ]
        return {"commit_info": commit, "benchmarks": entries}

    kept = stored.shortest([run("a", decode=3.0, encode=1.0), run("a", decode=2.0, encode=4.0)])
    assert kept == run("a", decode=2.0, encode=1.0)
