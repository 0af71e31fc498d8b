"""Durations gathered in classes: percentiles, histograms, and percentiles over time."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from amqpcodec.stats.durations import Answers, Durations
from amqpcodec.stats.summary import Slow

SECOND = 10**9


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_right_to_the_hundredth(seed: int) -> None:
    rng = random.Random(seed)
    exact = sorted(int(rng.lognormvariate(14, 3)) for _ in range(5000))
    answers = Answers(3)
    for each in rng.sample(exact, len(exact)):
        if answers.answer(each, SECOND):
            answers.keep(Slow("f", 0, 1, 1, 1, 0, 2, each, "ack", None, None, None, None))
    latency = answers.latency()
    assert latency.percentiles.keys() == {"p50", "p90", "p99", "p99.9"}
    for name, rank in (("p50", 2500), ("p90", 4500), ("p99", 4950), ("p99.9", 4995)):
        assert exact[rank - 1] <= latency.percentiles[name] <= exact[rank - 1] * 1.008 + 1
    assert [slow.latency_ns for slow in latency.slowest] == exact[:-4:-1]
    assert (latency.least_ns, latency.most_ns, latency.count) == (exact[0], exact[-1], 5000)


def test_only_what_is_among_the_slowest_so_far_is_asked_for() -> None:
    answers, kept = Answers(1), []
    for duration_ns in (5, 4, 5, 6, 1):
        if answers.answer(duration_ns, SECOND):
            slow: Any = SimpleNamespace(latency_ns=duration_ns)
            answers.keep(slow)
            kept.append(duration_ns)
    assert kept == [5, 6]


@pytest.mark.parametrize("seed", range(3))
def test_a_histogram_has_four_equal_classes_an_octave(seed: int) -> None:
    rng = random.Random(seed)
    exact = [int(2 ** rng.uniform(7, 40)) for _ in range(3000)]
    durations = Durations()
    for each in exact:
        durations.add(each)
    histogram = durations.histogram()
    for (below, _), (end, _) in pairwise(histogram):
        assert math.log2((end + 1) / (below + 1)) == pytest.approx(1 / 4, abs=0.011)
    below = 0
    for end, number in histogram:
        assert number == sum(below < each <= end for each in exact)
        below = end
    assert sum(number for _, number in histogram) == len(exact)


def test_all_durations_below_128_ns_are_in_one_class_and_no_class_is_left_out() -> None:
    durations = Durations()
    for each in (0, 1, 127, 128, 255, 1000):
        durations.add(each)
    histogram = durations.histogram()
    assert histogram[0] == (127, 3)
    assert [end for end, _ in histogram] == [
        127, 151, 180, 214, 255, 303, 361, 429, 511, 607, 723, 859, 1023,
    ]  # fmt: skip
    assert sum(number for _, number in histogram) == 6
    assert Durations().histogram() == []


def test_percentiles_over_time_are_those_of_each_interval() -> None:
    rng = random.Random(4)
    known: dict[int, list[int]] = {}
    answers = Answers(1)
    for _ in range(4000):
        second = rng.choice([*range(40), *range(60, 100)])
        duration = int(rng.lognormvariate(12 + second / 20, 1))
        answers.answer(duration, second * SECOND + rng.randrange(SECOND))
        known.setdefault(second, []).append(duration)
    band = answers.latency().over_time
    assert (band.start_ns, band.width_ns, len(band.answered)) == (0, SECOND // 2, 200)
    for index, answered in enumerate(band.answered):
        assert (band.p50_ns[index] is None) == (band.p99_ns[index] is None) == (answered == 0)
    joined = Answers(1)
    for second, durations in known.items():
        for duration in durations:
            joined.answer(duration, second * 10 * SECOND)
    band = joined.latency().over_time
    assert band.width_ns == 5 * SECOND
    for second, durations in known.items():
        exact = sorted(durations)
        index = second * 2
        assert band.answered[index] == len(exact)
        for found, mille in ((band.p50_ns, 500), (band.p99_ns, 990)):
            value = exact[-(-len(exact) * mille // 1000) - 1]
            assert value <= (found[index] or 0) <= value * 1.063


def test_intervals_over_time_are_never_more_than_240_and_hold_every_answer() -> None:
    answers = Answers(1)
    times = [0, 10**6, SECOND, 3600 * SECOND, 86400 * SECOND, 2**62, 5]
    for time_ns in times:
        answers.answer(1000, time_ns)
    band = answers.latency().over_time
    assert len(band.answered) <= 240
    assert sum(band.answered) == len(times)


def test_without_answers_there_is_nothing_over_time() -> None:
    band = Answers(1).latency().over_time
    assert (band.start_ns, band.answered, band.p50_ns, band.p99_ns) == (None, [], [], [])
