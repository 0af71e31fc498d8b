"""Counting in bounded memory."""

from __future__ import annotations

import itertools

from amqpcodec.stats.counters import Largest, Tally, Timeline


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


def test_keys_that_are_to_stand_behind_others_do_so_whatever_their_counts() -> None:
    tally = Tally(("code",), ("times",))
    for code, times in ((200, 9), (404, 1), (320, 2)):
        tally.add((code,), times)
    ranking = tally.ranking(2, later=lambda key: key[0] == 200)
    assert [row["code"] for row in ranking.rows] == [320, 404]
    assert ranking.others == {"times": 9}
