"""Every number of `amqpcodec stats`, as JSON and as text, of two captures that can be counted by hand.

The expected files are compared whole. Their numbers are also counted here by the plainest means, from frame
objects and from what `support.small` says it sends. Wireshark counts the same packets, octets, frames and
methods.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import small
from support.implementation import Implementation
from support.subprocesses import python
from support.tiers import few

from amqpcodec.capture import CapturedFrame, Fault, read_frames
from amqpcodec.stats.units import UNITS

EXPECTED = Path(__file__).parents[1] / "data" / "stats"
CAPTURES = {"whole.pcap": small.whole(), "damaged.pcapng": small.damaged()}
ANSWER_NS = 200_000  # of what is sent next, see `support.small`
SECOND = 1_000_000_000


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("form", few(["json", "txt"], 1, "the same numbers as text"))
def test_every_number_is_as_expected(
    impl: Implementation, name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(CAPTURES[name])
    monkeypatch.chdir(tmp_path)  # so that the name of the file is the same everywhere
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    finished = python(
        "-m", "amqpcodec", "stats", name, *(["--format", "json"] if form == "json" else []), impl=impl.name
    )
    assert finished.returncode == (name == "damaged.pcapng"), finished.stderr.decode()
    shown = finished.stdout.decode().replace(os.linesep, "\n")
    path = EXPECTED / f"{name.partition('.')[0]}.{form}"
    if form == "txt":
        assert shown == path.read_text(encoding="utf-8")
    else:
        summary = json.loads(shown)
        assert summary.pop("units") == UNITS  # tested for themselves
        assert summary == json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(params=CAPTURES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def expected(name: str) -> Any:
    return json.loads((EXPECTED / f"{name.partition('.')[0]}.json").read_text(encoding="utf-8"))


def test_the_expected_totals_are_those_of_the_frames(name: str, expected: Any) -> None:
    items = list(read_frames(io.BytesIO(CAPTURES[name])))
    frames = [item for item in items if isinstance(item, CapturedFrame)]
    faults = [item for item in items if isinstance(item, Fault)]
    count: Counter[str] = Counter()
    for frame in frames:
        side = ("sent", "received")[frame.direction]
        count[f"frames_{side}"] += 1
        count[f"octets_{side}"] += len(frame.octets)
        count[f"messages_{side}"] += frame.frame.type == 2  # a content header
    gaps = [fault for fault in faults if fault.kind == "gap"]
    missing = sum(fault.length for fault in gaps)
    others = {"connections": 2, "gaps": len(gaps), "octets_missing": missing, "errors": 0}
    others |= {"octets_cut_off": 0, "packets_dropped": 0}
    assert expected["totals"] == {**others, **count}
    times = [item.time_ns // 1000 for item in frames if item.time_ns is not None]
    assert expected["first_us"] == min(times)
    # The last frame is queue.declare-ok; its acknowledgement 100 us later is no frame, but a packet.
    last = max(times) + (100 if name == "whole.pcap" else 0)
    assert expected["last_us"] == last
    of_faults = [(fault["code"], fault["times"], fault["octets"]) for fault in expected["faults"]["rows"]]
    cut = len(CAPTURES[name])
    assert of_faults == [
        (fault.kind.upper(), 1, fault.length) for fault in [*gaps, *(set(faults) - set(gaps))]
    ]
    assert all(fault.offset + fault.length == cut for fault in faults if fault.kind == "file")


def test_the_expected_answers_are_those_that_were_sent(name: str, expected: Any) -> None:
    confirms, acks = expected["confirms"], expected["acks"]
    damaged = name == "damaged.pcapng"
    latencies = [ANSWER_NS] if damaged else [ANSWER_NS, ANSWER_NS + 2 * SECOND]
    for found, answered in ((confirms, latencies), (acks, [ANSWER_NS, ANSWER_NS])):
        assert (found["count"], found["least_ns"], found["most_ns"], found["mean_ns"]) == (
            len(answered), min(answered), max(answered), sum(answered) // len(answered),
        )  # fmt: skip
        # A class of the histogram is a quarter of an octave.
        ends = [(part << bits) // 128 - 1 for bits in range(7, 40) for part in (152, 181, 215, 256)]
        classes = Counter(min(end for end in ends if end >= each) for each in answered)
        assert {end: number for end, number in found["histogram"] if number} == classes
        assert [end for end, _ in found["histogram"]] == [
            end for end in ends if min(classes) <= end <= max(classes)
        ]
        assert sorted(slow["latency_ns"] for slow in found["slowest"]) == answered
    # One message is never answered before its channel is closed; in the damaged one it cannot be known.
    parts = ("unanswered", "waiting", "unfollowed", "negative")
    assert [confirms[part] for part in parts] == ([0, 0, 1, 0] if damaged else [1, 0, 0, 1])
    assert [acks[part] for part in parts] == [1, 1, 0, 0]  # the last delivery waits at the end


def test_the_expected_messages_are_those_that_were_sent(name: str, expected: Any) -> None:
    sent = ["first", "and one more"] if name == "damaged.pcapng" else ["first", "the second", "and one more"]
    bodies = {"publish": sent, "deliver": ["again", "once", "unanswered"]}
    messages = {kind: (len(each), sum(map(len, each)), 0) for kind, each in bodies.items()}
    rows = {
        row["kind"]: (row["messages"], row["octets"], row["incomplete"]) for row in expected["kinds"]["rows"]
    }
    assert rows == messages
    by_exchange = {"publish": "", "deliver": "shop"}
    exchanges = {row["exchange"]: (row["messages"], row["octets"]) for row in expected["exchanges"]["rows"]}
    assert exchanges == {by_exchange[kind]: counts[:2] for kind, counts in messages.items()}
    assert expected["queues"]["rows"] == [{"queue": "work", "messages": 3, "octets": messages["deliver"][1]}]
    assert expected["redelivered"]["rows"] == [{"queue": "work", "messages": 1}]
    [depth] = expected["depths"]
    assert {key: depth[key] for key in ("queue", "reports", "first", "last", "least", "most", "falls")} == {
        "queue": "work", "reports": 2, "first": 7, "last": 9, "least": 7, "most": 9, "falls": 0,
    }  # fmt: skip
    rates = expected["rates"]
    assert {kind: sum(each) for kind, each in rates["messages"].items()} == {
        kind: counts[0] for kind, counts in messages.items()
    }
    assert {kind: sum(each) for kind, each in rates["octets"].items()} == {
        kind: counts[1] for kind, counts in messages.items()
    }
    closings = [
        (row["scope"], row["by"], row["reply_code"], row["times"]) for row in expected["closings"]["rows"]
    ]
    closed = [("channel", "client", 200, 1), ("connection", "client", 200, 1)]
    assert closings == ([] if name == "damaged.pcapng" else closed)
