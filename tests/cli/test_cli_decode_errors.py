"""`amqpcodec decode --errors`: what went wrong, and before each what came before it, on each build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command import BUNNY, TROUBLE, Run

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture.model import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import problems, settling

pytestmark = pytest.mark.usefixtures("build")

SECOND = 1_000_000_000
NOON = 1_795_348_800 * SECOND  # 2026-11-22 12:00 UTC
Said = tuple[int, bytes]
Make = Callable[..., Path]


def method(made: Any, channel: int = 1) -> bytes:
    octets: bytes = amqp.encode_method(channel, made)
    return octets


def message(made: Any, body: bytes, channel: int = 1) -> bytes:
    octets: bytes = amqp.encode_message(channel, made, amqp.BasicProperties(), body, frame_max=4096)
    return octets


def deliver(tag: int, channel: int = 1, body: bytes = b"a body") -> Said:
    made = amqp.Basic.Deliver(consumer_tag="c", delivery_tag=tag, exchange="shop", routing_key="a")
    return 1, message(made, body, channel)


def publish(key: str, channel: int = 1, exchange: str = "shop") -> Said:
    return 0, message(amqp.Basic.Publish(exchange=exchange, routing_key=key), b"a body", channel)


def nack(tag: int, multiple: bool = False, channel: int = 1) -> Said:
    return 0, method(amqp.Basic.Nack(delivery_tag=tag, multiple=multiple, requeue=False), channel)


def close(channel: int, code: int) -> Said:
    return 1, method(amqp.Channel.Close(reply_code=code, reply_text="why"), channel)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a capture of connections that all say the same, a second between two things said."""

    def write(*said: Said, connections: int = 1) -> Path:
        path = tmp_path / "made.pcap"
        server = Endpoint(bytes((10, 0, 0, 9)), 5672)
        with path.open("wb") as file:
            packets = PacketWriter(file)
            for number in range(connections):
                client = Endpoint(bytes((10, 0, 0, 1)), 40001 + number)
                talk = Conversation(packets, client, server, NOON, number)
                talk.send(0, amqp.protocol_header(), NOON)
                for at, (direction, octets) in enumerate(said, 1):
                    talk.send(direction, octets, NOON + at * SECOND)
                talk.close(NOON + 60 * SECOND)
        return path

    return write


def shown(lines: list[str]) -> list[list[str]]:
    """The groups of lines, each line as its channel, its kind, and its first word."""
    found: list[list[str]] = [[]]
    for line in lines:
        if not line:
            found.append([])
            continue
        _, _, rest = line.partition(" 10.0.0.9:5672  ")
        channel, kind, contents = rest[3:5].strip(), rest[6:16].strip(), rest[16:]
        found[-1].append(f"{channel} {kind if kind != 'method' else contents.split()[0]}")
    return found


def test_everything_that_went_wrong_is_found_once(run: Run) -> None:
    rows = run.rows(TROUBLE, "--errors", code=1)
    found = Counter(row["problem"] for row in rows if row["kind"] not in ("header", "body"))
    assert found.pop(None) > 20
    assert found == {
        "requeued": 5,
        "closed": 3,
        "returned": 1,
        "reject": 1,
        "refused": 1,
        "cancelled": 1,
        "blocked": 1,
        "error": 1,
        "lost": 1,
        "gap": 1,
    }
    assert {row["reply_code"] for row in rows if row["problem"] == "error"} == {501}


def test_nothing_is_shown_twice(run: Run) -> None:
    for name, code in ((TROUBLE, 1), (BUNNY, 0)):
        rows = run.rows(name, "--errors", code=code)
        places = [(row["connection"], row["direction"], row["offset"], row["kind"]) for row in rows]
        assert len(places) == len(set(places))


def test_before_a_close_there_are_the_frames_of_its_channel(run: Run, make: Make) -> None:
    path = make(
        publish("other", channel=2), publish("a"), publish("other", channel=2), publish("b"), close(1, 404)
    )
    group = ["1 basic.publish", "1 header", "1 body", "1 channel.close"]
    assert shown(run(path, "--errors")) == [group]
    assert shown(run(path, "--errors", "--before", "6")) == [[*group[:3], *group]]
    assert shown(run(path, "--errors", "--before", "0")) == [group[-1:]]


def test_before_the_end_of_a_connection_there_are_the_frames_of_all_its_channels(
    run: Run, make: Make
) -> None:
    end = method(amqp.Connection.Close(reply_code=320, reply_text="stopped"), 0)
    path = make(publish("a", channel=2), (0, method(amqp.Channel.Open(), 1)), (1, end))
    frames = ["0 protocol", "2 basic.publish", "2 header", "2 body", "1 channel.open"]
    assert shown(run(path, "--errors")) == [[*frames, "0 connection.close"]]


@pytest.mark.parametrize("code", [0, 200])
def test_an_end_without_an_error_is_none(run: Run, make: Make, code: int) -> None:
    path = make(publish("a"), close(1, code))
    assert run(path, "--errors") == []
    assert run.err.endswith(
        ": nothing went wrong in what was looked at; amqpcodec stats finds what is slow, or stuck\n"
    )


