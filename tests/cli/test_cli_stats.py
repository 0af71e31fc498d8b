"""The `amqpcodec stats` command: the same numbers as text, as JSON, and on a page that needs no network."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import make_capture as make
from support.busy import Known, busy
from support.implementation import wanted
from support.subprocesses import python
from support.troubled import troubled

from amqpcodec import stats
from amqpcodec.cli import main
from amqpcodec.cli.statscharts import PALETTE, steps
from amqpcodec.cli.statsections import Section, duration, exchange, name, sections, sparkline
from amqpcodec.cli.statspage import chapters
from amqpcodec.cli.statstext import text as as_text

EXAMPLES = Path(__file__).parents[2] / "examples"
BUNNY, TXAMQP = EXAMPLES / "real-bunny.pcap", EXAMPLES / "real-txamqp-0-8.pcap"
Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the command in this process; gives its output."""

    def call(*arguments: object, code: int = 0, errors: str = "") -> str:
        assert main(["stats", *map(str, arguments)]) == code
        out, err = capsys.readouterr()
        assert err == errors
        return out

    return call


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "busy.pcap"
    path.write_bytes(make.pcap(busy(7).packets, nanos=True))
    return path


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "lossy.pcap"
    path.write_bytes(make.pcap(make.disturb(busy(7).packets, 3, loss=0.05)[0]))
    return path


@pytest.fixture(scope="module")
def troubles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "troubled.pcap"
    path.write_bytes(make.pcap(troubled().packets, nanos=True))
    return path


def _summary(*paths: Path, top: int = 10) -> stats.Summary:
    collector = stats.Collector(top=top)
    for path in paths:
        collector.add(path, str(path))
    return collector.summary()


def _tables(text: str) -> dict[str, list[list[str]]]:
    """The tables of the text by title, each line as the cells in it (names with spaces fall apart)."""
    tables: dict[str, list[list[str]]] = {}
    for block in text.split("\n\n"):
        title, _, *rows = block.strip("\n").split("\n")
        tables[title] = [re.split(" {2,}", row.strip()) for row in rows]
    return tables


def test_the_text_has_the_numbers_of_the_frames(run: Run, captured: Path) -> None:
    known, tables = Known(captured), _tables(run(captured, "--top", "100"))
    messages = {row[0]: int(row[1].replace(",", "")) for row in tables["Messages"]}
    assert messages == known.kinds
    exchanges = {row[0]: [int(cell.replace(",", "")) for cell in row[1:]] for row in tables["Exchanges"]}
    assert {key: row[0] for key, row in exchanges.items()} == {
        exchange(key): count for key, count in known.exchanges.items()
    }
    assert {key: row[1] for key, row in exchanges.items()} == {
        exchange(key): count for key, count in known.exchange_octets.items()
    }
    queues = {row[0]: int(row[1].replace(",", "")) for row in tables["Queues delivered from"]}
    assert queues == known.queues
    for title, exact in (("Publish to confirm", known.confirms), ("Deliver to acknowledgement", known.acks)):
        found = dict(row for row in tables[title] if len(row) == 2)
        assert int(found["answered"].replace(",", "")) == len(exact)
        assert (found["least"], found["most"]) == (duration(min(exact)), duration(max(exact)))
        assert tables[f"{title}: slowest"][0][0] == duration(max(exact))


def test_words_stand_to_the_left_and_numbers_to_the_right() -> None:
    rows = [("deliver", "from", "9"), ("ack", "a queue", "1,000")]
    assert as_text([Section("Kinds", ("kind", "way", "count"), rows, 1, ("A note.",))]) == (
        "Kinds\n  kind     way      count\n  deliver  from         9\n  ack      a queue  1,000\n  A note.\n"
    )


