"""Verdicts of the report, each in the unit in which its target is set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def targets() -> Iterator[ModuleType]:
    yield from module("targets")


@pytest.fixture
def report() -> Iterator[ModuleType]:
    yield from module("report")


def module(name: str) -> Iterator[ModuleType]:
    """A module of the benchmarks, until the test is over: other folders have modules of its name."""
    names = {path.stem for path in FOLDER.glob("*.py")}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        for other in names & sys.modules.keys():
            patch.delitem(sys.modules, other)
        try:
            yield import_module(name)
        except ImportError as missing:
            pytest.skip(f"a library that the benchmarks use is missing: {missing}")
        finally:
            for other in names & sys.modules.keys():
                del sys.modules[other]


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