def test_a_refusal_is_beside_the_message_that_it_is_about(run: Run, make: Make) -> None:
    path = make(*(deliver(tag, body=b"number %d" % tag) for tag in range(1, 21)), nack(3))
    lines = run(path, "--errors")
    assert shown(lines) == [["1 basic.deliver", "1 header", "1 body", "1 basic.nack"]]
    assert "delivery_tag=3 " in lines[0]
    assert lines[2].endswith("8 bytes 'number 3'")


def test_of_many_messages_that_are_refused_at_once_the_last_are_shown(run: Run, make: Make) -> None:
    path = make(*map(deliver, range(1, 21)), nack(20, multiple=True))
    rows = run.rows(path, "--errors", "--before", "6")
    assert [row["fields"]["delivery_tag"] for row in rows if row["fields"]] == [19, 20, 20]
    rows = run.rows(path, "--errors", "--before", "2")
    assert [row["kind"] for row in rows] == ["method", "header", "method"]


def test_a_refusal_of_a_message_that_was_not_recorded_has_what_came_before(run: Run, make: Make) -> None:
    assert shown(run(make(deliver(8), nack(7)), "--errors")) == [
        ["1 basic.deliver", "1 header", "1 body", "1 basic.nack"]
    ]


def test_refusals_by_the_broker_are_beside_what_was_published(run: Run, make: Make) -> None:
    refusal = 1, method(amqp.Basic.Nack(delivery_tag=2))
    path = make((0, method(amqp.Confirm.Select())), publish("a"), publish("b"), publish("c"), refusal)
    rows = run.rows(path, "--errors")
    assert [row["fields"].get("routing_key") for row in rows if row["fields"]] == ["b", None]
    assert [row["problem"] for row in rows] == [None, None, None, "refused"]


def test_a_returned_message_is_shown_with_its_content(run: Run, make: Make) -> None:
    back = amqp.Basic.Return(reply_code=312, reply_text="NO_ROUTE", exchange="shop", routing_key="z")
    path = make(publish("z"), (1, message(back, b"a body")), publish("a"))
    rows = run.rows(path, "--errors")
    assert [row["kind"] for row in rows] == ["method", "header", "body"] * 2
    assert [row["problem"] for row in rows] == [None] * 3 + ["returned"] * 3
    assert run(path, "--errors", "--count") == ["1"]


def test_a_frame_out_of_order_is_an_error_of_the_protocol(run: Run, make: Make) -> None:
    path = make(publish("a"), publish("b"), (0, amqp.encode_body(1, b"too much")))
    lines = run(path, "--errors", code=1)
    assert [each.partition(" ")[2] for each in shown(lines)[0]][-2:] == ["body", "error"]
    assert " 505 " in lines[-1]


def test_other_problems_are_named(run: Run, make: Make) -> None:
    path = make(
        (1, method(amqp.Connection.Blocked(reason="low on memory"), 0)),
        (1, method(amqp.Basic.Cancel(consumer_tag="c"))),
        (0, method(amqp.Basic.Cancel(consumer_tag="c"))),
        (0, method(amqp.Basic.Reject(delivery_tag=1, requeue=True))),
        (0, method(amqp.Basic.Reject(delivery_tag=1, requeue=False))),
        (1, amqp.protocol_header()),
    )
    found = [row["problem"] for row in run.rows(path, "--errors", code=1) if row["problem"]]
    assert found == ["blocked", "cancelled", "requeued", "reject", "error", "lost"]


def test_a_broker_that_refuses_the_version_sends_its_own(run: Run, make: Make) -> None:
    assert [row["problem"] for row in run.rows(make((1, amqp.protocol_header())), "--errors")] == [
        None,
        "version",
    ]


def test_every_line_has_the_same_keys_and_one_more_than_without(run: Run) -> None:
    [keys] = {tuple(row) for row in run.rows(TROUBLE, "--errors", code=1)}
    [usual] = {tuple(row) for row in run.rows(BUNNY)}
    assert keys == (*usual, "problem")


def test_choices_are_about_what_went_wrong_and_not_about_what_came_before(run: Run, make: Make) -> None:
    path = make(*map(deliver, (1, 2)), nack(1), deliver(3, channel=2), nack(3, channel=2), close(2, 406))
    both = run(path, "--errors")
    assert run(path, "--errors", "--channel", "1") == both[:4]
    assert shown(run(path, "--errors", "--method", "channel.close")) == [
        ["2 basic.deliver", "2 header", "2 body", "2 basic.nack", "2 channel.close"]
    ]
    assert run(path, "--errors", "--until", "12:00:04") == both[:4]
    assert len(run(path, "--errors", "--since", "12:00:05", "--before", "0")) == 2
    assert run(path, "--errors", "--connection", "1") == []
    assert "no such connection" in run.err


