"""Methods watched in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpcodec._columns import following_py
from amqpcodec.stats import watching
from amqpcodec.stats.counters import Tally
from amqpcodec.stats.flows import Flows, Incidents
from amqpcodec.stats.lives import Lives
from amqpcodec.stats.outcomes import Outcomes
from amqpcodec.stats.summary import Ending
from amqpcodec.stats.watching import MethodRow, Watcher


def watcher(endings: list[Ending]) -> Watcher:
    return Watcher(
        "file", Flows("file", Incidents(3), Lives(3), of_streams=False), Outcomes(3), endings=endings, top=3,
        closings=Tally(("scope", "by", "reply_code", "reply_text"), ("times",)),
        returns=Tally(("reply_code", "reply_text", "exchange", "routing_key"), ("messages",)),
        settled=Tally(("method", "by"), ("times",)),
    )  # fmt: skip


def row(name: str, direction: int = 0, *, at: int = 0, flow: int = 0, **arguments: object) -> MethodRow:
    given = {"flow": flow, "direction": direction, "ts_ns": at, "offset": at, "packet": at, "channel": 1}
    cells: dict[str, Any] = {**dict.fromkeys(MethodRow._fields), **given, "name": name, **arguments}
    return MethodRow(**cells)


def test_an_error_has_the_methods_of_its_channel_before_it() -> None:
    endings: list[Ending] = []
    before = [row("channel.open"), row("queue.declare", queue="q"), row("basic.ack", channel=2)]
    watcher(endings).feed([*before, row("channel.close", 1, reply_code=404)])
    assert [[step.name for step in ending.before] for ending in endings] == [
        ["channel.open", "queue.declare"]
    ]


def test_consumers_that_a_broker_cancels_are_counted() -> None:
    found = watcher([])
    found.feed([row("basic.cancel", 1), row("basic.cancel", 1), row("basic.cancel", 0)])
    counts = found._closings.ranking(3).rows
    assert [(each["scope"], each["by"], each["times"]) for each in counts] == [("consumer", "server", 2)]


def _many(flows: range) -> Iterator[MethodRow]:
    for flow in flows:
        for number in (1, 2, 3):
            yield row("queue.declare", flow=flow, channel=number, queue=f"q{flow}")


def test_connections_without_end_take_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_MOST_CHANNELS", 300)
    found = watcher([])
    tracemalloc.start()
    try:
        found.feed(_many(range(300)))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        found.feed(_many(range(300, 2000)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 300_000


def test_the_page_says_how_many_messages_may_wait() -> None:
    page = Path(__file__).parents[2] / "docs" / "stats.md"
    assert f"more than {following_py.MOST_WAITING:,} messages wait" in page.read_text("utf-8")
