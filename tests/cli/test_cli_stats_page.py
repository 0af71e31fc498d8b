"""The page of `amqpcodec stats`: its numbers, links, charts and colours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.command import BUNNY, summary_of
from support.pages import Page, charts_of

from amqpcodec.cli import main
from amqpcodec.cli.statscharts import ENDS, PALETTE, steps
from amqpcodec.cli.statsections import exchange
from amqpcodec.cli.statspage import chapters

CHARTS = 9  # rates and octets, exchanges, two for each latency, queues, lives


@pytest.fixture(scope="module")
def written(lossy: Path, captured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "page.html"
    assert main(["stats", str(captured), str(lossy), "--html", str(path)]) == 1
    return path


@pytest.fixture(scope="module")
def text(written: Path) -> str:
    return written.read_text(encoding="utf-8")


def test_the_page_has_the_numbers_of_the_summary(text: str, lossy: Path, captured: Path) -> None:
    page, summary = Page(text), summary_of(captured, lossy)
    for chapter in chapters(summary):
        for section in chapter.sections:
            assert page.tables[section.title] == [section.columns, *section.rows]
    messages = {row[0]: row[1] for row in page.tables["Messages"][1:]}
    assert messages == {row["kind"] or "unknown": f"{row['messages']:,}" for row in summary.kinds.rows}
    assert page.verdict == summary.verdict
    assert page.tiles["messages published"] == messages["publish"]


def test_the_page_begins_with_the_problems_and_leads_to_their_tables(
    text: str, lossy: Path, captured: Path
) -> None:
    page, summary = Page(text), summary_of(captured, lossy)
    assert page.findings == [f"{each.text} {each.section}" for each in summary.findings]
    assert {finding.section for finding in summary.findings} <= page.tables.keys()
    places = [text.index(each) for each in ('class="verdict', 'class="findings"', "<nav", "<h2")]
    assert places == sorted(places)
    found = list(dict.fromkeys(re.findall('<h2 id="chapter-([a-z]+)"', text)))
    assert found == ["traffic", "latencies", "queues", "connections", "recording"]


def test_every_link_of_the_page_has_one_target(text: str) -> None:
    page = Page(text)
    assert len(set(page.anchors)) == len(page.anchors)
    assert set(page.links) == set(page.anchors)


def test_published_and_delivered_are_never_added_up(text: str, lossy: Path, captured: Path) -> None:
    page, summary = Page(text), summary_of(captured, lossy)
    head, *rows = page.tables["Exchanges"]
    assert head[2:6] == ("published", "bytes published", "delivered", "bytes delivered")
    known = {exchange(row["exchange"]): row for row in summary.exchanges.rows}
    for shown, _, published, _, delivered, *_ in rows:
        row = known[shown]
        assert (published, delivered) == (f"{row['published']:,}", f"{row['delivered']:,}")
    assert "messages" not in page.tables["Users"][0]
    assert all(layout.get("barmode") in (None, "group") for _, layout in charts_of(text)[:-1])
    assert not any("stackgroup" in trace for data, _ in charts_of(text) for trace in data)


def test_charts_have_clock_time_axes_from_zero_and_one_palette(text: str) -> None:
    charts = charts_of(text)
    assert len(charts) == CHARTS
    for data, layout in charts[:-1]:
        for trace in data:
            color = trace.get("line", trace.get("marker", {}))["color"]
            assert color in PALETTE.values()
            if trace["type"] == "scatter" and trace["name"] != "p50":
                assert color == PALETTE.get(trace["name"], PALETTE["other"])
        amounts = layout["xaxis"] if data[0].get("orientation") == "h" else layout["yaxis"]
        assert amounts["rangemode"] == "tozero"
    for number in (0, 1, 4, 6, 8):
        assert charts[number][1]["xaxis"]["type"] == "date"
    times, layout = charts[0]
    histograms = [layout for _, layout in charts if layout["xaxis"].get("type") == "category"]
    assert 1 in [layout["yaxis"].get("dtick") for layout in histograms]  # of few, in whole ones
    assert times[0]["x"][0].startswith("2023-11-14 22:13:20")


def test_latencies_over_time_are_bars_from_the_half_to_the_hundredth(
    text: str, lossy: Path, captured: Path
) -> None:
    summary = summary_of(captured, lossy)
    for (data, layout), latency in zip(charts_of(text)[4:8:2], (summary.confirms, summary.acks), strict=True):
        bars, line = data
        known = [
            (index, p50, p99)
            for index, (p50, p99) in enumerate(
                zip(latency.over_time.p50_ns, latency.over_time.p99_ns, strict=True)
            )
            if p50 is not None and p99 is not None
        ]
        assert len(known) > 3
        assert bars["base"] == [p50 for _, p50, _ in known]
        assert bars["y"] == [p99 - p50 for _, p50, p99 in known]
        assert bars["width"] == latency.over_time.width_ns / 1_000_000
        assert line["y"][::3] == bars["base"]
        assert layout["yaxis"]["type"] == "log"
        low, high = layout["yaxis"]["range"]
        assert all(10**low <= p50 <= p99 <= 10**high for _, p50, p99 in known)


def test_a_chart_of_one_count_needs_no_legend(text: str) -> None:
    bars = [(len(data), layout) for data, layout in charts_of(text) if layout.get("barmode") == "group"]
    named = {count: layout["showlegend"] for count, layout in bars}
    assert named == {1: False, 2: True}


def test_connections_and_channels_are_bars_by_what_ended_them(text: str, lossy: Path, captured: Path) -> None:
    summary = summary_of(captured, lossy)
    data, layout = charts_of(text)[-1]
    assert {
        trace["name"]: (trace["marker"]["color"], trace["marker"]["pattern"]["shape"]) for trace in data
    } == {name: look for name, look in ENDS.items() if name in {trace["name"] for trace in data}}
    shown = sorted(
        (place, ended) for trace in data for place, ended in zip(trace["y"], trace["hovertext"], strict=True)
    )
    assert [place for place, _ in shown] == list(range(len(summary.lives)))
    assert {trace["name"] for trace in data} >= {"closed by an error", "with its connection"}
    for (_, hover), life in zip(shown, summary.lives, strict=True):
        assert (str(life.reply_code) in hover) == (life.ended == "closed")
    assert layout["yaxis"]["range"] == [len(summary.lives) - 0.5, -0.5]


@pytest.mark.slow("draws the page twice")
def test_the_same_input_gives_the_same_octets(captured: Path, lossy: Path, tmp_path: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        page = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "amqpcodec", "stats", str(captured), str(lossy), "--html", str(page)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        assert subprocess.run(command, env=environment, capture_output=True, timeout=60).returncode == 1
        pages.append(page.read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("span", "seconds", "values"),
    [
        ((10, 15), [10, 12, 14, 16], [2, 0, 1.5, 1.5]),
        ((10, 16), [10, 12, 14, 16], [2, 0, 1.5, 1.5]),
        ((9, 17), [9, 10, 12, 14, 16, 17], [0, 2, 0, 1.5, 0, 0]),
    ],
)
def test_rates_are_a_line_in_steps_over_the_whole_recording(
    span: tuple[int, int], seconds: list[int], values: list[float]
) -> None:
    second = 1_000_000_000
    rates: Any = SimpleNamespace(start_ns=10 * second, width_ns=2 * second)
    found = steps(rates, [4, 0, 3], (span[0] * second, span[1] * second))
    assert found == ([f"1970-01-01 00:00:{each:02}.000000" for each in seconds], values)


def test_means_are_over_the_whole_recording(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["stats", str(BUNNY), "--html", str(page)]) == 0
    summary = summary_of(BUNNY)
    [row] = [row for row in Page(page.read_text(encoding="utf-8")).tables["Messages"] if row[0] == "publish"]
    assert summary.duration_ns == 2_987_807_000
    assert row[4] == f"{15 / 2.987807:.3g}"


def test_the_page_loads_nothing_and_runs_nothing_from_the_wire(text: str) -> None:
    page = Page(text)
    assert page.loads == []
    assert "default-src 'none'" in text
    assert "<script>alert(1)" not in text
    assert page.scripts == 2 + CHARTS  # the library, what is done before printing, and a chart each


def test_the_page_has_colours_for_dark_mode_and_for_paper(text: str) -> None:
    names = [
        set(re.findall(r"(--[a-z]+):", block)) for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    ]
    assert len(names) == 3
    assert names[0] == names[1] == names[2]


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_colours_stand_out_from_light_and_dark_paper(text: str) -> None:
    """As the guidelines for accessible pages (WCAG 2.1) have it: 3 for graphics, 4.5 for text."""
    light, dark, paper = (
        {key: f"#{value[1:] * 2}" if len(value) == 4 else value for key, value in re.findall(
            r"--([a-z]+): (#[0-9a-f]+)", block
        )}
        for block in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    )  # fmt: skip
    for theme in (light, dark, paper):
        colors = [*PALETTE.values(), *(color for color, _ in ENDS.values())]
        assert all(_contrast(color, theme["paper"]) >= 3 for color in colors)
        for name_ in ("ink", "dim", "link", "error", "warning", "note"):
            assert _contrast(theme[name_], theme["paper"]) >= 4.5


def _chromium() -> str:
    for command in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(command):
            return found
    pytest.skip("no Chromium is installed")


@pytest.mark.slow("runs a browser")
def test_a_browser_without_network_draws_the_page(written: Path, lossy: Path, captured: Path) -> None:
    command = [
        _chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={written.parent / 'profile'}", "--virtual-time-budget=5000", "--dump-dom",
        written.as_uri(),
    ]  # fmt: skip
    # A preloaded sanitizer is meant for Python, not for browsers.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, check=True, timeout=120, env=environment)
    text = done.stdout.decode()
    drawn = Page(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    for chapter in chapters(summary_of(captured, lossy)):
        for section in chapter.sections:
            assert drawn.tables[section.title] == [section.columns, *section.rows]
    assert text.count('class="main-svg"') >= CHARTS
