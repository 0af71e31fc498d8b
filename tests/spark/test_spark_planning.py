"""However captures are divided among tasks, the rows are the same."""

from __future__ import annotations

import gzip
import os
import random
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from support import make_capture as make
from support import make_chaos as chaos
from support.rotations import busy, records, write_rotated
from support.tiers import few

from amqpcodec import arrow
from amqpcodec._columns.schemas import TABLES
from amqpcodec._options import resolve
from amqpcodec.options import SparkReadOptions
from amqpcodec.spark import planning, table_schema
from amqpcodec.spark.chains import UnstitchedWarning
from amqpcodec.spark.files import File
from amqpcodec.spark.notices import BadFileWarning, NothingFoundWarning
from amqpcodec.spark.options import read_options
from amqpcodec.spark.planning import parts_of, plan, together
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.reading import batches, with_states


def rows(options: SparkReadOptions) -> list[dict[str, object]]:
    """All rows that tasks read, in the order of their parts."""
    names = arrow.schema(options["table"]).names
    found = []
    for recording in plan(options):
        for part in with_states(recording, options):
            found += [row for batch in batches(part, names, options) for row in batch.to_pylist()]
    return found


def options(*paths: Path | str, **others: object) -> SparkReadOptions:
    return resolve(SparkReadOptions, {"paths": [str(path) for path in paths], **others})  # type: ignore[return-value]


def read(*paths: Path, table: str = "messages") -> list[dict[str, object]]:
    reader = arrow.read_capture([str(path) for path in paths], table)
    return pa.Table.from_batches(reader, reader.schema).to_pylist()


def session(paths: list[Path], table: str = "messages") -> list[dict[str, object]]:
    """The rows of several files as one recording."""
    opened = arrow.CaptureSession(table)
    found = [batch for path in paths for batch in opened.read(str(path))]
    return pa.Table.from_batches([*found, *opened.finish()], opened.schema).to_pylist()


