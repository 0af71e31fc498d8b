"""Files of recorders side by side are stitched each to its own, or not at all and that is said."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest

pytest.importorskip("pyspark")

from amqpcodec.spark.chains import chains, unstitched
from amqpcodec.spark.files import File

SECOND = 10**9
HOUR = 3600.0


@dataclass(frozen=True)
class Timed(File):
    """A capture whose times are made up."""

    last: int | None = None
    recorder: int = 0

    def last_ns(self) -> int | None:
        return self.last


def capture(name: str, begin: float, end: float | None, recorder: int = 0) -> Timed:
    last = None if end is None else int(end * SECOND)
    return Timed(f"/c/{name}", 1, "capture", first_ns=int(begin * SECOND), last=last, recorder=recorder)


def found(*files: Timed, timeout: float = HOUR) -> tuple[list[list[str]], list[str]]:
    """Names in runs, and those that are in doubt."""
    runs, unsure = chains(files, timeout)
    return [[file.name for file in run] for run in runs], [file.name for file in unsure]


def recorded(rng: random.Random, recorder: int, until: float, name: str) -> list[Timed]:
    """Return the files of a recorder that begins one when it has ended the one before."""
    files: list[Timed] = []
    moment = rng.uniform(0, 30)
    while moment < until:
        end = moment + rng.uniform(20, 90)
        files.append(
            capture(name.format(recorder, len(files) + 1, int(moment * 1000)), moment, end, recorder)
        )
        moment = end + rng.expovariate(200)
    return files


def links(files: Iterable[Iterable[Timed]]) -> set[tuple[str, str]]:
    return {(one.name, other.name) for run in files for one, other in pairwise(run)}


@pytest.mark.parametrize("recorders", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(8))
def test_times_alone_stitch_the_files_of_each_recorder(recorders: int, seed: int) -> None:
    rng = random.Random(seed)
    made = [recorded(rng, each, 600, "{2}.pcap") for each in range(recorders)]
    together = [file for files in made for file in files]
    rng.shuffle(together)
    runs, unsure = chains(together, HOUR)
    assert links(runs) == links(made)
    assert len(runs) == recorders
    assert unsure == []


@pytest.mark.parametrize("names", ["t_{0}_{1}.pcap", "t_{1:05}_{2}.pcap", "{2}.pcap"])
@pytest.mark.parametrize("seed", range(8))
def test_recorders_that_stop_are_not_stitched_to_others_and_nothing_is_dropped_in_silence(
    names: str, seed: int
) -> None:
    rng = random.Random(seed)
    made = [recorded(rng, each, rng.uniform(200, 900), names) for each in range(4)]
    runs, unsure = chains([file for files in made for file in files], HOUR)
    right, doubtful = links(made), {file.name for file in unsure}
    stitched = {(one.recorder, other.recorder) for run in runs for one, other in pairwise(run)}
    assert all(one == other for one, other in stitched)
    assert all(doubtful.issuperset(missing) for missing in right - links(runs))  # type: ignore[arg-type]
    assert len(right - links(runs)) <= 3  # one for each that stops


def test_a_file_that_two_could_follow_is_stitched_to_neither() -> None:
    runs, unsure = found(
        capture("a", 0, 10), capture("b", 11, 20), capture("c", 12, 22), capture("d", 23, 30)
    )
    assert runs == [["a"], ["b"], ["c"], ["d"]]
    assert unsure == ["a", "b", "c", "d"]


def test_a_recorder_that_begins_later_takes_no_file_from_another() -> None:
    runs, unsure = found(capture("a", 0, 10), capture("b", 10.001, 20), capture("c", 13, 30))
    assert runs == [["a", "b"], ["c"]]
    assert unsure == []


def test_a_file_that_could_follow_two_is_stitched_to_neither_and_others_are() -> None:
    runs, unsure = found(
        capture("a", 0, 10), capture("b", 10, 20), capture("c", 1, 15), capture("d", 15, 20.1),
        capture("e", 20.2, 30), capture("f", 20.3, 31), capture("g", 30.1, 40), capture("h", 31, 41),
    )  # fmt: skip
    assert runs == [["a", "b"], ["c", "d"], ["e", "g"], ["f", "h"]]
    assert unsure == ["b", "d", "e", "f"]


@pytest.mark.parametrize(
    "recorders",
    [
        ["t_1_7.pcap t_1_8.pcap", "t_2_3.pcap t_2_4.pcap"],
        ["t_1_0.pcap t_1_1.pcap", "t_2_0.pcap t_2_1.pcap"],
        ["t.pcap t.pcap1", "t.pcap5 t.pcap6"],
        [
            "t_00007_20261121235900.pcap t_00008_20261122000000.pcap",
            "t_00003_20261121235905.pcap t_00004_20261122000000.pcap",
        ],
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_in_names_settle_it_where_two_turn_at_the_same_time(recorders: list[str], first: int) -> None:
    expected = [recorder.split() for recorder in recorders]
    ended = [capture(names[0], 0, 60 + at / 100) for at, names in enumerate(expected)]
    begun = [capture(names[1], 60.1 + (at != first) / 100, 120) for at, names in enumerate(expected)]
    runs, unsure = found(*ended, *begun)
    assert sorted(runs) == sorted(expected)
    assert unsure == []


NAMES = {
    "number": "t_{at:05}.pcap",
    "dumpcap": "t_{at:05}_2026112112{at:02}00.pcap",
    "tcpdump -C": "t.pcap{at}",
    "time": "t-2026-11-21_12-{at:02}-00.pcap",
    "compressed": "t_{at:05}.pcap.gz",
}


def stepped(names: str, back: float) -> list[Timed]:
    """Return the files of a recorder, a minute each, whose clock is set back before the fourth."""
    begins = [60 * at - back * (at > 3) for at in range(1, 8)]
    unknown = names == "compressed"
    return [
        capture(NAMES[names].format(at=at), begin, None if unknown else begin + 59.999)
        for at, begin in enumerate(begins, 1)
    ]


@pytest.mark.parametrize("back", [0, 0.001, 0.00103, 0.05, 1, 29])
@pytest.mark.parametrize("names", NAMES)
def test_a_clock_that_is_set_back_a_little_cuts_no_recording(names: str, back: float) -> None:
    files = stepped(names, back)
    runs, unsure = found(*files)
    if names == "time" and back > 0.6:  # by times alone, it could be another recorder
        assert {files[2].name, files[3].name} <= set(unsure)
    else:
        assert runs == [[file.name for file in files]]
        assert unsure == []


@pytest.mark.parametrize("back", [40, 90, 200])
@pytest.mark.parametrize("names", ["number", "dumpcap", "tcpdump -C"])
def test_a_clock_that_is_set_back_far_cuts_a_recording_and_that_is_said(names: str, back: float) -> None:
    files = stepped(names, back)
    runs, unsure = chains(files, HOUR)
    assert (files[2], files[3]) not in {pair for run in runs for pair in pairwise(run)}
    assert {files[2], files[3]} <= set(unsure)


def test_a_ring_that_is_written_again_is_one_recording() -> None:
    order = [4, 5, 6, 7, 0, 1, 2, 3]
    files = [capture(f"t.pcap{at}", begin * 60, begin * 60 + 59) for begin, at in enumerate(order)]
    assert found(*files) == ([[f"t.pcap{at}" for at in order]], [])


def test_a_clock_that_is_set_back_before_all_files_is_no_ring() -> None:
    files = [
        capture(f"t.pcap{at}", 60 * at - 900 * (at > 3), 60 * at + 59 - 900 * (at > 3)) for at in range(8)
    ]
    _, unsure = found(*files)
    assert unsure == ["t.pcap4", "t.pcap3"]


def test_captures_side_by_side_whose_numbers_follow_each_other_are_named() -> None:
    """They may be of two recorders, and a stream reads them as one recording."""
    runs, unsure = found(capture("node_1.pcap", 0, 100), capture("node_2.pcap", 1, 101))
    assert runs == [["node_1.pcap"], ["node_2.pcap"]]
    assert unsure == ["node_1.pcap", "node_2.pcap"]


def test_a_file_that_begins_while_the_last_of_a_recorder_ends_is_named() -> None:
    runs, unsure = found(capture("a", 0, 10), capture("b", 10.001, 20), capture("c", 17, 30))
    assert runs == [["a", "b"], ["c"]]
    assert unsure == ["b", "c"]


@pytest.mark.parametrize("names", ["{0}_{1}.pcap", "{1:05}_{2}.pcap"])
@pytest.mark.parametrize("seed", range(8))
def test_a_clock_that_is_often_set_back_loses_no_link_in_silence(names: str, seed: int) -> None:
    rng, back, files = random.Random(seed), 0.0, []
    for file in recorded(rng, 1, 900, names):
        back += rng.choice([0, 0, 0, 3e-5, 0.02, 3, 80])
        begin, end = (file.first_ns or 0) / SECOND, (file.last or 0) / SECOND
        files.append(capture(file.name, begin - back, end - back))
    runs, unsure = chains(files, HOUR)
    assert sorted(file.name for run in runs for file in run) == sorted(file.name for file in files)
    missing = links([files]) - links(runs)  # type: ignore[arg-type]
    assert {name for link in missing for name in link} <= {file.name for file in unsure}


def test_times_in_names_are_no_numbers_that_count_on() -> None:
    runs, unsure = found(
        capture("t-2026-11-21_12-00-50.pcap", 50, 55), capture("t-2026-11-21_12-00-30.pcap", 30, 55.1),
        capture("t-2026-11-21_12-01-00.pcap", 60, 70),
    )  # fmt: skip
    assert len(runs) == 3
    assert len(unsure) == 3


def test_a_long_pause_is_in_no_doubt() -> None:
    runs, unsure = found(capture("a", 0, 10), capture("b", 1, 9), capture("c", 4000, 4010))
    assert runs == [["a"], ["b"], ["c"]]
    assert unsure == []
    assert found(capture("a", 0, 10), capture("c", 4000, 4010), timeout=5000) == ([["a", "c"]], [])


def test_a_file_whose_end_is_not_known_is_not_followed_and_others_are() -> None:
    runs, unsure = found(
        capture("a", 0, 10), capture("b", 10, 20), capture("c", 20, None), capture("d", 31, 40),
        capture("e", 40, 50),
    )  # fmt: skip
    assert runs == [["a", "b", "c"], ["d", "e"]]
    assert unsure == ["c", "d"]
    assert found(capture("a", 0, None)) == ([["a"]], [])


def test_a_file_inside_of_another_leaves_those_around_it_together() -> None:
    runs, unsure = found(capture("t_1", 0, 10), capture("t_7", 2, 5), capture("t_2", 10.001, 20))
    assert runs == [["t_1", "t_2"], ["t_7"]]
    assert unsure == []


def test_many_files_side_by_side_take_no_time_squared() -> None:
    files = [capture(f"{2 * at}.pcap", at / 1000, 100 + at / 1000) for at in range(5000)]
    runs, unsure = chains(files, HOUR)
    assert len(runs) == 5000
    assert unsure == []


def test_a_warning_names_some_files_and_counts_the_others() -> None:
    files = [capture(f"{at}.pcap", 0, 1) for at in range(10)]
    assert unstitched(files[:2]) == (
        "connections do not go on from one capture to the next where it is not certain which one that is (a "
        "compressed one does not show when it ends): '/c/0.pcap', '/c/1.pcap'; rotated=true takes all "
        "captures of a folder as one recording, rotated=false each as its own; "
        "seriesPattern says which names belong together"
    )
    assert "'/c/7.pcap' and 2 more; rotated" in unstitched(files)
