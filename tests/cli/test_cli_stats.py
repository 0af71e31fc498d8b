"""The `amqpcodec stats` command: the same numbers as text, as JSON, and on a page that needs no network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support.busy import Known
from support.command import BUNNY, TXAMQP, summary_of
from support.implementation import wanted
from support.pages import Page, charts_of
from support.subprocesses import python
from support.troubled import troubled

from amqpcodec import stats
from amqpcodec.cli import main
from amqpcodec.cli.statscharts import steps
from amqpcodec.cli.statsections import Section, duration, exchange, name, sections, sparkline
from amqpcodec.cli.statspage import chapters
from amqpcodec.cli.statstext import text as as_text

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
def troubles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "troubled.pcap"
    path.write_bytes(make.pcap(troubled().packets, nanos=True))
    return path


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
    exchanges = {row[0]: [int(cell.replace(",", "")) for cell in row[2:]] for row in tables["Exchanges"]}
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
    summary = summary_of(troubles)
    same = {
        "Returned messages": 1, "Publish to confirm: slowest": 0, "Deliver to acknowledgement: slowest": 0,
        "Queues delivered from": 2, "Connections": 6, "Closed": 1, "Gaps and errors": 2, "Overview": 1,
        "Closed by an error, and what came before": 0, "First gaps and errors": 0,
        "Queues": 12, "Consumers": 13, "Publishers": 12, "Connections and channels over time": 0,
    }  # fmt: skip
    assert {each.title: each.numbers for each in sections(summary)} == same | {
        "Products": 3, "Users": 3, "Virtual hosts": 3, "Messages": 3, "Exchanges": 9, "Routing keys": 6,
        "Rates": 4, "Publish to confirm": 1, "Deliver to acknowledgement": 1, "Findings": 0,
    }  # fmt: skip
    page = [each for chapter in chapters(summary) for each in chapter.sections]
    assert {each.title: each.numbers for each in page} == same | {
        "Products": 4, "Users": 4, "Virtual hosts": 4, "Messages": 7, "Exchanges": 7, "Routing keys": 4,
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
    shown = json.loads(run(captured, "--format", "json", "--top", "3"))
    assert shown == json.loads(json.dumps(summary_of(captured, top=3).as_dict()))
    known = Known(captured)
    assert {row["kind"]: row["messages"] for row in shown["kinds"]["rows"]}.items() <= known.kinds.items()
    assert shown["confirms"]["most_ns"] == max(known.confirms)


def test_text_and_json_say_the_same(run: Run, captured: Path) -> None:
    text, shown = run(captured), json.loads(run(captured, "--format", "json"))
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
    for shown in (
        run(BUNNY, TXAMQP, "--html", page),
        run(BUNNY, TXAMQP, "--format", "json"),
        page.read_text(encoding="utf-8"),
    ):
        assert "\0guest\0guest" not in shown
        assert b"\0guest\0guest".hex() not in shown
        assert "PASSWORD" not in shown


def test_nothing_from_the_wire_reaches_the_terminal_unescaped(run: Run, captured: Path) -> None:
    text = run(captured)
    assert all(line.isprintable() for line in text.splitlines())
    assert r"trade\x1b[31m" in text


def test_inputs_that_cannot_be_read_are_named_and_the_others_summarised(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("this is no capture, but it is long enough to be looked at", encoding="utf-8")
    begins = "neither pcap nor pcapng: it begins with 74 68 69 73 (at octet 0 of the file)"
    hint = "; tcpdump -w, tshark -w and Wireshark write captures; the bytes of one direction alone are read "
    errors = f"amqpcodec: {str(text)!r}: {begins}{hint}with --input stream\n"
    assert "frames sent" in run(text, BUNNY, code=2, errors=errors)
    message = f"amqpcodec: {str(BUNNY)!r}: no AMQP found on port 7; port 5672 has AMQP: try --port 5672\n"
    run(BUNNY, "--port", "7", errors=message)
    assert "There is no AMQP" not in run(text, code=2, errors=errors)


@pytest.mark.parametrize("build", wanted())
def test_each_build_says_the_same(build: str, captured: Path, lossy: Path) -> None:
    done = python("-m", "amqpcodec", "stats", str(captured), str(lossy), "--format", "json", impl=build)
    assert (done.stderr, done.returncode) == (b"", 1)
    assert json.loads(done.stdout) == json.loads(json.dumps(summary_of(captured, lossy).as_dict()))


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


def test_a_pattern_stands_for_its_files(run: Run) -> None:
    assert run(BUNNY.parent / "real-*.pcap") == run(BUNNY, TXAMQP)


@pytest.mark.parametrize("form", ["a file", "a pipe"])
def test_standard_input_is_a_file_or_a_pipe(run: Run, form: str) -> None:
    command = [sys.executable, "-m", "amqpcodec", "stats", "-", "--format", "json"]
    with BUNNY.open("rb") as file:
        given: dict[str, Any] = {"stdin": file} if form == "a file" else {"input": file.read()}
        done = subprocess.run(command, **given, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["totals"] == json.loads(run(BUNNY, "--format", "json"))["totals"]


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
    run(path, code=1)  # the port is right, and the report names TLS
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
    project = tomllib.loads((BUNNY.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split("[<>=]", each)[0] for each in project["optional-dependencies"]["report"]}
    assert names == {"plotly", "pyarrow"}


def test_the_text_begins_with_the_verdict_and_has_reply_texts_whole(run: Run) -> None:
    shown = run(BUNNY)
    assert shown.splitlines()[2].split()[:4] == ["verdict", "4", "problems", "found:"]
    whole = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'b.ex' in vhost '/': received"
    assert shown.count(whole) == 3  # where closes are counted, where each is told, and over time
    codes = re.findall(r"^  channel +(?:client|server) +(\d+)", shown, re.MULTILINE)
    assert codes == ["404", "406", "406", "200"]


def test_no_table_has_two_columns_of_the_same_name(lossy: Path, captured: Path, troubles: Path) -> None:
    summary = summary_of(lossy, captured, troubles, BUNNY, TXAMQP, top=3)
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
    assert {row[-4] for row in tables["Publish to confirm: slowest"]} == {"(default)"}
    written = page.read_text(encoding="utf-8")
    found = Page(written).tables
    assert [row[0] for row in found["Exchanges"][1:]] == ["(default)", "shop"]
    assert found["Routing keys"][1][:2] == ("(default)", "orders")
    assert {row[-4] for row in found["Publish to confirm: slowest"][1:]} == {"(default)"}
    assert "(empty)" not in shown + written
    assert any("(default)" in str(layout) for _, layout in charts_of(written))
    assert json.loads(run(troubles, "--format", "json", code=1))["exchanges"]["rows"][0]["exchange"] == ""


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
