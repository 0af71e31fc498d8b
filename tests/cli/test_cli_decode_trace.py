"""`amqpcodec decode --trace`: the messages of a trace, and what settled them, on each build."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from support.command import BUNNY, TROUBLE, Run

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture.model import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import settling

pytestmark = pytest.mark.usefixtures("build")

SECOND = 1_000_000_000
NOON = 1_795_348_800 * SECOND  # 2026-11-22 12:00 UTC
TRACE = "4bf92f3577b34da6a3ce929d0e0e4704"  # of the fourth order
SHORT = "a3ce929d0e0e4704"
WHOLE = [
    (0, "basic.publish"),
    (0, "basic.ack"),
    (1, "basic.deliver"),
    (3, "basic.deliver"),
    (1, "basic.ack"),
    (3, "basic.ack"),
    (2, "basic.deliver"),
    (2, "basic.ack"),
]


def message(made: Any, headers: dict[str, Any], body: bytes = b"a body") -> bytes:
    properties = amqp.BasicProperties(headers=headers)
    octets: bytes = amqp.encode_message(1, made, properties, body, frame_max=4096)
    return octets


def deliver(tag: int, headers: dict[str, Any], body: bytes = b"a body") -> tuple[int, bytes]:
    return 1, message(amqp.Basic.Deliver(consumer_tag="c", delivery_tag=tag), headers, body)


def capture_of(path: Path, *said: tuple[int, bytes]) -> Path:
    with path.open("wb") as file:
        ends = (Endpoint(bytes((10, 0, 0, number)), port) for number, port in ((1, 40001), (9, 5672)))
        talk = Conversation(PacketWriter(file), *ends, NOON, 1)
        talk.send(0, amqp.protocol_header(), NOON)
        for at, (direction, octets) in enumerate(said, 1):
            talk.send(direction, octets, NOON + at * SECOND)
        talk.close(NOON + 60 * SECOND)
    return path


def of_trace(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(row["connection"], row["method"]) for row in rows if row["method"]]


def test_the_messages_of_a_trace_are_shown_with_what_settled_them(run: Run) -> None:
    rows = run.rows(TROUBLE, "--trace", TRACE, code=1)
    assert of_trace(rows) == WHOLE
    assert [row["kind"] for row in rows if row["connection"] == 2] == ["method", "header", "body", "method"]
    assert {row["kind"] for row in rows if not row["method"]} == {"header", "body", "error", "lost", "gap"}
    assert {row["body"] for row in rows if row["kind"] == "body"} == {b'{"order": 4}'.hex()}


def test_as_messages_they_are_one_line_each(run: Run) -> None:
    rows = run.rows(TROUBLE, "--trace", TRACE, "--messages", code=1)
    assert of_trace(rows) == WHOLE
    assert [row["kind"] for row in rows if row["method"]] == [
        "method" if name == "basic.ack" else "message" for _, name in WHOLE
    ]
    assert len({tuple(row) for row in rows}) == 1
    assert [row["queue"] for row in rows if row["method"] == "basic.deliver"] == ["mail", "stock", "billing"]


@pytest.mark.parametrize("given", [TRACE, TRACE.upper(), f"00-{TRACE}-0000000000000004-01"])
def test_a_trace_is_named_by_its_id_or_a_whole_header(run: Run, given: str) -> None:
    assert of_trace(run.rows(TROUBLE, "--trace", given, code=1)) == WHOLE


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        (SHORT, {"b3": f"{SHORT}-00f067aa0ba902b7-1"}),
        (SHORT, {"b3": f"{'0' * 16}{SHORT}-00f067aa0ba902b7"}),
        (SHORT, {"uber-trace-id": f"{SHORT}:1:0:1"}),
        ("the trace", {"sw8": f"1-{base64.b64encode(b'the trace').decode()}-c2Vn-3-a-b-c-d"}),
    ],
)
def test_every_tracer_s_header_is_read(run: Run, tmp_path: Path, given: str, headers: dict[str, Any]) -> None:
    path = capture_of(tmp_path / "made.pcap", deliver(1, headers), deliver(2, {}), deliver(3, {"b3": "x"}))
    rows = run.rows(path, "--trace", given)
    assert [row["kind"] for row in rows] == ["method", "header", "body"]
    assert rows[0]["fields"]["delivery_tag"] == 1


def test_an_answer_for_many_is_shown_once_if_one_of_them_is_of_the_trace(run: Run, tmp_path: Path) -> None:
    of, other = {"b3": f"{SHORT}-00f067aa0ba902b7"}, {"b3": f"{SHORT[::-1]}-00f067aa0ba902b7"}
    ack, early = amqp.Basic.Ack(delivery_tag=4, multiple=True), amqp.Basic.Ack(delivery_tag=1)
    path = capture_of(
        tmp_path / "made.pcap",
        deliver(1, other),
        deliver(2, of),
        deliver(3, other),
        deliver(4, of),
        (0, amqp.encode_method(1, early)),
        (0, amqp.encode_method(1, ack)),
        (0, amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=9, multiple=True))),
    )
    rows = run.rows(path, "--trace", SHORT)
    assert [row["fields"]["delivery_tag"] for row in rows if row["fields"]] == [2, 4, 4]


def test_published_messages_of_others_are_counted(run: Run, tmp_path: Path) -> None:
    publish = amqp.Basic.Publish(exchange="e")
    of = {"b3": f"{SHORT}-00f067aa0ba902b7"}
    path = capture_of(
        tmp_path / "made.pcap",
        (0, amqp.encode_method(1, amqp.Confirm.Select())),
        (0, message(publish, {})),
        (0, message(publish, of)),
        (1, amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=1))),
        (1, amqp.encode_method(1, amqp.Basic.Nack(delivery_tag=2))),
    )
    assert [row["method"] for row in run.rows(path, "--trace", SHORT, "--messages")] == [
        "basic.publish",
        "basic.nack",
    ]


def test_messages_of_others_that_were_fetched_are_counted(run: Run, tmp_path: Path) -> None:
    of = {"b3": f"{SHORT}-00f067aa0ba902b7"}
    path = capture_of(
        tmp_path / "made.pcap",
        (0, amqp.encode_method(1, amqp.Basic.Get(queue="a", no_ack=True))),
        (1, message(amqp.Basic.GetOk(delivery_tag=1), {})),
        (0, amqp.encode_method(1, amqp.Basic.Get(queue="b"))),
        (1, message(amqp.Basic.GetOk(delivery_tag=2), of)),
        (0, amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=2))),
    )
    rows = run.rows(path, "--trace", SHORT, "--messages")
    assert [row["method"] for row in rows] == ["basic.get-ok", "basic.ack"]


def test_a_body_in_several_frames_is_shown_whole(run: Run, tmp_path: Path) -> None:
    of = {"b3": f"{SHORT}-00f067aa0ba902b7"}
    path = capture_of(tmp_path / "made.pcap", deliver(1, of, b"x" * 9000), deliver(2, {}, b"y" * 9000))
    assert [row["kind"] for row in run.rows(path, "--trace", SHORT)] == ["method", "header", *["body"] * 3]


def test_a_message_that_is_cut_off_is_shown_as_far_as_it_came(run: Run, tmp_path: Path) -> None:
    direction, octets = deliver(1, {"b3": f"{SHORT}-00f067aa0ba902b7"})
    path = capture_of(tmp_path / "made.pcap", (direction, octets[:-14]))
    [row] = run.rows(path, "--trace", SHORT, "--messages")
    assert (row["kind"], row["complete"], row["body_size"]) == ("message", False, 6)
    assert [row["kind"] for row in run.rows(path, "--trace", SHORT)] == ["method", "header"]


def test_other_choices_hold_as_well_and_an_answer_is_chosen_with_its_message(run: Run) -> None:
    rows = run.rows(TROUBLE, "--trace", TRACE, "--queue", "billing", "--messages", code=1)
    assert of_trace(rows) == WHOLE[-2:]
    assert of_trace(run.rows(TROUBLE, "--trace", TRACE, "--connection", "0")) == WHOLE[:2]
    assert of_trace(run.rows(TROUBLE, "--trace", TRACE, "--until", "10:15:10", code=1)) == WHOLE[:6]
    assert of_trace(run.rows(TROUBLE, "--trace", TRACE, "--method", "basic.publish", code=1)) == WHOLE[:2]


def test_the_count_is_of_messages_where_those_are_shown(run: Run) -> None:
    assert run(TROUBLE, "--trace", TRACE, "--messages", "--count", "--connection", "1") == ["1"]
    assert run(TROUBLE, "--trace", TRACE, "--count", "--connection", "1") == ["4"]
    assert len(run(TROUBLE, "--trace", TRACE, "--messages", "--limit", "2", "--until", "10:15:06")) == 0
    assert len(run(TROUBLE, "--trace", TRACE, "--messages", "--limit", "2", "--since", "10:15:08")) == 3


def test_the_summary_is_of_the_trace(run: Run) -> None:
    lines = run(TROUBLE, "--trace", TRACE, "--summary", code=1)
    assert "methods      4 basic.ack, 3 basic.deliver, 1 basic.publish" in lines


def test_a_trace_that_is_not_there_is_told_with_the_nearest_or_with_one_that_is(run: Run) -> None:
    run(TROUBLE, "--trace", TRACE[:-1] + "f", "--connection", "0")
    assert run.err.endswith(f"; the nearest name is '{TRACE[:-2]}0a'\n")
    run(TROUBLE, "--trace", "another", "--connection", "0")
    assert run.err.endswith(
        f"no message in it names the trace 'another'; there are 10, such as '{TRACE[:-1]}1'\n"
    )
    run(BUNNY, "--trace", "another")
    assert run.err.endswith("no message in it names the trace 'another'; none names any\n")


def test_messages_that_are_too_many_to_follow_are_counted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MOST_WAITING", 2)
    of = {"b3": f"{SHORT}-00f067aa0ba902b7"}
    ack = amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=3))
    path = capture_of(tmp_path / "made.pcap", *(deliver(tag, of) for tag in (1, 2, 3)), (0, ack))
    assert [row["method"] for row in run.rows(path, "--trace", SHORT, "--messages")] == ["basic.deliver"] * 3
    assert "messages without their answers: 1; " in run.err


def test_what_is_closed_is_not_remembered(tmp_path: Path, run: Run) -> None:
    """The numbers of a channel begin again when it is opened again."""
    of = {"b3": f"{SHORT}-00f067aa0ba902b7"}
    path = capture_of(
        tmp_path / "made.pcap",
        deliver(1, of),
        (0, amqp.encode_method(1, amqp.Channel.Close(reply_code=200))),
        (1, amqp.encode_method(1, amqp.Channel.CloseOk())),
        (0, amqp.encode_method(1, amqp.Channel.Open())),
        deliver(1, {}),
        (0, amqp.encode_method(1, amqp.Basic.Ack(delivery_tag=1))),
    )
    assert [row["method"] for row in run.rows(path, "--trace", SHORT, "--messages")] == ["basic.deliver"]
