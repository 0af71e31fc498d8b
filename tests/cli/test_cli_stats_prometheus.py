"""`amqpcodec stats --format prometheus`: the text format, checked here and by promtool, and its numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import make_capture as make
from support.command import BUNNY, summary_of
from support.troubled import Talk, _message, troubled

from amqpcodec import rabbitmq as amqp
from amqpcodec import stats
from amqpcodec.cli import main
from amqpcodec.cli.statsprometheus import prometheus

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?|\+Inf"
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"(?P<name>[a-z_]+)(?:\{{(?P<labels>{LABEL}(?:,{LABEL})*)\}})? (?P<value>{NUMBER})")
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
HOSTILE = 'a"b\\c\nd\x1b{},=\N{SNOWMAN}'


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("captures")
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    talk.client(amqp.Basic.Consume(queue=HOSTILE, consumer_tag=HOSTILE))
    talk.server(amqp.Basic.ConsumeOk(consumer_tag=HOSTILE))
    for tag, exchange in enumerate((HOSTILE, "", "(default)", "(others)", "(unknown)"), 1):
        method = amqp.Basic.Deliver(consumer_tag=HOSTILE, delivery_tag=tag, exchange=exchange)
        talk.send(make.SERVER, *_message(method, b"x"))
        talk.send(make.CLIENT, *_message(amqp.Basic.Publish(exchange=exchange, routing_key=exchange), b"x"))
    talk.client(amqp.Connection.Close(reply_code=541, reply_text=HOSTILE), 0)
    made = {"hostile": truth, "troubled": troubled()}
    for name, each in made.items():
        (folder / f"{name}.pcap").write_bytes(make.pcap(each.packets, nanos=True))
    return [*(folder / f"{name}.pcap" for name in made), BUNNY]


@pytest.fixture(scope="module", params=[10, 1])
def summary(request: pytest.FixtureRequest, paths: list[Path]) -> stats.Summary:
    return summary_of(*paths, top=request.param)


def _samples(text: str) -> dict[str, dict[str, float]]:
    """The values of each metric by labels, in a text that is strictly as it has to be."""
    found: dict[str, dict[str, float]] = {}
    assert text.endswith("\n")
    family = kind = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, family, about = line.split(" ", 3)
            assert about
            assert not any(name.startswith(family) for name in found)
        elif line.startswith("# TYPE "):
            assert line.split(" ")[2] == family
            kind = line.split(" ")[3]
            assert kind in ("counter", "gauge", "histogram", "summary")
            assert (kind == "counter") == family.endswith("_total")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample["name"] in [family + part for part in PARTS.get(kind, ("",))]
            values = found.setdefault(sample["name"], {})
            assert (sample["labels"] or "") not in values
            values[sample["labels"] or ""] = float(sample["value"])
    return found


def test_the_text_is_strictly_in_the_format(summary: stats.Summary) -> None:
    found = _samples(prometheus(summary))
    assert len(found) > 40


@pytest.mark.slow("runs promtool")
def test_promtool_accepts_it(summary: stats.Summary) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; it is in the package prometheus of Debian")
    text = prometheus(summary).encode()
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_buckets_are_cumulative_and_end_at_all_answers(summary: stats.Summary) -> None:
    found = _samples(prometheus(summary))
    for name, latency in (("publish_confirm", summary.confirms), ("delivery_ack", summary.acks)):
        buckets = found[f"amqp_{name}_latency_seconds_bucket"]
        values = list(buckets.values())
        assert values == sorted(values)
        ends = [float(label.split('"')[1]) for label in buckets]
        assert ends == sorted(ends)
        assert buckets['le="+Inf"'] == latency.count == found[f"amqp_{name}_latency_seconds_count"][""]
        assert latency.count
        mean = found[f"amqp_{name}_latency_seconds_sum"][""] / latency.count
        assert mean == pytest.approx((latency.mean_ns or 0) / 1e9)


def test_the_numbers_are_those_of_the_summary(summary: stats.Summary) -> None:
    found = _samples(prometheus(summary))
    assert sum(found["amqp_messages_total"].values()) == sum(
        summary.totals[f"messages_{way}"] for way in ("sent", "received")
    )
    for name, ranking, count in (
        ("exchange_published_messages_total", summary.exchanges, "published"),
        ("closes_total", summary.closings, "times"),
    ):
        known = sum(row[count] for row in ranking.rows) + ranking.others[count]
        assert sum(found[f"amqp_{name}"].values()) == known
    for who, parties, what in (
        ("queue", summary.by_queue, "delivered"),
        ("consumer", summary.by_consumer, "delivered"),
        ("publisher", summary.by_publisher, "published"),
    ):
        counted = found[f"amqp_{who}_{what}_messages_total"]
        assert sum(counted.values()) == sum(party.messages for party in parties)
        assert len(counted) <= len(parties)
    assert found["amqp_findings"] == {
        f'code="{each.code}",severity="{each.severity}"': each.count for each in summary.findings
    }


def test_names_that_are_none_are_called_so_and_those_that_look_alike_share_a_value(paths: list[Path]) -> None:
    found = _samples(prometheus(summary_of(paths[0])))["amqp_exchange_published_messages_total"]
    assert found == {
        # As in the text of people, and then as between quotes.
        'exchange="a\\"b\\\\\\\\c\\\\nd\\\\x1b{},=\N{SNOWMAN}"': 1,
        'exchange="(default)"': 2,
        'exchange="(others)"': 1,
        'exchange="(unknown)"': 1,
    }


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(BUNNY), "--format", "prometheus"]) == 0
    found = _samples(capsys.readouterr().out)
    assert found["amqp_connections_total"] == {"": 1}
    totals = summary_of(BUNNY).totals
    assert found["amqp_frames_total"] == {
        f'direction="{way}"': totals[f"frames_{way}"] for way in ("sent", "received")
    }


def test_it_is_utf_8_whatever_the_terminal_has(paths: list[Path]) -> None:
    command = [sys.executable, "-m", "amqpcodec", "stats", str(paths[0]), "--format", "prometheus"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert done.stdout.decode() == prometheus(summary_of(paths[0]))
