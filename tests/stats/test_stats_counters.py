"""Counting in bounded memory."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest

from amqpcodec.stats import counters
from amqpcodec.stats.counters import Durations, Largest, Parties, Tally, Timeline
from amqpcodec.stats.summary import Slow


def test_a_tally_is_exact_for_the_keys_it_holds_and_adds_up_the_rest() -> None:
    tally = Tally(("name",), ("times", "octets"), limit=3)
    for name in "abcabdbeed":
        tally.add((name,), 1, 10)
    ranking = tally.ranking(2)
    assert ranking.rows == [{"name": "b", "times": 3, "octets": 30}, {"name": "a", "times": 2, "octets": 20}]
    assert ranking.others == {"times": 5, "octets": 50}
    assert ranking.uncounted == {"times": 4, "octets": 40}
    assert ranking.distinct == 3


def test_a_count_is_asked_of_a_key_and_nothing_is_counted_of_others() -> None:
    tally = Tally(("name",), ("times", "octets"), limit=1)
    tally.add(("kept",), 2, 30)
    tally.add(("beyond the limit",), 1, 10)
    assert [tally.count(name, ("kept",)) for name in ("times", "octets")] == [2, 30]
    assert [tally.count("times", (name,)) for name in ("beyond the limit", "never seen")] == [0, 0]


def test_keys_of_equal_counts_stand_in_the_order_of_their_names() -> None:
    tally = Tally(("name",), ("times", "octets"))
    for name, octets in zip("dcba", (10, 20, 10, 10), strict=True):
        tally.add((name,), 1, octets)
    assert [row["name"] for row in tally.ranking(4).rows] == ["c", "a", "b", "d"]


def test_the_largest_are_kept_and_of_equal_ones_the_first() -> None:
    largest = Largest(("name",), ("octets", "gaps"), 2)
    for name, octets in zip("abcde", (1, 7, 3, 7, 7), strict=True):
        largest.add((name,), (octets, 1))
    ranking = largest.ranking()
    assert [row["name"] for row in ranking.rows] == ["b", "d"]
    assert ranking.others == {"octets": 11, "gaps": 3}
    assert ranking.distinct == 5


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_right_to_the_hundredth(seed: int) -> None:
    rng = random.Random(seed)
    exact = sorted(int(rng.lognormvariate(14, 3)) for _ in range(5000))
    durations = Durations(3)
    for each in rng.sample(exact, len(exact)):
        if durations.slow(each):
            durations.keep(Slow("f", 0, 1, 1, 1, 0, 2, each, "ack", None, None, None, None))
    latency = durations.latency()
    assert latency.percentiles.keys() == {"p50", "p90", "p99", "p99.9"}
    for name, rank in (("p50", 2500), ("p90", 4500), ("p99", 4950), ("p99.9", 4995)):
        assert exact[rank - 1] <= latency.percentiles[name] <= exact[rank - 1] * 1.008 + 1
    assert [slow.latency_ns for slow in latency.slowest] == exact[:-4:-1]
    assert (latency.least_ns, latency.most_ns, latency.count) == (exact[0], exact[-1], 5000)


def test_intervals_grow_with_the_time_they_span() -> None:
    timeline = Timeline()
    timeline.span(10**9, 10**9)
    timeline.add([("publish", 10**9 // timeline.width_ns, 1, 5)])
    assert timeline.width_ns == 10**6
    timeline.span(2 * 10**9, 3600 * 10**9)
    timeline.add([("publish", 3600 * 10**9 // timeline.width_ns, 2, 6)])
    rates = timeline.rates()
    assert rates.width_ns == 30 * 10**9
    assert rates.start_ns == 0
    assert rates.messages["publish"] == [1, *[0] * 119, 2]
    assert rates.octets["publish"] == [5, *[0] * 119, 6]


MS, SECOND = 10**6, 10**9
WIDTHS = (
    MS,
    5 * MS,
    10 * MS,
    50 * MS,
    100 * MS,
    500 * MS,
    *(step * SECOND for step in (1, 5, 10, 30, 60, 300)),
)
HOURS = [step * SECOND for step in (600, 1800, 3600, 6 * 3600, 24 * 3600, 48 * 3600)]


def test_each_width_of_intervals_holds_240_of_them_and_whole_ones_of_the_width_before() -> None:
    timeline = Timeline()
    for width, next_one in itertools.pairwise([*WIDTHS, *HOURS]):
        timeline.span(0, 240 * width - 1)
        assert timeline.width_ns == width
        timeline.add([("publish", 239, 1, 1)])
        timeline.span(0, 240 * width)
        assert timeline.width_ns == next_one
        assert next_one % width == 0
        assert sum(timeline.rates().messages["publish"][: 240 * width // next_one]) > 0


def test_times_centuries_apart_take_no_more_room() -> None:
    timeline = Timeline()
    timeline.span(0, 2**63 - 1)
    timeline.add([("publish", (2**63 - 1) // timeline.width_ns, 1, 1)])
    assert len(timeline.rates().messages["publish"]) <= 240


def test_only_what_is_among_the_slowest_so_far_is_asked_for() -> None:
    durations, kept = Durations(1), []
    for duration_ns in (5, 4, 5, 6, 1):
        if durations.slow(duration_ns):
            slow: Any = SimpleNamespace(latency_ns=duration_ns)
            durations.keep(slow)
            kept.append(duration_ns)
    assert kept == [5, 6]


def test_keys_that_are_to_stand_behind_others_do_so_whatever_their_counts() -> None:
    tally = Tally(("code",), ("times",))
    for code, times in ((200, 9), (404, 1), (320, 2)):
        tally.add((code,), times)
    ranking = tally.ranking(2, later=lambda key: key[0] == 200)
    assert [row["code"] for row in ranking.rows] == [320, 404]
    assert ranking.others == {"times": 9}


def test_parties_that_are_not_shown_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "_MOST_PARTIES", 3)
    parties = Parties(("queue",))
    for number in range(5):
        for _ in range(5 - number):
            durations = parties.of((f"q{number}",))
            durations.messages += 1
            durations.unanswered += number == 4
            durations.slow(number)
    first, rest = parties.largest(1)
    assert (first.keys, first.messages, first.most_ns, first.others) == ({"queue": "q0"}, 5, 0, 0)
    # Two that are known by name, and all beyond the limit.
    assert (rest.keys, rest.messages, rest.unanswered, rest.others) == ({"queue": None}, 10, 1, 3)
    assert parties.largest(3)[-1].others == 1
