"""The chart of the README: that of the stored results, and readable on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.benchmark_modules import module

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "benchmarks.svg"
STORED = ROOT / "benchmarks" / "results" / "bench.json"
PHONE = 390  # pixels; a wider picture is made smaller, and its text with it
LEAST = 10  # pixels of text that can be read
WIDEST = 0.56  # mean width of characters in a wide font, as a part of their height


@pytest.fixture
def chart() -> Iterator[ModuleType]:
    yield from module("chart")


@pytest.mark.skipif(not STORED.exists(), reason="stored results are in the repository alone")
def test_the_chart_is_drawn_from_the_stored_results(chart: ModuleType) -> None:
    results = chart.Results()
    assert chart.draw(results) == PICTURE.read_text(encoding="utf-8")


def test_text_can_be_read_on_a_phone(chart: ModuleType) -> None:
    width = int(re.findall(r'<svg [^>]*width="(\d+)"', PICTURE.read_text(encoding="utf-8"))[0])
    sizes = [int(size) for size in re.findall(r"(\d+)px", chart.STYLE)]
    margins = 32
    assert min(sizes) * min(1, (PHONE - margins) / width) >= LEAST


def test_no_text_leaves_the_picture(chart: ModuleType) -> None:
    texts = re.findall(r'<text([^>]*) x="([\d.]+)"([^>]*)>([^<]*)<', PICTURE.read_text(encoding="utf-8"))
    assert len(texts) > 40
    for before, x, after, text in texts:
        length = len(text) * (13 if "title" in before else 12) * WIDEST
        begin = float(x) - (length if "end" in after else 0)
        assert begin >= 0, text
        assert begin + length <= chart.WIDTH, text