def test_each_table_says_which_of_its_columns_are_numbers(troubles: Path) -> None:
    summary = _summary(troubles)
    same = {
        "Returned messages": 1, "Publish to confirm: slowest": 0, "Deliver to acknowledgement: slowest": 0,
        "Queues delivered from": 2, "Connections": 6, "Closed": 1, "Gaps and errors": 2, "Overview": 1,
        "Closed by an error, and what came before": 0, "First gaps and errors": 0,
    }  # fmt: skip
    assert {each.title: each.numbers for each in sections(summary)} == same | {
        "Products": 3, "Users": 3, "Virtual hosts": 3, "Messages": 3, "Exchanges": 6, "Routing keys": 6,
        "Rates": 4, "Publish to confirm": 1, "Deliver to acknowledgement": 1,
    }  # fmt: skip
    page = [each for chapter in chapters(summary) for each in chapter.sections]
    assert {each.title: each.numbers for each in page} == same | {
        "Products": 4, "Users": 4, "Virtual hosts": 4, "Messages": 7, "Exchanges": 4, "Routing keys": 4,
        "Publish to confirm": 12, "Deliver to acknowledgement": 12, "Depth of queues": 8,
        "Redelivered messages": 1, "What happened to connections": 0, "Acknowledged and refused": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (None, "-"), (0, "0.0 µs"), (999_949, "999.9 µs"), (1_000_000, "1.000 ms"),
        (999_999_000, "999.999 ms"), (1_000_000_000, "1.000 s"), (90_500_000_000, "90.500 s"),
    ],
)  # fmt: skip
def test_a_duration_is_in_the_unit_that_suits_it(nanoseconds: int | None, text: str) -> None:
    assert duration(nanoseconds) == text


def test_json_is_the_summary(run: Run, captured: Path) -> None:
    shown = json.loads(run(captured, "--json", "--top", "3"))
    assert shown == json.loads(json.dumps(_summary(captured, top=3).as_dict()))
    known = Known(captured)
    assert {row["kind"]: row["messages"] for row in shown["kinds"]["rows"]}.items() <= known.kinds.items()
    assert shown["confirms"]["most_ns"] == max(known.confirms)


def test_text_and_json_say_the_same(run: Run, captured: Path) -> None:
    text, shown = run(captured), json.loads(run(captured, "--json"))
    tables = _tables(text)
    assert tables["Messages"] == [
        [row["kind"], *(f"{row[count]:,}" for count in ("messages", "octets", "incomplete"))]
        for row in shown["kinds"]["rows"]
    ]
    assert [row[0] for row in tables["Deliver to acknowledgement: slowest"]] == [
        duration(slow["latency_ns"]) for slow in shown["acks"]["slowest"]
    ]


def test_connections_and_totals(run: Run) -> None:
    tables = _tables(run(BUNNY, TXAMQP))
    overview = dict(tables["Overview"][:-1])
    assert (overview["connections"], overview["frames sent"], overview["frames received"]) == (
        "2",
        "146",
        "96",
    )
    [first, _] = tables["Connections"]
    assert first[1:7] == ["127.0.0.1:59752", "127.0.0.1:5672", "bunny", "guest", "/", "client 200 Goodbye"]
    assert first[7:] == ["53,162", "52,515", "15", "5", "0", "0"]


def test_gaps_and_errors_give_code_1_and_are_shown(run: Run, lossy: Path) -> None:
    tables = _tables(run(lossy, code=1))
    assert tables["Gaps and errors"][0][0] == "GAP"
    assert tables["First gaps and errors"]


