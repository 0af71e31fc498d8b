"""The numbers of a summary, compared with those counted from frame objects."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support.busy import Known, busy

from amqpcodec import rabbitmq as amqp
from amqpcodec import stats

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", params=["busy 1", "busy 2", "conversations", "real-bunny", "real-txamqp-0-8"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, _, seed = request.param.partition(" ")
    if name.startswith("real-"):
        return EXAMPLES / f"{name}.pcap"
    truth = busy(int(seed)) if name == "busy" else make.conversations(3)
    path = tmp_path_factory.mktemp("captures") / f"{name}.pcap"
    path.write_bytes(make.pcap(truth.packets, nanos=True))
    return path


@pytest.fixture(scope="module")
def known(path: Path) -> Known:
    return Known(path)


@pytest.fixture(scope="module")
def summary(path: Path) -> stats.Summary:
    return _summary(path)


def _summary(*paths: Path, **options: Any) -> stats.Summary:
    collector = stats.Collector(**{"top": 1000, **options})
    for path in paths:
        collector.add(path, path.name)
    return collector.summary()


def _counts(ranking: stats.Ranking, count: str) -> dict[Any, int]:
    [key] = ranking.keys
    assert not any(ranking.others.values())
    return {row[key]: row[count] for row in ranking.rows}


def test_messages_and_octets_by_kind_exchange_and_queue(known: Known, summary: stats.Summary) -> None:
    assert _counts(summary.kinds, "messages") == known.kinds
    assert _counts(summary.kinds, "octets") == known.octets
    assert _counts(summary.exchanges, "messages") == known.exchanges
    assert _counts(summary.exchanges, "octets") == known.exchange_octets
    assert _counts(summary.queues, "messages") == known.queues
    assert summary.totals["messages_sent"] + summary.totals["messages_received"] == known.kinds.total()
    assert summary.totals["octets_sent"] + summary.totals["octets_received"] == known.octets_seen


def test_answers_are_matched(known: Known, summary: stats.Summary) -> None:
    for latency, exact in ((summary.confirms, known.confirms), (summary.acks, known.acks)):
        assert latency.count == len(exact)
        assert sum(count for _, count in latency.histogram) == len(exact)
        if not exact:
            continue
        exact.sort()
        assert (latency.least_ns, latency.most_ns) == (exact[0], exact[-1])
        assert latency.mean_ns == sum(exact) // len(exact)
        assert [slow.latency_ns for slow in latency.slowest] == exact[::-1][:1000]
        for name, value in latency.percentiles.items():
            rank = -(-len(exact) * int(float(name[1:]) * 10) // 1000)
            assert value == pytest.approx(exact[rank - 1], rel=0.008)


def test_closes_and_returns(known: Known, summary: stats.Summary) -> None:
    closes: dict[tuple[str, int], int] = {}
    for row in summary.closings.rows:
        key = row["scope"], row["reply_code"]
        closes[key] = closes.get(key, 0) + row["times"]
    assert closes == known.closes
    assert sum(row["messages"] for row in summary.returns.rows) == known.returned


def test_rates_hold_every_message_once(known: Known, summary: stats.Summary) -> None:
    sums = {kind: sum(counts) for kind, counts in summary.rates.messages.items()}
    assert sums == known.kinds
    assert {kind: sum(counts) for kind, counts in summary.rates.octets.items()} == known.octets
    assert len({len(counts) for counts in summary.rates.messages.values()}) <= 1


def test_the_place_of_the_slowest_is_right() -> None:
    [slow, *_] = _summary(EXAMPLES / "real-bunny.pcap", top=1).confirms.slowest
    assert (slow.packet, slow.answer_packet, slow.channel, slow.tag) == (75, 86, 2, 1)
    assert slow.latency_ns == 2_577_000


def test_what_came_before_an_error(tmp_path: Path) -> None:
    endings = _summary(EXAMPLES / "real-bunny.pcap").endings
    assert [(ending.reply_code, ending.cause, ending.by) for ending in endings] == [
        (404, "queue.declare", "server"),
        (406, "exchange.declare", "server"),
        (406, "basic.ack", "server"),
    ]
    assert [step.name for step in endings[0].before] == ["channel.open", "channel.open-ok", "queue.declare"]
    assert endings[0].before[-1].about == {"queue": "nope"}


def test_several_files_are_added_up_and_their_flows_kept_apart() -> None:
    paths = [EXAMPLES / "real-bunny.pcap", EXAMPLES / "real-txamqp-0-8.pcap"]
    both, parts = _summary(*paths), [_summary(path) for path in paths]
    assert both.files == [path.name for path in paths]
    for name, total in both.totals.items():
        assert total == sum(part.totals[name] for part in parts)
    assert both.acks.count == sum(part.acks.count for part in parts)
    assert _counts(both.queues, "messages") == {"b.q": 4, "t8.q": 4}


def test_what_a_list_leaves_out_is_added_up(tmp_path: Path) -> None:
    path = tmp_path / "busy.pcap"
    path.write_bytes(make.pcap(busy(1).packets))
    whole, short = _summary(path), _summary(path, top=1)
    for name in ("connections", "kinds", "exchanges", "routing_keys", "queues", "closings"):
        all_rows, one = getattr(whole, name), getattr(short, name)
        assert one.rows == all_rows.rows[:1]
        assert one.distinct == len(all_rows.rows)
        for count in one.counts:
            assert one.others[count] == sum(row[count] for row in all_rows.rows[1:])
    assert short.confirms.slowest == whole.confirms.slowest[:1]
    assert short.confirms.percentiles == whole.confirms.percentiles


def test_gaps_are_reported_and_confirms_not_guessed(tmp_path: Path) -> None:
    packets, lost = make.disturb(busy(1).packets, 4, loss=0.05)
    assert lost
    path = tmp_path / "lossy.pcap"
    path.write_bytes(make.pcap(packets, nanos=True))
    summary = _summary(path)
    assert summary.totals["gaps"] == sum(problem.code == "GAP" for problem in summary.problems) > 0
    assert summary.totals["octets_missing"] > 0
    truth = tmp_path / "truth.pcap"
    truth.write_bytes(make.pcap(busy(1).packets, nanos=True))
    right = {_question(slow): slow.latency_ns for slow in _summary(truth).confirms.slowest}
    for slow in summary.confirms.slowest:
        assert (
            right[_question(slow)] <= slow.latency_ns
        )  # the answer itself may be lost, and a later one count
    assert summary.confirms.unfollowed > 0


def _question(slow: stats.Slow) -> tuple[int, int, int]:
    return slow.flow, slow.tag, slow.time_ns


def test_a_recording_that_begins_late_is_not_guessed_at(tmp_path: Path) -> None:
    truth = busy(1)
    path = tmp_path / "late.pcap"
    path.write_bytes(make.pcap(truth.packets[200:], nanos=True))
    summary = _summary(path)
    assert summary.confirms.count == summary.confirms.unanswered == 0
    assert summary.acks.count > 0  # their tags are in the deliveries


def test_a_raw_stream_has_messages_and_no_times(tmp_path: Path) -> None:
    path = tmp_path / "stream.amqp"
    path.write_bytes(
        amqp.encode_message(1, amqp.Basic.Publish(exchange="x"), amqp.BasicProperties(), b"yes")
        + amqp.encode_method(1, amqp.Basic.Ack(1))
    )
    summary = _summary(path, input="stream")
    assert _counts(summary.exchanges, "octets") == {"x": 3}
    assert (summary.rates.start_ns, summary.first_us, summary.acks.count) == (None, None, 0)


def test_a_file_object_is_read_from_its_beginning() -> None:
    file = io.BytesIO((EXAMPLES / "real-bunny.pcap").read_bytes())
    file.seek(77)
    collector = stats.Collector()
    assert collector.add(file, "memory")
    assert collector.summary().totals["frames_sent"] == 98


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="amqp-1-0"):
        stats.Collector(dialect="amqp-1-0")


@pytest.mark.parametrize("dialect", ["auto", "amqp-0-9-1", "amqp-0-8", "qpid-0-8", "amqp-0-9"])
def test_every_dialect_can_be_asked_for(dialect: str) -> None:
    assert _summary(EXAMPLES / "real-bunny.pcap", dialect=dialect).totals["connections"] == 1
