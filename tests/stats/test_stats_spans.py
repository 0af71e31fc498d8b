"""A minute, an hour and a day of traffic read equally well: intervals, numbers, and texts that are short."""

from __future__ import annotations

import random
import re

import pytest
from support import make_capture as make
from support.troubled import Talk, _message

from amqpcodec import rabbitmq as amqp
from amqpcodec import stats
from amqpcodec.cli.statsections import Section, sections
from amqpcodec.cli.statstext import text

MESSAGES = 400
SPANS = {"a minute": 60, "an hour": 3600, "a day": 86400}


def _capture(seconds: int) -> make.Truth:
    """Messages that are confirmed and acknowledged, evenly over a time."""
    rng = random.Random(11)
    truth = make.Truth()
    talk = Talk(truth, 1, heartbeat=0).opened()
    talk.client(amqp.Confirm.Select())
    talk.server(amqp.Confirm.SelectOk())
    talk.client(amqp.Basic.Consume(queue="work", consumer_tag="c", no_wait=True))
    for tag in range(1, MESSAGES + 1):
        publish = amqp.Basic.Publish(exchange="shop", routing_key="a")
        deliver = amqp.Basic.Deliver(consumer_tag="c", delivery_tag=tag, exchange="shop", routing_key="a")
        talk.send(make.CLIENT, *_message(publish, b"x" * 100))
        talk.server(amqp.Basic.Ack(tag))
        talk.send(make.SERVER, *_message(deliver, b"x" * 100))
        busy = rng.uniform(0.001, 0.1)
        talk.wait(busy)
        talk.client(amqp.Basic.Ack(tag))
        talk.wait(seconds / MESSAGES - busy)
    talk.goodbye()
    return truth


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, stats.Summary]:
    folder = tmp_path_factory.mktemp("captures")
    found = {}
    for name, seconds in SPANS.items():
        path = folder / "made.pcap"
        path.write_bytes(make.pcap(_capture(seconds).packets, nanos=True))
        collector = stats.Collector()
        collector.add(path, path.name)
        found[name] = collector.summary()
    return found


def test_each_has_enough_intervals_and_not_too_many(summaries: dict[str, stats.Summary]) -> None:
    for summary in summaries.values():
        rates = summary.rates.messages["publish"]
        over_time = summary.acks.over_time
        for counts in (rates, over_time.answered):
            assert 100 <= len(counts) <= 240
            assert sum(counts) == MESSAGES
            assert min(counts[:-1]) > 0
        assert all(value is not None for value in over_time.p99_ns)


def test_latencies_do_not_depend_on_the_span(summaries: dict[str, stats.Summary]) -> None:
    minute, *others = summaries.values()
    for other in others:
        assert other.acks.percentiles == minute.acks.percentiles
        assert other.acks.histogram == minute.acks.histogram


def test_no_duration_is_long_to_read(summaries: dict[str, stats.Summary]) -> None:
    shown = {name: sections(summary) for name, summary in summaries.items()}
    assert [_cell(each, "duration") for each in shown.values()] == ["60.323 s", "60 min", "24 h"]
    for each in shown.values():
        assert not re.search(r"\d{4,}\.\d+ s\b", text(each))
    lengths = [[len(line) for line in text(each).splitlines()] for each in shown.values()]
    assert len({len(each) for each in lengths}) == 1
    assert max(map(max, lengths)) < 230


def _cell(tables: list[Section], what: str) -> str:
    [overview] = [table for table in tables if table.title == "Overview"]
    return dict(row[:2] for row in overview.rows)[what]


def test_times_have_their_date_where_the_recording_has_several(summaries: dict[str, stats.Summary]) -> None:
    for name, summary in summaries.items():
        [table] = [each for each in sections(summary) if each.title == "Deliver to acknowledgement: slowest"]
        at = table.columns.index("at")
        assert {len(row[at]) for row in table.rows} == {26 if name == "a day" else 15}


def test_rates_below_ten_have_three_digits(summaries: dict[str, stats.Summary]) -> None:
    assert [_rate(summary) for summary in summaries.values()] == ["6.65", "0.111", "0.00464"]


def _rate(summary: stats.Summary) -> str:
    [table] = [each for each in sections(summary) if each.title == "Queues"]
    return table.rows[0][table.columns.index("messages/s")]
