"""A folder that a rotating capture fills is read once, connections across files and restarts included."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from support.followed import COLUMNS, at_most, batch, expected, in_order, put, reader, recorded, rows_between

from amqpcodec import arrow
from amqpcodec.spark import register, table_schema
from amqpcodec.spark.notices import BadFileWarning, NothingFoundWarning
from amqpcodec.spark.options import read_options
from amqpcodec.spark.streaming import AmqpStreamReader
from amqpcodec.spark.versions import lack


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A capture as a rotation leaves it: cut between packets, amid connections and messages."""
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    return recorded(path, 200_000, seed=3, bursts=30, piece=30_000)


def stream(spark: Any, folder: Path, work: Path, **options: str) -> Any:
    """A query from a folder to a table, to be started."""
    register(spark)
    read = spark.readStream.format("amqp").options(columns=",".join(COLUMNS), minFileAge="1h", **options)
    writer = read.load(str(folder)).writeStream.format("parquet").option("path", str(work / "out"))
    return writer.option("checkpointLocation", str(work / "checkpoint"))


def written(spark: Any, work: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    found = [row.asDict() for row in spark.read.parquet(str(work / "out")).collect()]
    for row in found:
        row["body"] = bytes(row["body"])
    return found


def run(spark: Any, folder: Path, work: Path, **options: str) -> list[dict[str, Any]]:
    """All rows so far, after a run over what is there now."""
    query = stream(spark, folder, work, **options).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    return written(spark, work)


def test_a_restart_loses_and_doubles_nothing(spark: Any, files: list[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    wanted = expected(put(folder, files, 0, len(files)))
    for path in put(folder, files, 3, len(files)):
        path.unlink()
    first = run(spark, folder, tmp_path)
    assert {Path(row["file"]).name for row in first} == {"trace_00000.pcap", "trace_00001.pcap"}
    (folder / "trace_00000.pcap").unlink()  # what was read need not be kept
    put(folder, files, 3, len(files), age=7200)
    limit = {} if lack("maxFilesPerTrigger") else {"maxFilesPerTrigger": "2"}
    found = run(spark, folder, tmp_path, **limit)
    assert len(files) > 5
    assert in_order(found) == wanted
    assert run(spark, folder, tmp_path) == found


def test_a_query_takes_what_comes_and_reads_again_what_was_not_committed(
    spark: Any, files: list[bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    paths = put(folder, files, 0, len(files), age=7200)
    wanted = expected(paths)
    for path in paths:
        path.unlink()
    for batches in ((0, 2), (2, 3)), ((3, 4), (4, len(files))):
        query = stream(spark, folder, tmp_path).start()
        try:
            for first, last in batches:
                put(folder, files, first, last, age=7200)
                query.processAllAvailable()
        finally:
            query.stop()
        if last == 3:  # as if it had been stopped before the second batch was committed
            for log in ("checkpoint/commits", "out/_spark_metadata"):
                for name in ("1", ".1.crc"):
                    (tmp_path / log / name).unlink()
            for path in paths[:2]:  # what was committed need not be kept
                path.unlink()
    assert in_order(written(spark, tmp_path)) == wanted


def test_recorders_in_a_folder_lose_nothing_where_the_stream_is_stopped_in_its_batches(
    spark: Any, tmp_path: Path
) -> None:
    folder, stops, rng = tmp_path / "in", 21, random.Random(1)
    folder.mkdir()
    files = [recorded(tmp_path / "a", 150_000, seed=seed, bursts=20, piece=11_000) for seed in (8, 9)]
    coming = [(at, who) for who in (0, 1) for at in range(len(files[who]))]
    coming.sort()
    assert len(coming) > stops + 2

    def one_more() -> None:
        at, who = coming.pop(0)
        (folder / f"rabbit{who}_{at}.pcap").write_bytes(files[who][at])

    one_more()
    one_more()
    for _ in range(stops):
        one_more()  # so another one is complete
        planned, deadline = written_offsets(tmp_path), time.monotonic() + 120
        query = stream(spark, folder, tmp_path).start()
        while written_offsets(tmp_path) == planned:
            assert time.monotonic() < deadline
            if (error := query.exception()) is not None:  # on a busy machine, Spark gives up on its worker
                assert "failed to connect back" in str(error)
                query = stream(spark, folder, tmp_path).start()
            time.sleep(0.01)
        time.sleep(rng.random() / 3)
        query.stop()
    while coming:
        one_more()
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    found = run(spark, folder, tmp_path)
    wanted = [row for who in (0, 1) for row in batch(f"{folder}/rabbit{who}_*.pcap")]
    assert in_order(found) == in_order(wanted)


def written_offsets(work: Path) -> list[str]:
    """The batches that were planned."""
    return sorted(path.name for path in (work / "checkpoint" / "offsets").glob("[0-9]*"))


@pytest.mark.needs("maxFilesPerTrigger")
def test_offsets_go_on_where_another_reader_stood(files: list[bytes], tmp_path: Path) -> None:
    paths = put(tmp_path, files, 0, len(files), age=7200)
    offsets, rows = [{}], []
    while len(offsets) < 2 or offsets[-1] != offsets[-2]:
        source = reader(tmp_path)
        offsets.append(source.latestOffset(offsets[-1], at_most(2)))
        planning = source if len(offsets) % 2 else reader(tmp_path)  # as after a restart
        rows += rows_between(planning, offsets[-2], offsets[-1])
    assert len(offsets) == 2 + (len(files) + 1) // 2
    assert in_order(rows) == expected(paths)


def test_large_files_are_read_in_parts(files: list[bytes], tmp_path: Path) -> None:
    paths = put(tmp_path, files, 0, 4, age=7200)
    source = reader(tmp_path, maxPartitionBytes="10k", maxGroupBytes="10k")
    end = source.latestOffset({})
    assert len(source.partitions({}, end)) > 8
    assert in_order(rows_between(source, {}, end)) == expected(paths)


def test_the_last_file_waits_until_it_is_complete(files: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, files, 0, 1)
    source = reader(tmp_path)
    assert source.latestOffset({}) == {}
    put(tmp_path, files, 1, 2, age=59)
    (first,) = source.latestOffset({}).values()
    assert first["last"].endswith("trace_00000.pcap")
    put(tmp_path, files, 1, 2, age=61)
    (second,) = source.latestOffset({}).values()
    assert second["last"].endswith("trace_00001.pcap")


@pytest.mark.needs("maxFilesPerTrigger")
def test_a_run_over_what_is_there_takes_nothing_that_comes_later(files: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, files, 0, 2, age=7200)
    source = reader(tmp_path)
    source.prepareForTriggerAvailableNow()
    put(tmp_path, files, 2, 4, age=7200)
    (tmp_path / "other_1.pcap").write_bytes(files[0])
    os.utime(tmp_path / "other_1.pcap", (0, 0))
    (position,) = source.latestOffset({}).values()
    assert position["last"].endswith("trace_00001.pcap")


def test_captures_side_by_side_are_followed_each_on_its_own(files: list[bytes], tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    for folder in (here, there):
        folder.mkdir()
        put(folder, files, 0, 3, age=7200)
    source = reader(tmp_path, recursiveFileLookup="true")
    end = source.latestOffset({})
    assert len(end) == 2
    every = expected(sorted(here.iterdir())) + expected(sorted(there.iterdir()))
    assert in_order(rows_between(source, {}, end)) == sorted(every, key=repr)


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_file_that_is_gone_before_it_is_read_is_reported(
    files: list[bytes], tmp_path: Path, gone: int
) -> None:
    paths = put(tmp_path, files, 0, 1, age=7200)
    first = reader(tmp_path).latestOffset({})
    paths += put(tmp_path, files, 1, 3, age=7200)
    end = reader(tmp_path).latestOffset(first)
    paths[gone].unlink()
    if gone:
        with pytest.raises(OSError, match=r"not there any more; badFiles=skip goes on without it"):
            reader(tmp_path).partitions(first, end)
    else:  # what was read before need not be kept
        assert in_order(rows_between(reader(tmp_path), first, end))


def test_a_file_that_comes_between_those_of_a_batch_is_read_after_it(
    files: list[bytes], tmp_path: Path
) -> None:
    first, second, third = put(tmp_path, files, 0, 3, age=7200)
    second.unlink()
    end = reader(tmp_path).latestOffset({})
    put(tmp_path, files, 1, 2, age=7200)
    assert in_order(rows_between(reader(tmp_path), {}, end)) == expected([first, third])
    source = reader(tmp_path)
    with pytest.warns(
        BadFileWarning, match=rf"^'{second}' came after '{third}' was read: it is read on its own"
    ):
        behind = source.latestOffset(end)
    assert in_order(rows_between(source, end, behind)) == in_order(batch(second))
    assert source.latestOffset(behind) == behind


def test_an_empty_file_is_not_complete_while_it_is_the_newest(files: list[bytes], tmp_path: Path) -> None:
    """A recorder writes its first octets when a buffer is full."""
    (path,) = put(tmp_path, [b""], 0, 1, age=7200)
    source = reader(tmp_path)
    assert source.latestOffset({}) == {}
    put(tmp_path, files, 0, 1, age=7200)
    end = source.latestOffset({})
    assert in_order(rows_between(source, {}, end)) == expected([path])


def test_a_path_that_means_nothing_is_warned_of_once(files: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    paths = json.dumps([f"{tmp_path}/there/*.pcap", f"{tmp_path}/here"])
    source = AmqpStreamReader(read_options({"paths": paths}), table_schema("messages"))
    with pytest.warns(NothingFoundWarning) as caught:
        assert source.latestOffset({}) == {}
    assert [str(warning.message) for warning in caught] == [
        f"nothing to read: no file, or only empty ones, in '{tmp_path}/there/*.pcap'",
        f"nothing to read: no file, or only empty ones, in '{tmp_path}/here'",
    ]
    put(tmp_path / "here", files, 0, 2)
    (end,) = source.latestOffset({}).values()
    assert end["files"] == "1"


@pytest.mark.needs("maxFilesPerTrigger")
def test_files_are_taken_in_turns_where_there_is_not_room_for_all(files: list[bytes], tmp_path: Path) -> None:
    busy, idle = tmp_path / "a", tmp_path / "b"
    for folder, ages in (busy, (9000, 8800, 8000, 7600)), (idle, (8600, 8500, 7800)):
        folder.mkdir()
        for number, age in enumerate(ages):
            put(folder, files, number, number + 1, age=age)
    taken: list[list[tuple[str, str]]] = []
    end: Any = {}
    for _ in range(4):
        start, end = end, reader(tmp_path, recursiveFileLookup="true").latestOffset(end, at_most(2))
        places = [Path(end[name]["last"]) for name in end if end[name] != start.get(name)]
        taken.append([(path.parent.name, path.stem[-1]) for path in places])
    assert taken == [[("a", "1")], [("b", "1")], [("a", "2"), ("b", "2")], [("a", "3")]]
    assert [position["files"] for position in end.values()] == ["4", "3"]


@pytest.mark.needs("maxFilesPerTrigger")
def test_files_whose_numbers_are_the_same_are_both_read(files: list[bytes], tmp_path: Path) -> None:
    for path, name in zip(put(tmp_path, files, 0, 2, age=7200), ("t_01.pcap", "t_1.pcap"), strict=True):
        path.rename(tmp_path / name)
    source = reader(tmp_path)
    first = source.latestOffset({}, at_most(1))
    second = source.latestOffset(first, at_most(1))
    assert [position["last"] for offset in (first, second) for position in offset.values()] == [
        str(tmp_path / "t_01.pcap"), str(tmp_path / "t_1.pcap"),
    ]  # fmt: skip


def test_streams_of_frames_are_files_of_their_own(tmp_path: Path) -> None:
    octets = arrow.encode_messages(pa.table({"routing_key": ["a", "b"]}))
    for number in range(2):
        path = tmp_path / f"part-{number}.amqp"
        path.write_bytes(octets)
        os.utime(path, (0, 0))
    source = reader(tmp_path, dialect="rabbitmq-0-9-1")
    end = source.latestOffset({})
    assert [row["routing_key"] for row in rows_between(source, {}, end)] == ["a", "b"] * 2
    assert source.latestOffset(end) == end


def test_a_reader_that_is_not_passed_its_position_continues(files: list[bytes], tmp_path: Path) -> None:
    paths = put(tmp_path, files, 0, 2, age=7200)
    source, after = reader(tmp_path), reader(tmp_path)
    first = source.latestOffset()
    rows = rows_between(source, {}, first)
    assert not after.partitions(first, first)  # as Spark begins after a restart
    paths[0].unlink()
    put(tmp_path, files, 2, 4, age=7200)
    second = source.latestOffset()
    assert second == after.latestOffset() == source.latestOffset(first) != first
    assert rows_between(after, first, second) == rows_between(source, first, second)
    rows += rows_between(source, first, second)
    put(tmp_path, files, 0, 1)
    assert in_order(rows) == expected(sorted(tmp_path.iterdir()))


def test_rows_of_a_stream_name_its_series_as_their_recording(tmp_path: Path, files: list[bytes]) -> None:
    put(tmp_path, files, 0, 2, age=7200)
    options = read_options({"path": str(tmp_path), "minFileAge": "0s"})
    source = AmqpStreamReader(options, table_schema(columns=["recording", "flow"]))
    first = source.latestOffset({})
    rows = rows_between(source, {}, first)
    put(tmp_path, files, 2, 2, age=7200)
    rows += rows_between(source, first, source.latestOffset(first))
    assert {row["recording"] for row in rows} == set(first)
    assert len(first) == 1