@pytest.mark.parametrize("table", TABLES)
def test_a_capture_gives_its_rows_in_parts_of_any_size(tmp_path: Path, table: str) -> None:
    path = tmp_path / "trace.pcap"
    octets = busy(path)
    whole = read(path, table=table)
    for size in (len(octets) // 3, 50_021):
        given = options(path, table=table, max_partition_bytes=size)
        assert len(plan(given)[0]) == -(-len(octets) // size)
        assert rows(given) == whole


@pytest.mark.parametrize("seed", few(range(4), 1, "further seeds"))
def test_damaged_captures_give_their_rows_in_parts(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "trace"
    path.write_bytes(chaos.capture(seed))
    for table in TABLES:
        whole = read(path, table=table)
        for size in (7_001, 40_000):
            assert rows(options(path, table=table, max_partition_bytes=size, port=5672)) == whole


@pytest.mark.parametrize("seed", few(range(2), 1, "further seeds"))
def test_a_part_can_be_read_from_the_state_that_another_task_leaves(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "trace"
    path.write_bytes(chaos.capture(seed))
    for table in TABLES:
        given = options(path, table=table, max_partition_bytes=7_001, port=5672)
        states: list[bytes | None] = [None]
        found = []
        for part in plan(given)[0]:
            begun = replace(part, state=states[-1])
            few_columns = ["file", "wait_us"] if table == "deliveries" else ["file"]
            list(batches(begun, few_columns, given | {"mode": "drop"}, on_state=states.append))
            read_all = batches(begun, arrow.schema(table).names, given)
            found += [row for batch in read_all for row in batch.to_pylist()]
        assert len(states) > 3
        assert found == read(path, table=table)


def test_the_pure_build_reads_the_same_parts(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    busy(path, 60_000)
    assert rows(options(path, max_partition_bytes=9_000, impl="py")) == read(path)


@pytest.mark.parametrize("group", few([60_000, 1, 1 << 30], 1, "further sizes"))
def test_rotated_files_are_one_recording_in_groups_of_any_size(tmp_path: Path, group: int) -> None:
    octets = busy(tmp_path / "whole")
    paths = write_rotated(tmp_path / "set", octets, seed=group, files=7)
    for table in ("messages", "errors", "connections"):
        assert rows(options(tmp_path / "set", table=table, max_group_bytes=group)) == session(paths, table)


def test_connections_go_on_over_files(tmp_path: Path) -> None:
    octets = busy(tmp_path / "whole")
    write_rotated(tmp_path / "set", octets, seed=5, files=9)
    whole = read(tmp_path / "whole")
    found = rows(options(tmp_path / "set", max_group_bytes=100_000))
    for row in (*whole, *found):
        del row["file"], row["packet"]
    assert found == whole


def test_the_order_in_which_files_are_named_does_not_matter(tmp_path: Path) -> None:
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole"), seed=6, files=5)
    names = [str(path) for path in paths]
    random.Random(1).shuffle(names)
    assert rows(options(*names)) == session(paths)


def test_large_files_and_small_ones_are_divided_as_they_are(tmp_path: Path) -> None:
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole"), seed=8, files=6)
    largest = max(path.stat().st_size for path in paths)
    given = options(tmp_path / "set", max_partition_bytes=largest // 2, max_group_bytes=largest)
    parts = plan(given)[0]
    assert any(len(part.ranges) > 1 for part in parts)
    assert any(part.ranges[-1].end is not None for part in parts)
    assert rows(given) == session(paths)


def recordings(folder: Path, **others: object) -> list[list[str]]:
    """Names of files, by the recording they are put into."""
    given = options(folder, max_partition_bytes=1 << 40, max_group_bytes=1 << 40, **others)
    return [
        [os.path.basename(file.path) for part in recording for file in part.ranges]
        for recording in plan(given)
    ]


def test_captures_made_side_by_side_are_kept_apart(tmp_path: Path) -> None:
    for number in range(3):
        busy(tmp_path / f"host{number}.pcap", 30_000, seed=number)
    assert recordings(tmp_path) == [["host0.pcap"], ["host1.pcap"], ["host2.pcap"]]
    together = [str(path) for path in sorted(tmp_path.iterdir())]
    assert rows(options(tmp_path)) == read(*map(Path, together))


@pytest.mark.parametrize("recorders", few([2, 3], 1, "more recorders"))
@pytest.mark.parametrize("table", ["messages", "connections", "errors"])
def test_recorders_that_fill_one_series_side_by_side_are_stitched_each_on_its_own(
    tmp_path: Path, recorders: int, table: str
) -> None:
    octets = busy(tmp_path / "whole")
    expected = []
    for number in range(1, recorders + 1):
        paths = write_rotated(tmp_path / f"{number}", octets, seed=number, files=6)
        moved = [tmp_path / "set" / path.name.replace("_0", f"_{number}") for path in paths]
        (tmp_path / "set").mkdir(exist_ok=True)
        for path, target in zip(paths, moved, strict=True):
            path.rename(target)
        expected += session(moved, table)
    assert rows(options(tmp_path / "set", table=table)) == expected
    if table == "messages":
        assert all(row["complete"] for row in expected)


def test_files_whose_order_is_in_doubt_are_named(tmp_path: Path) -> None:
    octets = busy(tmp_path / "whole")
    first, second = write_rotated(tmp_path / "set", octets, seed=2, files=2)
    twin = second.with_name("trace_20002.pcap")
    twin.write_bytes(second.read_bytes())
    second.rename(second.with_name("trace_20001.pcap"))
    with pytest.warns(UnstitchedWarning) as caught:
        assert len(plan(options(tmp_path / "set"))) == 3
    (warning,) = caught
    assert all(repr(str(path)) in str(warning.message) for path in (first, twin))
    for settled in ({"rotated": "true"}, {"rotated": "false"}, {"stitch": False}):
        plan(options(tmp_path / "set", **settled))  # any warning fails


def test_files_that_follow_each_other_are_put_together_by_name_and_time(tmp_path: Path) -> None:
    octets = busy(tmp_path / "whole.pcap")
    first, second, third = write_rotated(tmp_path / "set", octets, seed=2, files=3)
    for path, name in ((first, "t.pcap"), (second, "t.pcap1"), (third, "other.pcap")):
        path.rename(tmp_path / "set" / name)
    assert recordings(tmp_path / "set") == [["other.pcap"], ["t.pcap", "t.pcap1"]]
    assert recordings(tmp_path / "set", rotated="true") == [["t.pcap", "t.pcap1", "other.pcap"]]
    assert recordings(tmp_path / "set", rotated="false") == [["other.pcap"], ["t.pcap"], ["t.pcap1"]]


def test_a_long_silence_ends_a_recording(tmp_path: Path) -> None:
    _, second = write_rotated(tmp_path / "set", busy(tmp_path / "whole"), seed=2, files=2)
    assert len(recordings(tmp_path / "set")) == 1
    octets = second.read_bytes()
    second.write_bytes(octets[:24] + b"".join(map(two_hours_later, records(octets))))
    assert len(recordings(tmp_path / "set")) == 2
    assert len(recordings(tmp_path / "set", flow_timeout=10_000.0)) == 1


def two_hours_later(record: bytes) -> bytes:
    return (int.from_bytes(record[:4], "little") + 7200).to_bytes(4, "little") + record[4:]


def test_compressed_files_are_put_together_by_their_numbers_or_on_request(tmp_path: Path) -> None:
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole"), seed=4, files=3)
    expected = session(paths)
    for path in paths:
        path.with_suffix(".pcap.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()
    small = {"max_group_bytes": 1, "max_partition_bytes": 100}
    for given in ({}, {"rotated": "true"}):
        found = rows(options(tmp_path / "set", **given, **small))
        assert [row | {"file": None} for row in found] == [row | {"file": None} for row in expected]
        assert found[0]["file"] == str(tmp_path / "set" / "trace_00001.pcap.gz")
    for at, path in enumerate(sorted((tmp_path / "set").iterdir())):
        path.rename(path.with_name(f"trace_2026112{at}.pcap.gz"))
    with pytest.warns(UnstitchedWarning, match=r"compressed one .*20261120\.pcap\.gz'"):
        assert len(recordings(tmp_path / "set")) == 3


def test_without_stitching_groups_are_recordings_of_their_own(tmp_path: Path) -> None:
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole"), seed=4, files=4)
    given = options(tmp_path / "set", max_group_bytes=1, max_partition_bytes=1000, stitch=False)
    planned = plan(given)
    assert [len(recording) for recording in planned] == [1, 1, 1, 1]
    assert rows(given) == read(*paths)


def test_files_with_nothing_in_them_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").touch()
    assert plan(options(tmp_path)) == []
    (tmp_path / "b.pcap").write_bytes(make.pcap([]))
    assert rows(options(tmp_path)) == []


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"\xd4\xc3\xb2\xa1cut")
    part = plan(options(tmp_path))[0][0]
    with pytest.raises(ValueError, match="cut off") as caught:
        list(batches(part, ["ts"], options(tmp_path)))
    assert caught.value.__notes__ == [f"in '{tmp_path}/a.pcap'"]


def test_states_are_not_needed_for_a_recording_of_one_part(tmp_path: Path) -> None:
    busy(tmp_path / "a.pcap", 20_000)
    recording = plan(options(tmp_path))[0]
    assert with_states(recording, options(tmp_path)) == (replace(recording[0], state=None),)


def shared(sizes: list[int], total: int | None = None, **others: object) -> list[int]:
    """Megabytes of each part of a recording whose files have so many."""
    files = [File(f"/c/t_{at:05}", size << 20, "capture") for at, size in enumerate(sizes)]
    known = {file.path: file.size for file in files}
    found = []
    for part in parts_of(files, options(**others), None if total is None else total << 20):
        before = {each.path: 0 for each in part.ranges}
        if len(part.ranges) == 1 and part.ranges[0].end is not None:
            found.append(part.ranges[0].end >> 20)  # of a range, where it ends
        else:
            found.append(sum(known[path] for path in before) >> 20)
    return found


@pytest.mark.parametrize(
    ("count", "size", "cores", "parts"),
    [
        (100, 10, 1, 1), (100, 10, 2, 4), (100, 10, 8, 8), (100, 10, 50, 50), (100, 10, 100, 100),
        (1000, 1, 2, 4), (1000, 1, 8, 8), (1000, 1, 64, 63), (1000, 1, 1000, 250),
        (1, 1000, 2, 4), (1, 1000, 8, 8), (10, 3000, 2, 120), (3, 1, 64, 1), (2, 3, 64, 2),
    ],
)  # fmt: skip
def test_a_recording_is_divided_among_cores(count: int, size: int, cores: int, parts: int) -> None:
    found = shared([size] * count, min_partitions=cores)
    assert len(found) == parts
    if count >= parts:
        assert sum(found) == count * size
        assert max(found[:-1], default=0) - min(found[:-1], default=0) <= size
        assert found[-1] <= max(found)


def test_without_a_number_of_tasks_the_cores_of_the_machine_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "cores", lambda: 5)
    assert len(shared([10] * 100)) == 5
    monkeypatch.undo()
    assert 1 <= planning.cores() <= (os.cpu_count() or 1)


def test_recordings_that_keep_all_cores_busy_are_not_divided() -> None:
    assert shared([10] * 50, total=5000, min_partitions=8) == [500]
    assert shared([10] * 50, total=500, min_partitions=1) == [500]
    assert len(shared([10] * 200, total=100_000, min_partitions=8)) > 1  # more than 1g


def test_sizes_that_are_asked_for_hold_whatever_the_cores() -> None:
    for cores in (1, 2, 64):
        assert shared([10] * 100, min_partitions=cores, max_group_bytes=1 << 30) == [1000]
        assert shared([10] * 100, min_partitions=cores, max_group_bytes=45 << 20) == [40] * 25
        assert shared([100], min_partitions=cores, max_partition_bytes=40 << 20) == [40, 80, 100]
        assert shared([500], min_partitions=cores, max_partition_bytes=1 << 30) == [500]
        assert shared([10] * 200, min_partitions=cores, stitch=False) == [1020, 980]


def test_small_files_together_are_no_more_than_what_was_asked_for_of_a_large_one() -> None:
    for cores in (1, 2):
        assert 45 <= max(shared([5] * 100, min_partitions=cores, max_partition_bytes=50 << 20)) < 55
    assert shared([10] * 2, min_partitions=1, max_partition_bytes=100 << 20) == [20]


@pytest.mark.parametrize("tasks", [1, 2, 5, 100])
def test_rows_are_the_same_for_any_number_of_tasks(
    tmp_path: Path, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_LEAST", 1)
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole", 200_000), seed=8, files=7)
    given = options(tmp_path / "set", min_partitions=tasks)
    assert tasks <= len(plan(given)[0]) <= tasks + 7
    assert rows(given) == session(paths)


def source(folder: Path, table: str = "messages", **others: str) -> AmqpReader:
    return AmqpReader(read_options({"path": str(folder), "table": table, **others}), table_schema(table))


def rows_of_tasks(reader: AmqpReader) -> tuple[int, list[dict[str, object]]]:
    """Return how many tasks there are, and their rows."""
    tasks = reader.partitions()
    return len(tasks), [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", ["messages", "errors", "connections"])
def test_captures_that_do_not_belong_together_share_a_task(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_LEAST", 1)
    for number in range(9):
        busy(tmp_path / f"host{number}.pcap", 20_000, seed=number)
    (tmp_path / "cut.pcap").write_bytes((tmp_path / "host0.pcap").read_bytes()[:-5])
    expected = read(*sorted(tmp_path.iterdir()), table=table)
    for row in expected:
        row["recording"] = row["file"]
    for tasks in (1, 2, 4):
        found = source(tmp_path, table, minPartitions=str(tasks))
        assert rows_of_tasks(found) == (tasks, expected)
    most = max(path.stat().st_size for path in tmp_path.iterdir())
    for asked in ({"maxGroupBytes": str(most)}, {"maxPartitionBytes": str(most)}):
        assert rows_of_tasks(source(tmp_path, table, minPartitions="1", **asked)) == (10, expected)


def test_bad_files_share_a_task_with_others(tmp_path: Path) -> None:
    for number in range(3):
        busy(tmp_path / f"host{number}.pcap", 20_000, seed=number)
        (tmp_path / f"notes{number}").write_text("hello", encoding="utf-8")
    with pytest.warns(BadFileWarning):
        count, found = rows_of_tasks(source(tmp_path, "errors", badFiles="skip"))
    assert count == 1
    assert [row["kind"] for row in found] == ["file"] * 3


def test_a_capture_without_a_row_is_warned_of_in_a_task_of_several(tmp_path: Path) -> None:
    for number in range(3):
        busy(tmp_path / f"host{number}.pcap", 20_000, seed=number)
    (tmp_path / "host1.pcap").write_bytes(make.pcap([]))
    with pytest.warns(NothingFoundWarning, match=r"no messages found in '[^,]*host1.pcap'") as caught:
        assert rows_of_tasks(source(tmp_path))[0] == len(caught) == 1


@pytest.mark.parametrize(
    ("sizes", "cores", "groups"),
    [
        ([1] * 99, 2, [49, 50]), ([1] * 8, 1, [8]), ([0, 0, 0], 8, [0]), ([], 2, []), ([10] * 6, 3, [20] * 3),
        ([90, 90, 5, 5, 5, 5], 2, [90, 90, 20]), ([400, 1, 400, 1, 1], 2, [400, 1, 400, 2]),
        ([30] * 20, 4, [150] * 4), ([600, 1, 1], 1, [600, 2]),
    ],
)  # fmt: skip
def test_small_works_are_put_together_evenly(sizes: list[int], cores: int, groups: list[int]) -> None:
    found = together(sizes, lambda size: size << 20, options(min_partitions=cores))
    assert [sum(group) for group in found] == groups


def test_small_works_are_few_tasks_on_many_cores() -> None:
    found = together([1] * 99, lambda size: size << 20, options(min_partitions=64))
    assert len(found) == 25
    assert max(map(len, found)) == 4


@pytest.mark.parametrize("name", ["max_group_bytes", "max_partition_bytes"])
@pytest.mark.parametrize("seed", range(3))
def test_works_together_are_no_more_than_what_is_asked_for(name: str, seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randrange(40) for _ in range(200)]
    for most in (1, 10, 45, 100):
        found = together(sizes, lambda size: size, options(min_partitions=2, **{name: most}))
        assert list(chain.from_iterable(found)) == sizes
        assert all(sum(group) <= most for group in found if len(group) > 1)
        if most >= 45:
            assert len(found) <= 4 * sum(sizes) / most


@pytest.mark.parametrize("size", ["1g", "20k"])
def test_rows_name_their_recording_by_which_they_are_joined(tmp_path: Path, size: str) -> None:
    for number in range(3):
        octets = busy(tmp_path / f"whole{number}", 150_000, seed=number)
        write_rotated(tmp_path / "set", octets, seed=number, files=2)
        for path in sorted((tmp_path / "set").glob("trace*")):
            path.rename(tmp_path / "set" / f"host{number}_{path.name[-10:]}")
    sizes = {"maxGroupBytes": size, "maxPartitionBytes": size}
    _, messages = rows_of_tasks(source(tmp_path / "set", rotated="auto", **sizes))
    _, connections = rows_of_tasks(source(tmp_path / "set", "connections", rotated="auto", **sizes))
    client = {(row["recording"], row["flow"]): row["client"] for row in connections}
    assert len(client) == len(connections)
    assert {name for name, _ in client} == {
        str(path) for path in (tmp_path / "set").iterdir() if path.name.endswith("00001.pcap")
    }
    assert messages
    assert all(client[row["recording"], row["flow"]] == row["client"] for row in messages)


@pytest.mark.parametrize(
    "columns", [["recording"], ["properties.message_id", "recording", "properties.type", "exchange"]]
)
def test_the_recording_stands_where_it_is_asked_for(tmp_path: Path, columns: list[str]) -> None:
    path = tmp_path / "host.pcap"
    busy(path, 20_000)
    reader = AmqpReader(read_options({"path": str(path)}), table_schema(columns=columns))
    _, found = rows_of_tasks(reader)
    assert len(found) == len(read(path))
    assert {tuple(row) for row in found} == {tuple(dict.fromkeys(name.split(".")[0] for name in columns))}
    assert {row["recording"] for row in found} == {str(path)}