def test_credentials_are_not_shown(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for shown in (run(BUNNY, TXAMQP, "--html", page), run(BUNNY, TXAMQP, "--json"), page.read_text()):
        assert "\0guest\0guest" not in shown
        assert b"\0guest\0guest".hex() not in shown
        assert "PASSWORD" not in shown


def test_nothing_from_the_wire_reaches_the_terminal_unescaped(run: Run, captured: Path) -> None:
    text = run(captured)
    assert all(line.isprintable() for line in text.splitlines())
    assert r"trade\x1b[31m" in text


def test_inputs_that_cannot_be_read_are_named_and_the_others_summarised(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("this is no capture, but it is long enough to be looked at")
    begins = "neither pcap nor pcapng: it begins with 74 68 69 73 (at octet 0 of the file)"
    hint = "; tcpdump -w, tshark -w and Wireshark write captures; the bytes of one direction alone are read "
    errors = f"amqpcodec: {str(text)!r}: {begins}{hint}with --input stream\n"
    assert "frames sent" in run(text, BUNNY, code=2, errors=errors)
    message = f"amqpcodec: {str(BUNNY)!r}: no AMQP found on port 7; try --port any\n"
    run(BUNNY, "--port", "7", errors=message)


@pytest.mark.parametrize("build", wanted())
def test_each_build_says_the_same(build: str, captured: Path, lossy: Path) -> None:
    done = python("-m", "amqpcodec", "stats", str(captured), str(lossy), "--json", impl=build)
    assert (done.stderr, done.returncode) == (b"", 1)
    assert json.loads(done.stdout) == json.loads(json.dumps(_summary(captured, lossy).as_dict()))


def test_each_file_is_read_once_and_progress_ends_at_all_there_is(
    run: Run, captured: Path, lossy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals: list[int] = []
    reported: list[int] = []

    @contextmanager
    def reading(name: str, total: int) -> Iterator[Callable[[int], None]]:
        totals.append(total)
        yield reported.append

    monkeypatch.setattr("amqpcodec.cli.stats.reading", reading)
    run(captured, lossy, code=1)
    assert sum(reported) == totals.pop() == captured.stat().st_size + lossy.stat().st_size


def test_patterns_and_standard_input(run: Run) -> None:
    assert run(EXAMPLES / "*.pcap") == run(BUNNY, TXAMQP)
    command = [sys.executable, "-m", "amqpcodec", "stats", "-", "--json"]
    with BUNNY.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["totals"] == json.loads(run(BUNNY, "--json"))["totals"]
    piped = subprocess.run(command, input=BUNNY.read_bytes(), capture_output=True, check=True, timeout=60)
    assert piped.stdout == done.stdout


def test_an_input_that_is_a_folder_or_absent_is_named_with_what_to_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "traffic.pcap").write_bytes(BUNNY.read_bytes())
    hint = "Is a directory; name the files in it, or a pattern: 'FOLDER/*.pcap'"
    run(tmp_path, code=2, errors=f"amqpcodec: {str(tmp_path)!r}: {hint}\n")
    mistaken = str(tmp_path / "trafic.pcap")
    hint = "No such file or directory; the nearest name is 'traffic.pcap'"
    run(mistaken, code=2, errors=f"amqpcodec: {mistaken!r}: {hint}\n")


def test_where_no_port_has_amqp_it_says_what_names_the_others(run: Run, tmp_path: Path) -> None:
    truth = make.Truth()
    make.Talk(truth, 0, (1, 1)).send(0, b"\x16\x03\x01\x00\x05hello")
    path = tmp_path / "tls.pcap"
    path.write_bytes(make.pcap(truth.packets))
    hint = "amqpcodec decode --port any says what its connections are, such as TLS"
    run(path, "--port", "any", errors=f"amqpcodec: {str(path)!r}: no AMQP found on any port; {hint}\n")


def test_a_page_does_not_replace_a_capture_that_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    path.write_bytes(BUNNY.read_bytes())
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "link"):
        errors = f"amqpcodec: {str(out)!r} is read, so it cannot be written\n"
        assert run(path, "--html", out, code=2, errors=errors) == ""
    assert path.read_bytes() == BUNNY.read_bytes()


def test_a_page_that_cannot_be_written_leaves_what_was_there(run: Run, tmp_path: Path) -> None:
    message = f"amqpcodec: {str(tmp_path)!r}: Is a directory\n"
    assert run(BUNNY, "--html", tmp_path, code=2, errors=message) == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("module", "page", "said"),
    [
        ("plotly", True, 'HTML pages need plotly and pyarrow: pip install "amqpcodec[report]"'),
        ("pyarrow", True, 'HTML pages need plotly and pyarrow: pip install "amqpcodec[report]"'),
        ("pyarrow", False, 'amqpcodec.stats needs pyarrow: pip install "amqpcodec[arrow]"'),
    ],
)
def test_what_is_not_installed_is_reported(
    module: str,
    page: bool,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    gone = ("amqpcodec.stats", "amqpcodec.arrow", "amqpcodec.cli.stats")
    for loaded in [each for each in sys.modules if each.startswith(gone) and each != "amqpcodec.cli.stats"]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.delattr("amqpcodec.stats", raising=False)
    monkeypatch.delattr("amqpcodec.arrow", raising=False)
    for name_ in ("statshtml", "statscharts", "statspage", "statsections"):
        monkeypatch.delattr(f"amqpcodec.cli.{name_}", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["stats", str(BUNNY), *(["--html", str(tmp_path / "page.html")] if page else [])]) == 2
    assert capsys.readouterr().err == f"amqpcodec: {said}\n"


def test_one_extra_is_enough_for_the_page() -> None:
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    names = {re.split("[<>=]", each)[0] for each in project["optional-dependencies"]["report"]}
    assert names == {"plotly", "pyarrow"}


# -- the page


class _Page(HTMLParser):
    """Tables by the heading before them, and whatever links or could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[tuple[str, ...]]] = {}
        self.headings: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.verdict = ""
        self.findings: list[str] = []
        self.tiles: dict[str, str] = {}
        self.scripts = 0
        self.loads: list[tuple[str, str | None]] = []
        self._title, self._row, self._text, self._kind, self._tile = "", [""], "", "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script"
        targets = (given.get("src"), given.get("href"))
        self.loads += [(tag, target) for target in targets if not (target or "#").startswith("#")]
        if tag == "a":
            self.links.append((given.get("href") or "").removeprefix("#"))
            return
        if tag in ("h2", "h3"):
            self.anchors.append(given.get("id") or "")
        if tag in ("p", "li"):
            self._kind = given.get("class") or ""
        self._text = ""
        if tag == "tr":
            self._row = []

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h2", "h3"):
            self.headings.append(self._text)
            self._title = self._text
        elif tag in ("td", "th"):
            self._row.append(self._text)
        elif tag == "tr":
            self.tables.setdefault(self._title, []).append(tuple(self._row))
        elif tag == "dt":
            self._tile = self._text
        elif tag == "dd":
            self.tiles[self._tile] = self._text
        elif tag == "p" and self._kind.startswith("verdict"):
            self.verdict = self._text
        elif tag == "span" and self._kind in ("error", "warning", "note"):
            self.findings.append(self._text)


def _charts(text: str) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Data and layout of each chart in a page."""
    decoder = json.JSONDecoder()
    found = []
    for call in re.finditer(r'Plotly\.newPlot\(\s*"[^"]*",\s*', text):
        data, end = decoder.raw_decode(text, call.end())
        layout, _ = decoder.raw_decode(text, text.index("{", end))
        found.append((data, layout))
    return found


@pytest.fixture(scope="module")
def written(lossy: Path, captured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "page.html"
    assert main(["stats", str(captured), str(lossy), "--html", str(path)]) == 1
    return path


@pytest.fixture(scope="module")
def text(written: Path) -> str:
    return written.read_text(encoding="utf-8")


def test_the_page_has_the_numbers_of_the_summary(text: str, lossy: Path, captured: Path) -> None:
    page, summary = _Page(text), _summary(captured, lossy)
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
    page, summary = _Page(text), _summary(captured, lossy)
    assert page.findings == [f"{each.text} {each.section}" for each in summary.findings]
    assert {finding.section for finding in summary.findings} <= page.tables.keys()
    places = [text.index(each) for each in ('class="verdict', 'class="findings"', "<nav", "<h2")]
    assert places == sorted(places)
    found = list(dict.fromkeys(re.findall('<h2 id="chapter-([a-z]+)"', text)))
    assert found == ["traffic", "latencies", "queues", "connections", "recording"]


def test_every_link_of_the_page_has_one_target(text: str) -> None:
    page = _Page(text)
    assert len(set(page.anchors)) == len(page.anchors)
    assert set(page.links) == set(page.anchors)


def test_published_and_delivered_are_never_added_up(text: str, lossy: Path, captured: Path) -> None:
    page, summary = _Page(text), _summary(captured, lossy)
    head, *rows = page.tables["Exchanges"]
    assert head == ("exchange", "published", "bytes published", "delivered", "bytes delivered")
    known = {exchange(row["exchange"]): row for row in summary.exchanges.rows}
    for shown, published, _, delivered, _ in rows:
        row = known[shown]
        assert (published, delivered) == (f"{row['published']:,}", f"{row['delivered']:,}")
    assert "messages" not in page.tables["Users"][0]
    assert all(layout.get("barmode") in (None, "group") for _, layout in _charts(text))
    assert not any("stackgroup" in trace for data, _ in _charts(text) for trace in data)


def test_charts_have_clock_time_axes_from_zero_and_one_palette(text: str) -> None:
    charts = _charts(text)
    assert len(charts) == 6
    for data, layout in charts:
        for trace in data:
            color = trace.get("line", trace.get("marker", {}))["color"]
            assert color in PALETTE.values()
            if trace["type"] == "scatter":
                assert color == PALETTE.get(trace["name"], PALETTE["other"])
        amounts = layout["xaxis"] if data[0].get("orientation") == "h" else layout["yaxis"]
        assert amounts["rangemode"] == "tozero"
    times, layout = charts[0]
    assert layout["xaxis"]["type"] == "date"
    histograms = [layout for _, layout in charts if layout["xaxis"].get("type") == "category"]
    assert 1 in [layout["yaxis"].get("dtick") for layout in histograms]  # of few, in whole ones
    assert times[0]["x"][0].startswith("2023-11-14 22:13:20")


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


def test_means_are_over_the_whole_recording(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(BUNNY, "--html", page)
    summary = _summary(BUNNY)
    [row] = [row for row in _Page(page.read_text()).tables["Messages"] if row[0] == "publish"]
    assert summary.duration_ns == 2_987_807_000
    assert row[4] == f"{15 / 2.987807:,.1f}"


def test_the_page_loads_nothing_and_runs_nothing_from_the_wire(text: str) -> None:
    page = _Page(text)
    assert page.loads == []
    assert "default-src 'none'" in text
    assert "<script>alert(1)" not in text
    assert page.scripts == 2 + 6  # the library, what is done before printing, and a chart each


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
        assert all(_contrast(color, theme["paper"]) >= 3 for color in PALETTE.values())
        for name_ in ("ink", "dim", "link", "error", "warning", "note"):
            assert _contrast(theme[name_], theme["paper"]) >= 4.5


def _chromium() -> str:
    for command in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(command):
            return found
    pytest.skip("no Chromium is installed")


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
    drawn = _Page(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))
    for chapter in chapters(_summary(captured, lossy)):
        for section in chapter.sections:
            assert drawn.tables[section.title] == [section.columns, *section.rows]
    assert text.count('class="main-svg"') >= 6


# -- values


def test_no_table_has_two_columns_of_the_same_name(lossy: Path, captured: Path, troubles: Path) -> None:
    summary = _summary(lossy, captured, troubles, BUNNY, TXAMQP, top=3)
    tables = [*sections(summary), *(each for chapter in chapters(summary) for each in chapter.sections)]
    assert len({table.title for table in tables}) > 20
    for table in tables:
        assert len(set(table.columns)) == len(table.columns), (table.title, table.columns)


def test_the_default_exchange_is_called_that_wherever_an_exchange_is_shown(
    run: Run, troubles: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    shown = run(troubles, "--html", page, code=1)
    tables = _tables(shown)
    assert [row[0] for row in tables["Exchanges"]] == ["(default)", "shop"]
    assert ["(default)", "orders", "40"] in [row[:3] for row in tables["Routing keys"]]
    assert {row[-2] for row in tables["Publish to confirm: slowest"]} == {"(default)"}
    written = page.read_text(encoding="utf-8")
    found = _Page(written).tables
    assert [row[0] for row in found["Exchanges"][1:]] == ["(default)", "shop"]
    assert found["Routing keys"][1][:2] == ("(default)", "orders")
    assert {row[-2] for row in found["Publish to confirm: slowest"][1:]} == {"(default)"}
    assert "(empty)" not in shown + written
    assert any("(default)" in str(layout) for _, layout in _charts(written))
    assert json.loads(run(troubles, "--json", code=1))["exchanges"]["rows"][0]["exchange"] == ""


def test_one_is_an_other_and_several_are_others(run: Run, captured: Path) -> None:
    count = len(Known(captured).exchanges)
    assert _tables(run(captured, "--top", count - 1))["Exchanges"][-1][0] == "1 other"
    assert _tables(run(captured, "--top", count - 2))["Exchanges"][-1][0] == "2 others"


@pytest.mark.parametrize(
    ("first", "last", "corners"),
    [
        (10, 13, {10: 2.0, 12: 1.0, 14: 1.0}),
        (10, 14, {10: 2.0, 12: 1.0, 14: 1.0}),
        (10, 15, {10: 2.0, 12: 1.0, 14: 0.0, 15: 0.0}),
        (8, 15, {8: 0.0, 10: 2.0, 12: 1.0, 14: 0.0, 15: 0.0}),
    ],
)
def test_a_line_of_rates_falls_to_zero_where_the_recording_has_no_messages(
    first: int, last: int, corners: dict[int, float]
) -> None:
    rates, second = stats.Rates(10 * 10**9, 2 * 10**9, {}, {}), 10**9
    assert steps(rates, [4, 2], (first * second, last * second)) == (
        [f"1970-01-01 00:00:{at:02}.000000" for at in corners],
        [*corners.values()],
    )


def test_durations_and_names() -> None:
    assert [duration(each) for each in (None, 0, 1500, 2_500_000, 3_000_000_000)] == [
        "-", "0.0 µs", "1.5 µs", "2.500 ms", "3.000 s",
    ]  # fmt: skip
    assert [name(each) for each in (None, "", "a\n", "x" * 61, 5)] == [
        "-", "(empty)", "a\\n", "x" * 60 + "...", "5",
    ]  # fmt: skip
    assert sparkline([0, 1, 8]) == " ▁█"
    assert len(sparkline(range(240))) == 40
    assert sparkline([8] * 40) == "█" * 40
    assert sparkline([8] * 41) == "█" * 20 + "▄"  # of two values each; the last is of one


@pytest.mark.parametrize("option", [["--top", "0"], ["--top", "x"], ["--port", "0"]])
def test_bad_arguments_end_with_code_2(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["stats", str(BUNNY), *option])
    assert caught.value.code == 2
    assert "error" in capsys.readouterr().err


def test_decode_needs_neither_pyarrow_nor_plotly() -> None:
    check = (
        "import sys; from amqpcodec.cli import main; main(['decode', sys.argv[1]]); "
        "sys.exit('pyarrow' in sys.modules or 'plotly' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check, str(BUNNY)], capture_output=True, timeout=60)
    assert done.returncode == 0
