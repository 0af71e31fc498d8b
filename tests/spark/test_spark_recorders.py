"""Recorders that share a folder lose nothing: each is followed by itself, whatever happens to the stream."""

from __future__ import annotations

import gzip
import json
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from support.followed import (
    HEADER,
    age,
    at_most,
    batch,
    expected,
    in_order,
    put,
    reader,
    recorded,
    rows_between,
)
from support.rotations import records
from support.tiers import few

from amqpcodec.capture.series import natural
from amqpcodec.spark import positions
from amqpcodec.spark.chains import UnstitchedWarning
from amqpcodec.spark.notices import BadFileWarning
from amqpcodec.spark.positions import Position, Step

NAMES: dict[str, Callable[[int, int], str]] = {
    "numbers": lambda who, at: f"rabbit{who}_{at}.pcap",
    "tcpdump -C": lambda who, at: f"node-{who}.pcap{at or ''}",
    "tcpdump -G": lambda who, at: f"10.0.0.{who}-2026-11-23_{9 + at // 60:02}:{at % 60:02}:00.pcap",
    "dumpcap": lambda who, at: f"node-{who}_{at % 5:05}_202611231{at // 60}{at % 60:02}00.pcapng",
    "netsniff-ng": lambda who, at: f"rabbit{who}-{1732370000 + 60 * at}.pcap",
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[list[bytes]]:
    """Return the files of three recorders, each of its own connections, cut anywhere."""
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    return [recorded(path, 60_000, seed=seed, bursts=10, piece=5_000 + seed) for seed in range(3)]


def writing(
    folder: Path, files: list[list[bytes]], name: Callable[[int, int], str], seed: int
) -> Iterator[None]:
    """Recorders at work, in pieces of a file and in any order."""
    rng = random.Random(seed)
    waiting = {who: [(at, octets) for at, octets in enumerate(each)] for who, each in enumerate(files)}
    while waiting:
        who = rng.choice(list(waiting))
        at, octets = waiting[who][0]
        path = folder / name(who, at)
        size = path.stat().st_size if path.exists() else HEADER
        end = min(size + rng.randrange(500, 4000), len(octets))
        path.write_bytes(octets[:end])
        if end == len(octets):
            waiting[who].pop(0)
            if not waiting[who]:
                del waiting[who]
        yield


def kept(offset: Any) -> Any:
    """An offset as Spark stores it."""
    return json.loads(json.dumps(offset))


def killed_often(
    folder: Path, steps: Iterator[None], seed: int, **options: str
) -> tuple[list[dict[str, Any]], int]:
    """The rows of a stream that is killed at every other moment, and how often it was."""
    rng = random.Random(seed)
    rows, offset, kills = [], {}, 0
    source = reader(folder, **options)
    for step in (*steps, "old"):
        if step == "old":
            for path in folder.iterdir():
                age(path, 7200)
        elif rng.random() < 0.5:
            continue
        moment = rng.choice(["planned", "stored", "read", "done"])
        end = kept(source.latestOffset(offset))
        if moment == "planned" and step != "old":  # nothing was stored: the next one plans it again
            source, kills = reader(folder, **options), kills + 1
            continue
        if moment == "stored":  # the batch is planned again from the offsets
            source, kills = reader(folder, **options), kills + 1
        found = rows_between(source, offset, end)
        if moment == "read":  # the rows were not committed
            source, kills = reader(folder, **options), kills + 1
            assert rows_between(source, offset, end) == found
        rows, offset = rows + found, end
    assert source.latestOffset(offset) == offset
    return rows, kills


@pytest.mark.parametrize("recorders", few([2, 3], 1, "more recorders"))
@pytest.mark.parametrize("names", NAMES)
def test_recorders_in_a_folder_are_each_read_as_a_batch_reads_them(
    captures: list[list[bytes]], tmp_path: Path, names: str, recorders: int
) -> None:
    files = captures[:recorders]
    steps = writing(tmp_path, files, NAMES[names], seed=recorders)
    rows, kills = killed_often(tmp_path, steps, seed=len(names))
    assert kills > 10
    for who in range(recorders):
        paths = {str(tmp_path / NAMES[names](who, at)) for at in range(len(files[who]))}
        of_one = [row for row in rows if row["file"] in paths]
        alone = tmp_path / f"of-{who}"
        alone.mkdir()
        for path in map(Path, paths):
            path.rename(alone / path.name)
        one = in_order(batch(alone, rotated="true"))
        assert len(one) > 90
        assert [row[1:] for row in in_order(of_one)] == [row[1:] for row in one]
        rows = [row for row in rows if row["file"] not in paths]
    assert not rows


def test_a_stream_that_is_killed_often_loses_and_doubles_nothing(
    captures: list[list[bytes]], tmp_path: Path
) -> None:
    every = 0
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rows, kills = killed_often(folder, writing(folder, captures, NAMES["numbers"], seed), seed)
        every += kills
        wanted = [row for who in range(3) for row in batch(f"{folder}/rabbit{who}_*.pcap", rotated="true")]
        assert in_order(rows) == in_order(wanted)
    assert every > 60


@pytest.mark.filterwarnings("ignore:no messages found")  # in the first octets
@pytest.mark.parametrize("seed", few(range(6), 2, "further seeds"))
def test_a_stream_that_is_killed_often_loses_and_doubles_nothing_where_recorders_are_often_quiet(
    captures: list[list[bytes]], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)

    def quiet() -> Iterator[None]:
        for step in writing(tmp_path, captures[:2], NAMES["numbers"], seed):
            for path in tmp_path.iterdir():
                if rng.random() < 0.4:
                    age(path, 7200)
            yield step

    rows, kills = killed_often(tmp_path, quiet(), seed)
    assert kills > 5
    wanted = []
    for who in range(2):
        wanted += expected([tmp_path / NAMES["numbers"](who, at) for at in range(len(captures[who]))])
    assert in_order(rows) == sorted(wanted, key=repr)


def test_a_file_that_grows_waits_whatever_another_recorder_writes(
    captures: list[list[bytes]], tmp_path: Path
) -> None:
    first, second, others = tmp_path / "rabbit1_0.pcap", tmp_path / "rabbit1_1.pcap", captures[1]
    octets = captures[0][0]
    first.write_bytes(octets[: len(octets) // 2])
    (tmp_path / "rabbit2_0.pcap").write_bytes(others[0])
    source = reader(tmp_path)
    assert source.latestOffset({}) == {}
    age(first, 50)
    assert source.latestOffset({}) == {}
    (tmp_path / "rabbit2_1.pcap").write_bytes(others[1])
    offset = source.latestOffset({})
    assert [Path(position["last"]).name for position in offset.values()] == ["rabbit2_0.pcap"]
    first.write_bytes(octets)
    second.write_bytes(captures[0][1])
    end = source.latestOffset(offset)
    rows = rows_between(source, offset, end)
    assert {row["file"] for row in rows} == {str(first)}
    assert in_order(rows) == in_order(batch(first))


def test_a_pattern_puts_files_together_and_the_stream_goes_on_with_it(
    captures: list[list[bytes]], tmp_path: Path
) -> None:
    for at, octets in enumerate(captures[0]):
        path = tmp_path / f"{'abcdefghijklmnop'[at]}.node-1.pcap"
        path.write_bytes(octets)
        age(path, 7200)
    assert len(reader(tmp_path).latestOffset({})) == len(captures[0])
    source = reader(tmp_path, seriesPattern=r"^\w\.")
    end = source.latestOffset({})
    assert list(end) == [str(tmp_path / "node-1.pcap")]
    assert in_order(rows_between(source, {}, end)) == in_order(batch(tmp_path, rotated="true"))
    with pytest.raises(
        ValueError, match=r"made with another rotated or seriesPattern: '.*' was of the series"
    ):
        reader(tmp_path).latestOffset(end)


def test_a_checkpoint_with_other_series_is_refused(captures: list[list[bytes]], tmp_path: Path) -> None:
    put(tmp_path, captures[0], 0, 2)
    old = {f"{tmp_path}/trace_#.pcap": {"last": f"{tmp_path}/trace_00000.pcap", "files": "1", "state": ""}}
    with pytest.raises(ValueError, match="the checkpoint is of an earlier version"):
        reader(tmp_path).latestOffset(old)
    with pytest.raises(ValueError, match="the checkpoint is of an earlier version"):
        reader(tmp_path).partitions(old, old)


def test_a_late_file_is_read_once_it_is_complete(captures: list[list[bytes]], tmp_path: Path) -> None:
    """As a clock that is set back makes them."""
    paths = put(tmp_path, captures[0], 0, 4, age=7200)
    paths[1].unlink()
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    put(tmp_path, captures[0], 1, 2)
    assert reader(tmp_path).latestOffset(offset) == offset  # it may still grow
    age(paths[1], 61)
    for path in paths[2:]:
        path.unlink()
    with pytest.warns(BadFileWarning, match=r"trace_00001.pcap' came after '.*trace_00003.pcap' was read"):
        end = kept(reader(tmp_path).latestOffset(offset))
    after = reader(tmp_path)
    assert in_order(rows_between(after, offset, end)) == in_order(batch(paths[1]))
    assert after.latestOffset(end) == end


@pytest.mark.parametrize("skip", [False, True])
def test_a_file_that_changes_after_it_was_read_is_reported(
    captures: list[list[bytes]], tmp_path: Path, skip: bool
) -> None:
    """As a file of a ring that is written again, or one that was read while it grew."""
    first, second = put(tmp_path, captures[0], 0, 2, age=7200)
    offset = kept(reader(tmp_path).latestOffset({}))
    size = first.stat().st_size
    first.write_bytes(captures[0][0] + b"more")
    message = f"has changed since it was read: it had {size} octets, and has {size + 4}; "
    if not skip:
        with pytest.raises(OSError, match=f"{first.name}' {message}"):
            reader(tmp_path).latestOffset(offset)
        return
    source = reader(tmp_path, table="errors", badFiles="skip")
    with pytest.warns(BadFileWarning, match=f"^skipped '{first}': {message}"):
        end = kept(source.latestOffset(offset))
    (row,) = rows_between(source, offset, end)
    assert (row["file"], row["code"]) == (str(first), "FILE")
    assert row["message"].startswith(message)
    restarted = reader(tmp_path, table="errors", badFiles="skip")
    assert rows_between(restarted, offset, end) == [row]
    assert restarted.latestOffset(end) == end
    assert end[next(iter(end))]["last"] == str(second)


def test_files_that_are_compressed_after_they_were_planned_are_read_once(
    captures: list[list[bytes]], tmp_path: Path
) -> None:
    paths = put(tmp_path, captures[0], 0, 4, age=7200)
    plain = expected(paths)
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    for path in paths[:2]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    paths[0].unlink()  # of the other, both are there
    assert source.latestOffset(offset) == offset
    rows = rows_between(reader(tmp_path), {}, offset)
    assert in_order([row | {"file": row["file"].removesuffix(".gz")} for row in rows]) == plain
    read = {Path(row["file"]).name for row in rows}
    assert f"{paths[0].name}.gz" in read
    assert f"{paths[1].name}.gz" not in read


def test_old_files_may_go_and_names_of_many_are_not_kept(
    captures: list[list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "_NAMED", 3)
    files = captures[0]
    wanted = put(tmp_path, files, 0, len(files), age=7200)
    rows = in_order(batch(tmp_path, rotated="true"))
    for path in wanted:
        path.unlink()
    found, offset = [], {}
    for at in range(len(files)):
        put(tmp_path, files, at, at + 1, age=7200)
        source = reader(tmp_path)
        end = kept(source.latestOffset(offset))
        found += rows_between(reader(tmp_path), offset, end)
        offset = end
        if at > 5:
            wanted[at - 6].unlink()
        (position,) = offset.values()
        assert len(Position.stored(position).taken) <= 3
    assert in_order(found) == rows
    assert len(files) > 9
    wanted[0].write_bytes(files[0])  # two were there below those that are named, now three
    wanted[1].write_bytes(files[1])
    with pytest.raises(OSError, match=r"files have come late: they sort before '.*', and so far down"):
        reader(tmp_path).latestOffset(offset)


@pytest.mark.parametrize("seed", few(range(6), 2, "further seeds"))
def test_a_position_tells_taken_files_from_late_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file that is there is taken once, or it is said that one cannot be told."""
    monkeypatch.setattr(positions, "_NAMED", 8)
    rng = random.Random(seed)
    position, there, taken, late, refused = Position(), {}, set(), 0, 0
    for top in range(0, 400, 4):
        there[f"/in/t_{top}.pcap"] = 1
        if rng.random() < 0.3:
            for path in rng.sample(sorted(there.keys() & taken), min(3, len(there.keys() & taken))):
                del there[path]
        elif rng.random() < 0.5:
            at = top - 4 * rng.randrange(1, 14) - 1
            if f"/in/t_{at}.pcap" not in taken:
                there[f"/in/t_{at}.pcap"] = 1
        ordered = dict(sorted(there.items(), key=lambda item: natural(item[0])))
        missing = there.keys() - taken
        try:
            step = position.step(ordered)
        except OSError:
            refused += 1
            lowest = natural(min(position.taken, key=natural))
            (hidden,) = (path for path in missing if natural(path) < lowest)
            del there[hidden], ordered[hidden]
            step = position.step(ordered)
            missing.discard(hidden)
        assert {*step.late, *step.new} == missing
        behind = Position.stored(kept(position.behind(step, ordered, "").text()))
        assert behind.since(position) == step
        assert behind.files == len(taken | missing)
        assert len(behind.taken) <= 8 or step.late
        late += len(step.late)
        taken |= missing
        position = behind
    assert late > 5
    assert refused > 3


def test_a_step_knows_whether_there_is_anything_to_do() -> None:
    assert not Step()
    assert all((Step({"a": 1}), Step(new={"a": 1}), Step(changed={"a": None})))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the files of a recorder that is often quiet."""
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    return recorded(path, 60_000, seed=6, bursts=10, piece=15_000)


class Quiet:
    """A recorder that writes a piece of a file, and then nothing for as long as makes the file complete.

    Args:
        folder: where it writes.
        files: what it writes.
        seed: where its files are cut.
    """

    def __init__(self, folder: Path, files: list[bytes], seed: int) -> None:
        self._folder, self._rng, self._waiting = folder, random.Random(seed), list(enumerate(files))
        self._size = 0

    def path(self, at: int) -> Path:
        return self._folder / f"trace_{at:05d}.pcap"

    def write(self) -> bool:
        """Write some more; return whether there was any."""
        if not self._waiting:
            return False
        at, octets = self._waiting[0]
        self._size = min(self._size + self._rng.randrange(200, 6000), len(octets))
        self.path(at).write_bytes(octets[: self._size])
        age(self.path(at), 7200)
        if self._size == len(octets):
            self._waiting.pop(0)
            self._size = 0
        return True


@pytest.mark.filterwarnings("ignore:no messages found")  # in the first octets
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("seed", few(range(4), 1, "further seeds"))
def test_a_recorder_that_is_quiet_for_long_and_writes_on_is_read_as_a_batch_reads_it(
    recording: list[bytes], tmp_path: Path, seed: int, restarts: bool
) -> None:
    recorder, source, offset, rows, steps = Quiet(tmp_path, recording, seed), reader(tmp_path), {}, [], 0
    while recorder.write():
        end = kept(source.latestOffset(offset))
        steps += end != offset
        if restarts:
            source = reader(tmp_path)
        rows += rows_between(source, offset, end)
        assert source.latestOffset(end) == end
        offset = end
    assert steps > 10
    assert in_order(rows) == expected(sorted(tmp_path.iterdir()))


def test_what_was_written_after_planning_is_read_by_the_next_batch(
    recording: list[bytes], tmp_path: Path
) -> None:
    (path,) = put(tmp_path, [recording[0][:7001]], 0, 1, age=7200)
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    put(tmp_path, recording, 0, 1, age=7200)
    rows = rows_between(source, {}, offset)
    assert rows_between(reader(tmp_path), {}, offset) == rows
    end = source.latestOffset(offset)
    assert in_order(rows + rows_between(source, offset, end)) == expected([path])


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("when", ["before", "planned", "committed"])
def test_a_file_may_be_compressed_after_a_part_of_it_was_read(
    recording: list[bytes], tmp_path: Path, when: str, rest: bool
) -> None:
    """`rest` is whether more was written to it before that."""
    size = 9001 if rest else len(recording[0])
    paths = put(tmp_path, [recording[0][:size], *recording[1:]], 0, 1, age=7200)
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    rows = rows_between(source, {}, offset)
    paths += put(tmp_path, recording, 0, 2, age=7200)[1:]
    plain = expected(paths)
    end = kept(source.latestOffset(offset)) if when != "before" else None
    if when == "committed":
        rows += rows_between(source, offset, end)
    paths[0].with_name(f"{paths[0].name}.gz").write_bytes(gzip.compress(recording[0]))
    paths[0].unlink()
    source = reader(tmp_path)
    end = end or kept(source.latestOffset(offset))
    if when != "committed":
        rows += rows_between(source, offset, end)
    assert in_order([row | {"file": row["file"].removesuffix(".gz")} for row in rows]) == plain
    assert source.latestOffset(end) == end


@pytest.mark.parametrize("planned", [False, True])
def test_a_file_that_was_read_may_be_deleted_while_it_is_the_newest(
    recording: list[bytes], tmp_path: Path, planned: bool
) -> None:
    wanted = expected(put(tmp_path, recording, 0, 2, age=7200))
    (tmp_path / "trace_00001.pcap").unlink()
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    rows = rows_between(source, {}, offset)
    put(tmp_path, recording, 1, 2, age=7200)
    end = kept(source.latestOffset(offset)) if planned else None
    (tmp_path / "trace_00000.pcap").unlink()
    end = end or kept(source.latestOffset(offset))
    rows += rows_between(reader(tmp_path), offset, end)
    assert in_order(rows) == wanted


@pytest.mark.parametrize("change", ["written again", "shorter"])
@pytest.mark.parametrize("skip", [False, True])
def test_a_file_that_reading_stands_in_and_is_another_one_is_reported(
    recording: list[bytes], tmp_path: Path, change: str, skip: bool
) -> None:
    first = recording[0][:9000]
    (path,) = put(tmp_path, [first], 0, 1, age=7200)
    offset = kept(reader(tmp_path, table="errors").latestOffset({}))
    put(tmp_path, [recording[1] if change == "written again" else first[:5000]], 0, 1, age=7200)
    put(tmp_path, recording, 1, 2, age=7200)
    message = f"has changed since it was read: it had 9000 octets, and has {path.stat().st_size}; "
    if not skip:
        with pytest.raises(OSError, match=f"{path.name}' {message}"):
            reader(tmp_path, table="errors").latestOffset(offset)
        return
    source = reader(tmp_path, table="errors", badFiles="skip")
    with pytest.warns(BadFileWarning, match=f"^skipped '{path}': {message}"):
        end = kept(source.latestOffset(offset))
    again = reader(tmp_path, table="errors", badFiles="skip")
    for each in (source, again):
        found = [row for row in rows_between(each, offset, end) if row["kind"] == "file"]
        assert [row["file"] for row in found] == [str(path)]
        assert each.latestOffset(end) == end


def test_a_file_that_is_gone_before_it_was_read_is_a_row_where_bad_files_are_skipped(
    recording: list[bytes], tmp_path: Path
) -> None:
    paths = put(tmp_path, recording, 0, 3, age=7200)
    end = kept(reader(tmp_path, badFiles="skip").latestOffset({}))
    for gone in paths[1:]:
        gone.unlink()
    source = reader(tmp_path, table="errors", badFiles="skip")
    with pytest.warns(BadFileWarning) as caught:
        rows = rows_between(source, {}, end)
    assert [str(warning.message) for warning in caught] == [
        f"skipped '{path}': was to be read again, and is not there any more" for path in paths[1:]
    ]
    assert [row["file"] for row in rows if row["kind"] == "file"] == [str(path) for path in paths[1:]]
    with pytest.warns(BadFileWarning):
        rows = rows_between(reader(tmp_path, badFiles="skip"), {}, end)
    assert in_order(rows) == expected(paths[:1])
    put(tmp_path, recording, 3, 4, age=7200)
    after = reader(tmp_path, badFiles="skip")
    assert rows_between(after, end, after.latestOffset(end))


@pytest.mark.needs("maxFilesPerTrigger")
def test_a_run_over_what_is_there_reads_the_rest_of_a_file_and_ends(
    recording: list[bytes], tmp_path: Path
) -> None:
    put(tmp_path, [recording[0][:9000]], 0, 1, age=7200)
    offset = kept(reader(tmp_path).latestOffset({}))
    rows = rows_between(reader(tmp_path), {}, offset)
    paths = put(tmp_path, recording, 0, 4, age=7200)
    source, ends = reader(tmp_path), [offset]
    source.prepareForTriggerAvailableNow()
    (tmp_path / "trace_00004.pcap").write_bytes(recording[0])
    while len(ends) < 2 or ends[-1] != ends[-2]:
        ends.append(kept(source.latestOffset(ends[-1], at_most(2))))
        rows += rows_between(reader(tmp_path), ends[-2], ends[-1])
    assert len(ends) == 4  # two files each, with the rest of the first beside them; and nothing more
    assert in_order(rows) == expected(paths)


def test_a_checkpoint_that_knows_of_no_open_file_is_gone_on_from(
    recording: list[bytes], tmp_path: Path
) -> None:
    paths = put(tmp_path, recording, 0, 2)
    offset = kept(reader(tmp_path).latestOffset({}))
    for position in offset.values():
        assert position.pop("open") == ""
        del position["known_by"]
    age(paths[1], 7200)
    source = reader(tmp_path)
    rows = rows_between(source, {}, offset)
    end = source.latestOffset(offset)
    assert in_order(rows + rows_between(source, offset, end)) == expected(paths)


def test_a_growing_file_is_not_read_before_it_is_quiet_again(recording: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, [recording[0][:9000]], 0, 1, age=7200)
    offset = kept(reader(tmp_path).latestOffset({}))
    (path,) = put(tmp_path, recording, 0, 1, age=30)
    assert reader(tmp_path).latestOffset(offset) == offset
    assert reader(tmp_path, minFileAge="20s").latestOffset(offset) != offset
    age(path, 60)
    assert reader(tmp_path).latestOffset(offset) != offset


@pytest.mark.parametrize("named", [1, 1024])
def test_an_empty_file_is_read_once_there_is_something_in_it(
    recording: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    monkeypatch.setattr(positions, "_NAMED", named)
    empty, last = put(tmp_path, [recording[0], b"", recording[2]], 0, 3, age=7200)[1:]
    source = reader(tmp_path)
    offset = kept(source.latestOffset({}))
    assert source.latestOffset(offset) == offset
    paths = put(tmp_path, recording, 3, 4, age=7200)
    end = kept(source.latestOffset(offset))
    rows = rows_between(source, {}, offset) + rows_between(source, offset, end)
    assert in_order(rows) == expected([tmp_path / "trace_00000.pcap", last, *paths])
    assert source.latestOffset(end) == end
    put(tmp_path, recording, 1, 2, age=7200)
    if named == 1:
        with pytest.raises(OSError, match="1 files have come late"):
            source.latestOffset(end)
        return
    with pytest.warns(BadFileWarning, match=rf"^'{empty}' came after"):
        behind = kept(source.latestOffset(end))
    assert in_order(rows_between(source, end, behind)) == in_order(batch(empty))


def set_back(octets: bytes, seconds: float) -> bytes:
    """Return a capture as it is if the clock was set back."""
    made = octets[:HEADER]
    for record in records(octets):
        whole, micros = divmod(round(1e6 * (int.from_bytes(record[:4], "little") - seconds)), 10**6)
        micros += int.from_bytes(record[4:8], "little")
        made += (whole + micros // 10**6).to_bytes(4, "little") + (micros % 10**6).to_bytes(4, "little")
        made += record[8:]
    return made


@pytest.mark.parametrize("name", ["rabbit1_{}.pcap", "node-1.pcap{}", "node-1_{:05}_20261123100400.pcapng"])
@pytest.mark.parametrize("back", [0, 0.00003, 0.005, 100])
@pytest.mark.parametrize("table", ["messages", "errors"])
def test_a_clock_that_is_set_back_gives_the_same_rows_in_a_batch_and_a_stream_or_both_say_so(
    captures: list[list[bytes]], tmp_path: Path, name: str, back: float, table: str
) -> None:
    paths = []
    for at, octets in enumerate(captures[0]):
        paths.append(tmp_path / name.format(at))
        paths[-1].write_bytes(set_back(octets, back) if at > 3 else octets)
        age(paths[-1], 7200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = reader(tmp_path, table)
        end = source.latestOffset({})
        rows = rows_between(source, {}, end)
        found = batch(tmp_path, table)
    said = [str(warning.message) for warning in caught if warning.category is UnstitchedWarning]
    if said:
        assert back > 0.001
        assert len(said) == 2
        assert all(repr(str(path)) in text for path in paths[3:5] for text in said)
    else:
        assert back < 1
        assert [row for row in found if row.get("complete", True)] == rows
        assert found == batch(tmp_path, table, rotated="true")
