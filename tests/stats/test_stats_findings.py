"""The problems that are found in captures, and the verdict on them."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest
from support import make_capture as make
from support.troubled import Talk, _message, calm, troubled

from amqpcodec import rabbitmq as amqp
from amqpcodec import stats
from amqpcodec.stats.findings import findings, lasting

EXAMPLES = Path(__file__).parents[2] / "examples"


def _summary(truth: make.Truth | Path, folder: Path, **options: int) -> stats.Summary:
    path = folder / "made.pcap"
    if isinstance(truth, Path):
        path = truth
    else:
        path.write_bytes(make.pcap(truth.packets, nanos=True))
    collector = stats.Collector(**options)  # type: ignore[arg-type]
    collector.add(path, path.name)
    return collector.summary()


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> stats.Summary:
    return _summary(troubled(), tmp_path_factory.mktemp("captures"))


def test_every_problem_is_found_with_its_number(summary: stats.Summary) -> None:
    assert {each.code: (each.severity, each.count) for each in summary.findings} == {
        "closed-by-error": ("error", 1),
        "not-opened": ("error", 1),
        "blocked": ("error", 1),
        "frames-in-error": ("error", 1),
        "publish-refused": ("error", 1),
        "ended-without-close": ("warning", 1),
        "silent": ("warning", 2),
        "returned": ("warning", 2),
        "rejected": ("warning", 1),
        "redelivered": ("warning", 5),
        "unacknowledged": ("warning", 28),
        "slow-confirms": ("warning", 40),
        "slow-acks": ("warning", 2),
        "growing-queues": ("warning", 1),
        "open-at-the-end": ("note", 1),
        "no-delivery": ("note", 1),
    }


def test_findings_say_what_and_who(summary: stats.Summary) -> None:
    texts = {each.code: each.text for each in summary.findings}
    assert texts["closed-by-error"] == (
        "1 connection closed by an error: 530 NOT_ALLOWED by the server, once."
    )
    assert texts["blocked"].startswith("1 block of publishers by the broker, for 4 s in all")
    assert texts["publish-refused"].endswith("of 10 messages whose answer could be followed.")
    assert texts["unacknowledged"].startswith("28 of 30 deliveries")
    assert texts["growing-queues"] == "1 queue that only grew: orders from 0 to 30 messages."
    assert texts["returned"].endswith("312 NO_ROUTE.")
    assert "p99 " in texts["slow-acks"]


def test_the_verdict_names_the_worst(summary: stats.Summary) -> None:
    assert summary.verdict == (
        "14 problems found: 1 connection closed by an error, 1 connection never opened, 1 block of "
        "publishers by the broker, and 11 more problems."
    )


def test_what_happened_to_connections_is_listed(summary: stats.Summary) -> None:
    found = [
        (each.kind, each.flow, each.direction, each.duration_ns and each.duration_ns // 10**9, each.text)
        for each in summary.first_incidents
    ]
    assert sorted(found, key=str) == sorted(
        [
            ("blocked", 0, 1, 4, "low on memory"),
            ("ended-without-close", 1, None, None, None),
            ("refused", 2, None, None, "530 NOT_ALLOWED - vhost"),
            ("not-opened", 3, None, None, None),
            ("open-at-the-end", 4, None, None, None),
            ("silent", 4, 0, 20, "heartbeat 1 s"),
            ("silent", 4, 1, 26, "heartbeat 1 s"),
        ],
        key=str,
    )


def test_one_is_spoken_of_as_one(summary: stats.Summary) -> None:
    def ranked(ranking: stats.Ranking, **row: object) -> stats.Ranking:
        nothing = dict.fromkeys(ranking.counts, 0)
        keys = {**dict.fromkeys(ranking.keys), **nothing}
        return replace(ranking, rows=[{**keys, **row}], others=nothing)

    confirms = replace(summary.confirms, count=0, unanswered=2, waiting=1, unfollowed=1, percentiles={})
    queue = stats.QueueDepth("work", 1, 0, 0, 0, 0, 0, 1, 0)
    one = replace(
        summary,
        closings=ranked(summary.closings, scope="consumer", times=1),
        returns=ranked(summary.returns, reply_code=312, messages=1),
        redelivered=ranked(summary.redelivered, messages=1),
        faults=ranked(summary.faults, code="LOST", times=1, octets=1),
        settled=ranked(summary.settled, method="basic.ack"),
        incidents=replace(summary.incidents, rows=[]),
        confirms=confirms,
        acks=replace(summary.acks, count=0, unanswered=0, waiting=0, unfollowed=0, percentiles={}),
        depths=[queue],
    )
    assert {each.code: (each.brief, each.text) for each in findings(one)} == {
        "cancelled": (
            "1 consumer cancelled by the broker",
            "1 consumer cancelled by the broker, which it does when its queue goes away.",
        ),
        "lost": (
            "1 byte that belongs to no frame",
            "1 byte that belongs to no frame, in 1 place: damaged, encrypted, or not AMQP.",
        ),
        "returned": (
            "1 message returned",
            "1 message returned to the publisher, because no queue or consumer took it: 312.",
        ),
        "redelivered": (
            "1 redelivery",
            "1 redelivery: this message was delivered before, and not acknowledged.",
        ),
        "unconfirmed": (
            "1 unconfirmed message",
            "1 of 2 messages had not got a confirm when its channel or connection ended.",
        ),
        "unconfirmed-at-the-end": (
            "1 unconfirmed message at the end",
            "1 of 2 messages waited for a confirm when the recording ended.",
        ),
        "unfollowed": (
            "1 message not followed",
            "1 message could not be followed to an answer, and is in no latency.",
        ),
        "no-delivery": (
            "1 queue without a delivery",
            "1 queue without a delivery in this recording, though messages were published to it: work "
            "(1 published).",
        ),
    }


@pytest.mark.parametrize("ended", [True, False])
def test_a_block_that_lasts_is_listed_with_the_time_up_to_the_end(ended: bool, tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    talk.server(amqp.Connection.Blocked("low on memory"), 0)
    talk.wait(2)
    talk.client(amqp.Basic.Qos(prefetch_count=1))
    if ended:
        talk.goodbye()
    blocked = [each for each in _summary(truth, tmp_path).first_incidents if each.kind == "blocked"]
    assert [(each.flow, each.direction, each.text) for each in blocked] == [(0, 1, "low on memory")]
    assert blocked[0].duration_ns // 10**9 == 2


def test_short_lists_hide_no_problem(summary: stats.Summary, tmp_path: Path) -> None:
    short = _summary(troubled(), tmp_path, top=1)
    assert (short.findings, short.verdict) == (summary.findings, summary.verdict)
    assert len(short.first_incidents) == 6  # of each kind


def test_a_calm_capture_has_no_problem(tmp_path: Path) -> None:
    summary = _summary(calm(), tmp_path)
    assert summary.findings == []
    assert summary.verdict == (
        "Nothing wrong was found: 1 connection, 1 message published and 1 delivered in 3.9 ms."
    )


def test_a_capture_in_which_nothing_happens_is_called_that(tmp_path: Path) -> None:
    truth = make.Truth()
    Talk(truth, 1).opened().goodbye()
    assert _summary(truth, tmp_path).verdict == (
        "Nothing wrong was found, and nothing happened: 1 connection without a single message."
    )
    assert _summary(make.Truth(), tmp_path).verdict.startswith("There is no AMQP in this recording")


def test_gaps_and_lost_octets_are_warnings(tmp_path: Path) -> None:
    truth = troubled()
    truth.packets, _ = make.disturb(truth.packets, 5, loss=0.1)
    found = {each.code: each for each in _summary(truth, tmp_path).findings}
    assert {found["gaps"].severity, found["gaps"].section} == {"warning", "Gaps and errors"}


@pytest.mark.parametrize(("delivered", "severity"), [(1, "warning"), (30, "note")])
def test_a_few_answers_may_be_missing_where_the_recording_ends(
    delivered: int, severity: str, tmp_path: Path
) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    talk.client(amqp.Confirm.Select())
    publish = amqp.encode_message(1, amqp.Basic.Publish(exchange="x"), amqp.BasicProperties(), b"")
    for number in range(delivered):
        talk.send(make.CLIENT, *make.split(publish))
        if number < delivered - 1:
            talk.server(amqp.Basic.Ack(number + 1))
    summary = _summary(truth, tmp_path)
    assert (summary.confirms.unanswered, summary.confirms.waiting) == (1, 1)
    assert [each.severity for each in summary.findings if each.code == "unconfirmed-at-the-end"] == [severity]


def test_the_depth_of_a_queue_is_followed(tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    rng = random.Random(3)
    reports = [rng.randrange(100) for _ in range(20)]
    for messages in reports:
        talk.declare("q", messages)
    talk.goodbye()
    [depth] = _summary(truth, tmp_path).depths
    falls = sum(later < former for former, later in itertools.pairwise(reports))
    assert (depth.reports, depth.falls) == (20, falls)
    ends = depth.first, depth.last, depth.least, depth.most
    assert ends == (reports[0], reports[-1], min(reports), max(reports))
    assert not depth.only_grows


@pytest.mark.parametrize(("count", "others"), [(3, ""), (4, ", and others")])
def test_a_finding_names_three_and_says_that_there_are_others(
    count: int, others: str, tmp_path: Path
) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    for number in range(count):
        talk.declare(f"q{number}", 0)
        talk.declare(f"q{number}", 1000)
        publish = amqp.Basic.Publish(routing_key=f"q{number}")
        message = amqp.encode_message(1, publish, amqp.BasicProperties(), b"")
        returned = amqp.Basic.Return(reply_code=310 + number, reply_text="", routing_key=f"q{number}")
        answer = amqp.encode_message(1, returned, amqp.BasicProperties(), b"")
        talk.send(make.CLIENT, *make.split(message))
        talk.send(make.SERVER, *make.split(answer))
    talk.goodbye()
    texts = {each.code: each.text for each in _summary(truth, tmp_path).findings}
    assert texts["growing-queues"] == (
        f"{count} queues that only grew: q0 from 0 to 1,000, q1 from 0 to 1,000, q2 from 0 to 1,000 messages"
        f"{others}."
    )
    assert texts["no-delivery"] == (
        f"{count} queues without a delivery in this recording, though messages were published to them: "
        f"q0 (1 published), q1 (1 published), q2 (1 published){others}."
    )
    assert texts["returned"] == (
        f"{count} messages returned to the publisher, because no queue or consumer took them: "
        f"310, 311, 312{others}."
    )


def test_a_queue_that_has_nothing_to_get_is_empty(tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    talk.declare("q", 5)
    talk.client(amqp.Basic.Get(queue="q"))
    talk.server(amqp.Basic.GetEmpty())
    talk.client(amqp.Basic.Get())  # of the queue declared last
    talk.server(amqp.Basic.GetEmpty())
    talk.goodbye()
    [depth] = _summary(truth, tmp_path).depths
    assert (depth.reports, depth.first, depth.last, depth.least, depth.most) == (3, 5, 0, 0, 5)


def test_the_problems_of_a_real_capture() -> None:
    summary = _summary(EXAMPLES / "real-bunny.pcap", EXAMPLES)
    assert [(each.code, each.count) for each in summary.findings] == [
        ("closed-by-error", 3), ("returned", 1), ("rejected", 2), ("redelivered", 1),
    ]  # fmt: skip


def test_durations_have_three_digits_of_their_unit() -> None:
    second = 10**9
    small = (0, 1500, 999_999, 2_345_678, 1_234_000_000)
    ends = (179, 180, 7200, 179 * 60, 180 * 60, 71 * 3600, 72 * 3600, 10**6)
    assert [lasting(each) for each in (*small, *(end * second for end in ends))] == [
        "0 µs", "2 µs", "1000 µs", "2.35 ms", "1.23 s",
        "179 s", "3 min", "120 min", "179 min", "3 h", "71 h", "3 days", "12 days",
    ]  # fmt: skip


def test_octets_that_a_gap_cuts_off_are_not_called_damaged(tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    before = len(truth.packets)
    talk.send(make.CLIENT, *_message(amqp.Basic.Publish(exchange="shop"), b"x" * 3900))
    talk.goodbye()
    del truth.packets[before + 1]  # in the middle of the body
    summary = _summary(truth, tmp_path)
    texts = {each.code: each.text for each in summary.findings}
    assert summary.totals["octets_cut_off"] > 1000
    assert texts["lost"].endswith("places: a gap cuts their frames.")
