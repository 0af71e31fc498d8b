"""`amqpcodec decode`: what is chosen of a capture, as frames, as messages and as counts, on each build."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from amqpcodec.cli import main
from amqpcodec.cli.moments import moment

pytestmark = pytest.mark.usefixtures("build")

NOON_NS = 1_795_348_800_000_000_000
MESSAGES = ["publish", "publish", "deliver", "deliver", "get-ok", "publish"]


class Run:
    """Calls the command in this process; the capture ends in a frame that is cut, so its code is 1."""

    def __init__(self, capsys: pytest.CaptureFixture[str], path: Path) -> None:
        self._capsys, self._path = capsys, path

    def __call__(self, *arguments: str, code: int = 0) -> list[str]:
        assert main(["decode", str(self._path), *arguments]) == code
        self.out, self.err = self._capsys.readouterr()
        return self.out.splitlines()

    def rows(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--format", "jsonl", code=code)]

    def names(self, *arguments: str, code: int = 0) -> list[str]:
        """What methods there are, without their class."""
        rows = self.rows(*arguments, code=code)
        return [row["method"].partition(".")[2] for row in rows if row["method"]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], broker: Path) -> Run:
    return Run(capsys, broker)


def test_lines_have_the_date(run: Run) -> None:
    assert run(code=1)[0].startswith("2026-11-22 12:00:01.000000  #0 10.0.0.1:40001 > 10.0.0.9:5672  ch 0")


def test_messages_are_one_line_each_with_method_properties_and_body(run: Run) -> None:
    lines = run("--messages", code=1)
    assert lines[0] == (
        "2026-11-22 12:00:08.000000  #1 10.0.0.2:40002 > 10.0.0.9:5672  ch 1  message   basic.publish "
        "exchange='events' routing_key='a.b' mandatory=false immediate=false content_type='text/plain' "
        "3 bytes 'one'"
    )
    assert [line.split("basic.")[1].split(" ")[0] for line in lines if "basic." in line] == MESSAGES
    assert lines[-2].endswith(" content_type='text/plain' 0 of 7 bytes '' incomplete")
    assert " lost      the stream ends inside this frame " in lines[-1]


def test_messages_know_the_queue_that_they_come_from_or_go_to(run: Run) -> None:
    rows = run.rows("--messages", code=1)
    assert [row.pop("queue") for row in rows] == [None, "orders", "orders", "audit", "audit", None, None]
    assert [row["complete"] for row in rows] == [True] * 5 + [False, None]
    assert [row["frames"] for row in rows] == [3, 3, 3, 3, 2, 2, None]
    assert [row["kind"] for row in rows] == ["message"] * 6 + ["lost"]
    assert rows[0]["body"] == b"one".hex()
    assert rows[4]["body"] == ""
    assert len({tuple(row) for row in rows}) == 1


def test_methods_that_no_message_begins_with_are_refused_where_messages_are_shown(run: Run) -> None:
    assert run("--messages", "--method", "queue.declare", code=2) == []
    assert run.err.startswith("amqpcodec: no message begins with queue.declare; without --messages ")
    assert run.names("--messages", "--method", "basic.*", code=1) == MESSAGES


def test_few_octets_of_a_body_are_shown_if_few_are_asked_for(run: Run) -> None:
    assert run("--messages", "--body-bytes", "2", code=1)[0].endswith("3 bytes 'on'...(+1)")
    assert run.rows("--messages", "--body-bytes", "2", code=1)[0]["body"] == b"on".hex()


@pytest.mark.parametrize(
    "which",
    [
        "0",
        "#0",
        "10.0.0.1",
        "10.0.0.1:40001",
        "10.0.0.1:40001-10.0.0.9:5672",
        "10.0.0.9:5672-10.0.0.1",
        "10.0.0.1:40001 -> 10.0.0.9:5672",
        "10.0.0.1:40001 > 10.0.0.9:5672",
        "10.0.0.1:40001 <-> 10.0.0.9:5672",
    ],
)
def test_a_connection_is_chosen_by_number_or_by_its_ends(run: Run, which: str) -> None:
    assert {row["client"] for row in run.rows("--connection", which)} == {"10.0.0.1:40001"}


def test_several_connections_are_chosen(run: Run) -> None:
    everything = run(code=1)
    assert run("--connection", "0", "--connection", "1", code=1) == everything
    assert run("--connection", "10.0.0.9", code=1) == everything


@pytest.mark.parametrize("which", ["", "x", "10.0.0.1:70000", "10.0.0.300", "1-2-3", "10.0.0.1:1-"])
def test_what_names_no_connection_is_refused(
    run: Run, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--connection", which)
    assert "names no connection; one is 3 (tcp.stream)" in capsys.readouterr().err


def test_a_queue_brings_what_names_it_and_what_its_consumers_get(run: Run) -> None:
    assert run.names("--queue", "orders", code=1) == [
        "declare", "declare-ok", "consume", "consume-ok", "publish", "deliver",
    ]  # fmt: skip
    assert run.names("--queue", "aud*", code=1) == ["consume", "deliver", "get", "get-ok"]
    assert [row["body"] for row in run.rows("--queue", "audit", code=1) if row["kind"] == "body"] == [
        b"three".hex()
    ]
    assert len(run("--queue", "audit", "--messages", code=1)) == 3


def test_an_exchange_brings_what_names_it(run: Run) -> None:
    assert run.names("--exchange", "events", code=1) == ["publish", "deliver", "deliver", "get-ok", "publish"]
    assert run.names("--exchange", "", code=1) == ["publish"]
    assert run.names("--exchange", "", "--exchange", "ev*", code=1) == MESSAGES


def test_conditions_of_several_kinds_all_have_to_hold(run: Run) -> None:
    assert run.names("--exchange", "events", "--method", "basic.deliver", "--queue", "audit", code=1) == [
        "deliver"
    ]
    assert run.names("--exchange", "events", "--connection", "1", "--until", "12:00:10") == ["publish"]


@pytest.mark.parametrize(
    ("since", "until", "bodies"),
    [
        ("2026-11-22T12:00:09Z", "2026-11-22T12:00:11Z", ["two", "one"]),
        ("2026-11-22 13:00:09+01:00", "2026-11-22 12:00:10.000000001", ["two", "one"]),
        ("12:00:09", "12:00:10", ["two"]),
        ("+8", "+9s", ["two"]),
        ("1795348809", "1795348810.5", ["two", "one"]),
        ("2026-11-22", "2026-11-23", ["one", "two", "one", "three"]),
        ("2026-11-23", None, []),
        (None, "2026-11-22", []),
    ],
)
def test_times_are_absolute_of_the_day_or_behind_the_first(
    run: Run, since: str | None, until: str | None, bodies: list[str]
) -> None:
    bounds = [*(["--since", since] if since else []), *(["--until", until] if until else [])]
    rows = run.rows(*bounds, code=1 if until == "2026-11-23" else 0)
    assert [bytes.fromhex(row["body"]).decode() for row in rows if row["kind"] == "body"] == bodies


def test_times_behind_the_first_count_from_the_first_of_the_file(run: Run) -> None:
    every = run.rows(code=1)
    second = [row for row in every if row["connection"] == 1]
    assert second[0]["time_ns"] > every[0]["time_ns"]
    offset = (second[-1]["time_ns"] - every[0]["time_ns"]) / 1e9
    rows = run.rows("--connection", "1", "--until", f"+{offset}s")
    assert rows == [row for row in second if row["time_ns"] < second[-1]["time_ns"]]


def test_times_of_which_there_is_nothing_are_told_with_those_there_are(run: Run) -> None:
    assert run("--since", "2031-01-01") == []
    assert "nothing in it is of that time; its frames are from 2026-11-22 12:00:01.000000 to 2026-" in run.err
    assert run("--since", "+9s", "--until", "+2s") == []
    assert run.err.endswith("no time is behind --since and before --until\n")


def test_a_file_that_is_cut_is_told_whatever_time_is_chosen(run: Run, broker: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(broker.read_bytes()[:-3])
    cut_run = Run(run._capsys, cut)
    assert " file      the last record is cut off " in cut_run("--until", "+2s", code=1)[-1]


def test_a_time_is_exact_to_the_nanosecond() -> None:
    assert moment("2026-11-22T12:00:00.123456789Z").at(0) == NOON_NS + 123_456_789
    assert moment("12:00:00.5").at(NOON_NS + 1) == NOON_NS + 500_000_000
    assert moment("+1.5m").at(NOON_NS) == NOON_NS + 90_000_000_000
    assert moment("1795348800").at(0) == NOON_NS
    assert moment("12").at(NOON_NS) == 12_000_000_000


@pytest.mark.parametrize("text", ["", "x", "2026-02-30", "25:00", "12:60", "+", "yesterday", "+1w", "1e3"])
def test_what_is_no_time_is_refused(run: Run, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--since", text)
    assert "is no time; a time is 2026-11-22T10:15:03.5" in capsys.readouterr().err


def test_a_stream_has_no_times_to_choose_by(run: Run) -> None:
    assert run("--input", "stream", "--since", "12:00", code=2) == []
    assert run.err.endswith("the bytes of a stream have none\n")


def test_the_count_is_a_number_alone_and_leaves_out_faults(run: Run, broker: Path) -> None:
    assert run("--count", code=1) == [str(len(run(code=1)) - 1)]
    assert run("--count", "--messages", code=1) == ["6"]
    assert (
        run.err
        == f"amqpcodec: {str(broker)!r}: faults that are not counted: 1; without --count they are shown\n"
    )
    assert run("--count", "--method", "basic.publish", "--messages", "--until", "12:00:10") == ["2"]
    assert run.err == ""
    assert run.rows("--count", "--messages", code=1) == [{"file": str(broker), "count": 6, "faults": 1}]
    assert run(str(broker), "--count", "--messages", code=1) == [f"{broker}:6"] * 2
    assert run("--count", "--summary", code=2) == []


def test_a_limit_ends_after_so_many(run: Run, broker: Path) -> None:
    everything = run(code=1)
    assert run("--limit", "3") == everything[:3]
    assert (
        run("-c", "1", "--method", "basic.deliver") == [line for line in everything if "deliver" in line][:1]
    )
    assert run(str(broker), "--limit", str(len(everything)), code=1) == [*everything, everything[0]]
    assert run("--limit", "5", "--count") == ["5"]
    assert len(run("--limit", "2", "--messages")) == 2


def test_a_queue_that_is_not_there_is_named_with_the_nearest(run: Run, broker: Path) -> None:
    start = f"amqpcodec: {str(broker)!r}: "
    run("--queue", "order", code=1)
    assert run.err == f"{start}no queue in it fits 'order'; the nearest name is 'orders'\n"
    run("--queue", "order", "--queue", "zzz", code=1)
    assert (
        run.err == f"{start}no queue in it fits 'order'; the nearest name is 'orders'\n"
    )  # the first is named
    run("--exchange", "Events", code=1)
    assert run.err == f"{start}no exchange in it fits 'Events'; the nearest name is 'events'\n"
    run("--connection", "7")
    assert run.err == f"{start}no such connection; those with AMQP are numbered 0 to 1\n"
    assert " lost " in run("--queue", "orders", "--channel", "9", code=1)[0]
    assert run.err == ""  # the queue is there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "basic.pubish"], "no method fits 'basic.pubish'; the nearest name is 'basic.publish'"),
        (["--method", "publish"], "no method fits 'publish'; the nearest name is 'basic.publish'"),
        (["--method", "zzzzz*"], "no method fits 'zzzzz*'\n"),
        (["--metod=x"], "unrecognized arguments: --metod=x; the nearest name is '--method'"),
        (["--dialect", "amqp-091"], "the nearest name is 'amqp-0-9-1'"),
        (["--format", "json"], "the nearest name is 'jsonl'"),
        (["--limit", "0"], "'0' is no number: it is a whole number, at least 1"),
    ],
)
def test_what_does_not_exist_is_named_with_the_nearest(
    run: Run, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(*arguments)
    shown = capsys.readouterr().err
    assert message in shown
    assert re.search("^amqpcodec decode: error: ", shown)
    assert shown.endswith("amqpcodec decode --help shows what there is\n")