def test_what_became_of_a_message_is_chosen_as_the_message_is(run: Run) -> None:
    rows = run.rows(TROUBLE, "--errors", "--queue", "stock", code=1)
    assert {row["problem"] for row in rows if row["kind"] == "method"} == {None, "requeued", "reject"}
    rows = run.rows(TROUBLE, "--errors", "--exchange", "shop", "--channel", "1", "--connection", "0")
    assert Counter(row["problem"] for row in rows if row["kind"] == "method" and row["problem"]) == {
        "returned": 1,
        "refused": 1,
    }
    assert run.rows(TROUBLE, "--errors", "--exchange", "telemetry", "--connection", "0") == []


def test_the_count_and_the_limit_are_of_problems(run: Run) -> None:
    assert run(TROUBLE, "--errors", "--count", code=1) == ["16"]
    assert run.err == ""
    everything = run(TROUBLE, "--errors", code=1)
    first = run(TROUBLE, "--errors", "--limit", "1")
    assert first == everything[: len(first)]
    assert " connection.close reply_code=403 " in first[-1]


@pytest.mark.parametrize(
    ("others", "why"),
    [
        (["--messages"], "a close or a refusal is no message"),
        (["--trace", "ab"], "two choices"),
        (["--summary"], "nothing but a summary"),
    ],
)
def test_what_does_not_go_together_is_refused(run: Run, others: list[str], why: str) -> None:
    assert run(BUNNY, "--errors", *others, code=2) == []
    assert why in run.err


def test_how_many_lines_come_before_is_only_said_of_errors(run: Run) -> None:
    assert run(BUNNY, "--before", "3", code=2) == []
    assert run.err == "amqpcodec: --before is about what --errors shows\n"


def test_a_stream_without_times_has_errors_too(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "stream.amqp"
    path.write_bytes(close(1, 404)[1] + b"\x01\0\1\0\0\0\4garb\xce")
    rows = run.rows(path, "--input", "stream", "--direction", "1", "--errors", code=1)
    assert [row["problem"] for row in rows] == ["closed", "error"]


def test_large_bodies_are_cut_before_they_are_kept(run: Run, make: Make) -> None:
    path = make(deliver(1, body=b"x" * 4000), nack(1), deliver(2, body=b"y" * 4000), nack(2))
    bodies = [row for row in run.rows(path, "--errors", "--body-bytes", "9999") if row["kind"] == "body"]
    assert [(row["size"], len(row["body"])) for row in bodies] == [(4000, 2048)] * 2
    assert run(path, "--errors")[2].endswith(f"4000 bytes {'x' * 64!r}...(+3936)")


def test_memory_is_bounded_and_what_is_forgotten_is_said(
    run: Run, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(publish("a"), deliver(1), nack(1), connections=3)
    assert len(shown(run(path, "--errors"))) == 3
    monkeypatch.setattr(problems, "MOST_OCTETS", 4 * problems._MEMORY_OF_FRAME)
    run(path, "--errors")
    assert run.err.endswith("what came before was forgotten 6 times, to save memory\n")


def test_what_has_ended_takes_no_memory(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(deliver(1), deliver(2), nack(1), connections=5)
    monkeypatch.setattr(problems, "MOST_OCTETS", 12 * problems._MEMORY_OF_FRAME)
    monkeypatch.setattr(settling, "MOST_WAITING", 2)
    assert len(shown(run(path, "--errors"))) == 5
    assert run.err == ""


def test_publishes_are_not_numbered_any_more_once_some_are_missing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    with path.open("wb") as file:
        ends = (Endpoint(bytes((10, 0, 0, number)), port) for number, port in ((1, 40001), (9, 5672)))
        talk = Conversation(PacketWriter(file), *ends, NOON, 1)
        talk.send(0, amqp.protocol_header() + method(amqp.Confirm.Select()) + publish("a")[1], NOON)
        talk.skip(0, len(publish("lost")[1]), NOON + 1)
        talk.send(0, publish("c")[1] + publish("d")[1], NOON + 2)
        talk.send(1, method(amqp.Basic.Nack(delivery_tag=2)), NOON + 3)
        talk.close(NOON + 4)
    rows = run.rows(path, "--errors", "--before", "3", code=1)
    before = [row["fields"]["routing_key"] for row in rows if row["method"] == "basic.publish"]
    assert before[-1] == "d"  # what came last, since nobody knows which message was the second


def test_messages_that_are_too_many_to_follow_are_counted(
    run: Run, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MOST_WAITING", 2)
    path = make(*map(deliver, range(1, 6)), nack(5))
    assert len(run(path, "--errors")) == 4  # what came before, since the message is not known
    assert run.err.endswith(
        "messages without their answers: 3; more than 2 messages, or 64 MiB, waited for one\n"
    )


def test_octets_that_are_kept_are_counted(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MOST_OCTETS", 10_000)
    path = make(*map(deliver, range(1, 6)), nack(1), nack(2), nack(5))
    run(path, "--errors")
    assert "messages without their answers: 3; " in run.err
    path = make(*(each for tag in range(1, 9) for each in (deliver(tag), nack(tag))))
    run(path, "--errors")
    assert run.err == ""  # what is settled is forgotten
