"""Who took part: what waits at once, idle times and pauses, and what the channel says."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support.busy import busy
from support.implementation import Implementation
from support.subprocesses import output
from support.troubled import Talk, _message, troubled

from amqpcodec import arrow, stats
from amqpcodec import rabbitmq as amqp
from amqpcodec.stats import parties
from amqpcodec.stats.parties import Parties, Share

SECOND = 10**9


def _summary(truth: make.Truth, folder: Path, **options: int) -> stats.Summary:
    path = folder / "made.pcap"
    path.write_bytes(make.pcap(truth.packets, nanos=True))
    collector = stats.Collector(**options)  # type: ignore[arg-type]
    collector.add(path, path.name)
    return collector.summary()


def test_time_without_anything_unacknowledged_is_idle() -> None:
    share = Share()
    share.wait(10)
    share.wait(11)
    share.settle(15)
    share.settle(20)
    share.wait(50)
    share.settle(60)
    share.stop(100)
    party = share.party({}, None)
    assert (party.idle_ns, party.pause_ns, party.most_waiting) == (30 + 40, 50, 2)


def test_one_that_still_has_something_at_the_end_is_not_idle() -> None:
    share = Share()
    share.wait(10)
    share.settle(None)
    share.stop(100)
    party = share.party({}, None)
    assert (party.idle_ns, party.pause_ns) == (0, 90)


def test_what_comes_before_it_begins_again_is_neither_idle_nor_a_pause() -> None:
    share = Share()
    share.wait(10)
    share.settle(20)
    share.stop(30)
    share.wait(1000)
    share.settle(1005)
    share.stop(25)  # an end that is told late
    share.stop(1010)
    party = share.party({}, None)
    assert (party.idle_ns, party.pause_ns) == (10 + 5, 20)


@pytest.mark.parametrize("told_late", [False, True])
def test_one_that_is_answered_after_its_end_is_not_idle(told_late: bool) -> None:
    share = Share()
    share.wait(10)
    for step in ("settle", "stop") if told_late else ("stop", "settle"):
        getattr(share, step)({"stop": 15, "settle": 20}[step])
    share.stop(100)
    party = share.party({}, None)
    assert (party.idle_ns, party.pause_ns) == (0, 5)


def test_one_without_acknowledgements_has_pauses_and_no_idle_time() -> None:
    share = Share()
    for time_ns in (10, 40, 45):
        share.see(time_ns)
    share.stop(50)
    party = share.party({}, None)
    assert (party.idle_ns, party.pause_ns, party.most_waiting) == (None, 30, 0)


def test_parties_that_are_not_shown_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parties, "MOST_PARTIES", 3)
    queues = Parties(("queue",))
    for number in range(5):
        for _ in range(5 - number):
            share = queues.of((f"q{number}",))
            share.messages += 1
            share.unanswered += number == 4
            share.add(number)
    first, rest = queues.largest(1)
    assert (first.keys, first.messages, first.most_ns, first.others) == ({"queue": "q0"}, 5, 0, 0)
    # Two that are known by name, and all beyond the limit.
    assert (rest.keys, rest.messages, rest.unanswered, rest.others) == ({"queue": None}, 10, 1, 3)
    assert (rest.count, rest.most_waiting, rest.idle_ns, rest.pause_ns) == (None, None, None, None)
    assert queues.largest(3)[-1].others == 1


def _most_at_once(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], int]:
    """How many messages of each key waited at once, by the intervals in which they did."""
    steps: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        key = tuple(row[key] for key in keys)
        steps[key].append((row["packet"] * 2 + 1, 1))
        steps[key].append((2 * row["packet_outcome"] if row["packet_outcome"] else 2**60, -1))
    most = {}
    for key, changes in steps.items():
        waiting = most[key] = 0
        for _, change in sorted(changes):
            waiting += change
            most[key] = max(most[key], waiting)
    return most


@pytest.mark.parametrize("seed", range(4))
def test_most_at_once_is_that_of_the_intervals_in_deliveries(seed: int, tmp_path: Path) -> None:
    truth = busy(seed) if seed else troubled()
    summary = _summary(truth, tmp_path, top=1000)
    batches = arrow.read_capture(tmp_path / "made.pcap", "deliveries")
    rows = [row for batch in batches for row in batch.to_pylist()]
    waited = [row for row in rows if row["outcome"] not in (None, "unknown", "returned")]
    delivered = [row for row in waited if row["kind"] in ("deliver", "get-ok")]
    published = [row for row in waited if row["kind"] == "publish"]
    for found, known in (
        (summary.by_queue, _most_at_once(delivered, "queue")),
        (summary.by_consumer, _most_at_once(delivered, "queue", "client", "channel", "consumer_tag")),
        (summary.by_publisher, _most_at_once(published, "exchange", "client", "channel")),
    ):
        assert known
        most = {tuple(party.keys.values()): party.most_waiting for party in found}
        assert {key: number for key, number in most.items() if number} == known


PROGRAM = """
import json, sys
from amqpcodec import stats
collector = stats.Collector(top=1000)
collector.add(sys.argv[1], "made.pcap")
print(json.dumps(collector.summary().as_dict()))
"""


def test_each_build_counts_what_waits_alike(impl: Implementation, tmp_path: Path) -> None:
    summary = _summary(busy(3), tmp_path, top=1000)
    found = json.loads(output("-c", PROGRAM, str(tmp_path / "made.pcap"), impl=impl.name))
    assert found == json.loads(json.dumps(summary.as_dict()))


def _consumer(talk: Talk, queue: str, tag: str, prefetch: int | None) -> None:
    if prefetch is not None:
        talk.client(amqp.Basic.Qos(prefetch_count=prefetch))
        talk.server(amqp.Basic.QosOk())
    talk.client(amqp.Basic.Consume(queue=queue, consumer_tag=tag))
    talk.server(amqp.Basic.ConsumeOk(consumer_tag=tag))


def _deliver(talk: Talk, tag: str, *numbers: int) -> None:
    for number in numbers:
        deliver = amqp.Basic.Deliver(consumer_tag=tag, delivery_tag=number, exchange="shop", routing_key="a")
        talk.send(make.SERVER, *_message(deliver, b"x"))


@pytest.mark.parametrize("prefetch", [None, 0, 3])
def test_the_prefetch_of_the_channel_stands_beside_what_is_used_of_it(
    prefetch: int | None, tmp_path: Path
) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    _consumer(talk, "work", "c", prefetch)
    for number in range(1, 7, 3):
        _deliver(talk, "c", number, number + 1, number + 2)
        talk.wait(1)
        talk.client(amqp.Basic.Ack(number + 2, multiple=True))
    talk.wait(5)
    talk.goodbye()
    [party] = _summary(truth, tmp_path).by_consumer
    assert (party.prefetch, party.most_waiting, party.count, party.name) == (prefetch, 3, 6, "pika")
    assert round((party.idle_ns or 0) / SECOND) == 5
    assert round((party.pause_ns or 0) / SECOND) == 1 + 5


@pytest.mark.parametrize("end", ["cancel-ok", "cancel", "close"])
def test_a_consumer_that_has_ended_is_idle_no_longer(end: str, tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    _consumer(talk, "work", "c", None)
    _deliver(talk, "c", 1)
    talk.client(amqp.Basic.Ack(1))
    talk.wait(2)
    if end == "cancel":
        talk.server(amqp.Basic.Cancel(consumer_tag="c"))
    elif end == "cancel-ok":
        talk.client(amqp.Basic.Cancel(consumer_tag="c"))
        talk.server(amqp.Basic.CancelOk(consumer_tag="c"))
    else:
        talk.client(amqp.Channel.Close(reply_code=200, reply_text="done"))
        talk.server(amqp.Channel.CloseOk())
    talk.wait(60)
    talk.goodbye()
    [party] = _summary(truth, tmp_path).by_consumer
    assert (round((party.idle_ns or 0) / SECOND), round((party.pause_ns or 0) / SECOND)) == (2, 2)


def test_exchanges_have_those_who_publish_to_them(tmp_path: Path) -> None:
    truth = make.Truth()
    for number in range(5):
        talk = Talk(truth, number + 1).opened()
        for _ in range(number + 1):
            talk.send(make.CLIENT, *_message(amqp.Basic.Publish(exchange="shop"), b"x"))
        talk.goodbye()
    [shop] = _summary(truth, tmp_path).published_by
    assert (shop.exchange, shop.others) == ("shop", 2)
    assert [(each.name, each.messages) for each in shop.clients] == [("pika", 5), ("pika", 4), ("pika", 3)]
    assert len({each.client for each in shop.clients}) == 3
