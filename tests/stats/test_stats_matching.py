"""Answers matched to questions in bounded memory, method by method."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.timing import undisturbed, within

from amqpcodec.stats import matching
from amqpcodec.stats.counters import Durations, Tally
from amqpcodec.stats.depths import Depths
from amqpcodec.stats.flows import Flows, Incidents
from amqpcodec.stats.matching import Matcher, MethodRow, Sources
from amqpcodec.stats.summary import Ending


class Recorded:
    """A matcher, and what it found."""

    def __init__(self) -> None:
        self.confirms, self.acks = Durations(3), Durations(3)
        self.closings = Tally(("scope", "by", "reply_code", "reply_text"), ("times",))
        self.returns = Tally(("reply_code", "reply_text", "exchange", "routing_key"), ("messages",))
        self.endings: list[Ending] = []
        self.matcher = Matcher(
            "file", Flows("file", Incidents(3), of_streams=False), confirms=self.confirms, acks=self.acks,
            closings=self.closings, returns=self.returns, settled=Tally(("method", "by"), ("times",)),
            redelivered=Tally(("queue",), ("messages",)), depths=Depths(), endings=self.endings, top=3,
        )  # fmt: skip


def row(name: str, direction: int = 0, *, at: int = 0, flow: int = 0, **arguments: object) -> MethodRow:
    given = {"flow": flow, "direction": direction, "ts_ns": at, "offset": at, "packet": at, "channel": 1}
    cells: dict[str, Any] = {**dict.fromkeys(MethodRow._fields), **given, "name": name, **arguments}
    return MethodRow(**cells)


def test_a_source_that_is_named_again_is_still_one() -> None:
    sources, key = Sources(), (0, 1, "tag")
    for offset, queue in ((10, "q"), (20, "q"), (30, "r")):
        sources.add(key, offset, queue)
    assert [sources.queue(key, offset) for offset in (9, 10, 29, 30)] == [None, "q", "q", "r"]
    assert sources.is_one(key, 10, 29)
    assert not sources.is_one(key, 10, 30)


def test_tag_zero_answers_all_and_one_tag_only_one() -> None:
    found = Recorded()
    found.matcher.feed([row("confirm.select"), *(row("basic.publish", at=each) for each in (1, 2, 3, 4))])
    found.matcher.feed([row("basic.ack", 1, at=10, delivery_tag=2)])
    assert (found.confirms.latency().count, found.confirms.latency().mean_ns) == (1, 8)
    found.matcher.feed([row("basic.ack", 1, at=20, delivery_tag=0, multiple=True)])
    found.matcher.feed([row("basic.ack", 1, at=30, delivery_tag=4)])  # answered before
    found.matcher.finish()
    latency = found.confirms.latency()
    assert (latency.count, latency.unanswered, latency.most_ns) == (4, 0, 19)


def _answered_up_to_each(count: int) -> Callable[[], float]:
    """So many deliveries wait, then every acknowledgement is for one of them, and all before it."""
    deliveries = [row("basic.deliver", 1, delivery_tag=tag) for tag in range(1, count + 1)]
    acks = [row("basic.ack", 0, delivery_tag=tag, multiple=True) for tag in range(1, count + 1)]

    def work() -> float:
        found = Recorded()
        begin = time.process_time()
        found.matcher.feed(deliveries)
        found.matcher.feed(acks)
        seconds = time.process_time() - begin
        assert found.acks.latency().count == count
        return seconds

    return work


def test_acknowledgements_of_many_that_wait_take_linear_time() -> None:
    small, large = _answered_up_to_each(2_000), _answered_up_to_each(32_000)
    with undisturbed():
        once = min(small() for _ in range(3))
        assert within(32 * once + 0.02, large, turns=3)


def test_publishes_before_confirm_select_and_answers_to_nothing_count_for_nothing() -> None:
    found = Recorded()
    found.matcher.feed([row("basic.publish"), row("basic.ack", 1, delivery_tag=1), row("confirm.select")])
    found.matcher.feed(
        [row("basic.ack", 1, delivery_tag=9, multiple=True), row("basic.nack", 0, delivery_tag=3)]
    )
    found.matcher.finish()
    assert found.confirms.latency().count == found.acks.latency().count == found.confirms.unanswered == 0


def test_a_channel_opened_again_counts_anew() -> None:
    found = Recorded()
    found.matcher.feed(
        [row("confirm.select"), row("basic.publish"), row("channel.close"), row("channel.close-ok", 1)]
    )
    found.matcher.feed([row("channel.open"), row("confirm.select"), row("basic.publish", at=5)])
    found.matcher.feed([row("basic.ack", 1, at=7, delivery_tag=1)])
    latency = found.confirms.latency()
    assert (latency.count, latency.unanswered, latency.most_ns) == (1, 1, 2)


def test_recover_and_transactions_end_what_waits() -> None:
    found = Recorded()
    for ending in ("basic.recover", "tx.select"):
        found.matcher.feed([row("basic.deliver", 1, consumer_tag="a", delivery_tag=1), row(ending)])
        found.matcher.feed([row("basic.ack", 0, delivery_tag=1)])
    assert found.acks.latency().count == 0
    assert found.acks.unfollowed == 2


def test_a_clock_that_goes_back_gives_no_negative_duration() -> None:
    found = Recorded()
    found.matcher.feed([row("confirm.select"), row("basic.publish", at=9)])
    found.matcher.feed([row("basic.ack", 1, at=3, delivery_tag=1)])
    assert found.confirms.latency().least_ns == 0


def _many(flows: range, close: bool) -> Iterator[MethodRow]:
    for flow in flows:
        for number in (1, 2, 3):
            yield row(
                "basic.consume", flow=flow, channel=number, queue=f"q{flow}", consumer_tag="c", no_wait=True
            )
            yield row("basic.deliver", 1, flow=flow, channel=number, consumer_tag="c", delivery_tag=1)
        if close:
            yield row("connection.close-ok", 1, flow=flow, channel=0)


@pytest.mark.parametrize("close", [True, False])
def test_connections_without_end_take_no_more_room(close: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MOST_CHANNELS", 300)
    monkeypatch.setattr(matching, "_MOST_SOURCES", 300)
    found = Recorded()
    tracemalloc.start()
    try:
        found.matcher.feed(_many(range(300), close))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        found.matcher.feed(_many(range(300, 2000), close))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 300_000
    found.matcher.finish()
    assert found.acks.unanswered == 6000


def test_questions_without_end_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MOST_WAITING", 1000)
    found = Recorded()
    delivers = (row("basic.deliver", 1, consumer_tag="a", delivery_tag=tag) for tag in range(1, 1011))
    found.matcher.feed(delivers)
    assert found.acks.unfollowed == 10
    found.matcher.feed([row("basic.ack", 0, at=5, delivery_tag=0, multiple=True)])
    assert found.acks.latency().count == 1000


def test_the_page_says_how_many_messages_may_wait() -> None:
    page = Path(__file__).parents[2] / "docs" / "stats.md"
    assert f"more than {matching._MOST_WAITING:,} messages wait" in page.read_text("utf-8")
