"""Tasks of a query find the states at the beginning of their parts, and leave them to each other."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle
from support.rotations import busy, write_rotated
from support.spark_jobs import SETTINGS, in_spark, run

from amqpcodec import arrow
from amqpcodec.options import SparkReadOptions
from amqpcodec.spark import progress, states, table_schema
from amqpcodec.spark.options import read_options
from amqpcodec.spark.planning import Part
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.reading import states as reading_states

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording in three files."""
    folder = tmp_path_factory.mktemp("captures")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=3)
    return folder / "set"


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts were scanned each time."""
    found: list[int] = []

    def scan(parts: Sequence[Part], options: SparkReadOptions) -> Iterator[bytes]:
        found.append(len(parts))
        return reading_states(parts, options)

    monkeypatch.setattr(states, "states", scan)
    return found


def reader(folder: Path) -> AmqpReader:
    options = read_options({"path": str(folder), "maxPartitionBytes": "30000"})
    return AmqpReader(options, table_schema("messages"))


def arrived(sent: AmqpReader) -> AmqpReader:
    """The reader that a worker gets. Spark sends it before it asks for tasks."""
    octets: bytes = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
    found = pickle.loads(octets)
    assert type(found) is AmqpReader
    return found


def wanted(folder: Path) -> list[Row]:
    rows: list[Row] = in_spark(arrow.CaptureSession(), sorted(folder.iterdir())).to_pylist()
    return rows


@pytest.mark.parametrize("order", ["forwards", "backwards", "any"])
@pytest.mark.parametrize("shared", [True, False])
def test_tasks_in_any_order_have_the_rows_of_one_recording(
    folder: Path,
    tmp_path: Path,
    order: str,
    shared: bool,
    scanned: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    if shared:
        monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/executor,{tmp_path}/other")
    driver = reader(folder)
    worker = arrived(driver)
    tasks = list(enumerate(driver.partitions()))
    assert not scanned  # planning reads nothing
    if order == "backwards":
        tasks.reverse()
    elif order == "any":
        random.Random(1).shuffle(tasks)
    found = {at: [row for batch in worker.read(task) for row in batch.to_pylist()] for at, task in tasks}
    assert [row for at in sorted(found) for row in found[at]] == wanted(folder)
    last = len(tasks) - 1
    assert last > 6
    if not shared:
        assert sorted(scanned) == list(range(1, last + 1))
    elif order == "forwards":
        assert not scanned
    elif order == "backwards":
        assert scanned == [last]
    else:
        assert 0 < sum(scanned) < last


def test_each_plan_has_states_of_its_own_that_nobody_else_can_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    for _ in range(2):
        driver = reader(folder)
        list(driver.read(driver.partitions()[0]))
    folders = list(tmp_path.iterdir())
    assert len(folders) == 2
    assert [each.stat().st_mode & 0o777 for each in folders] == [0o700] * 2


def test_a_plan_removes_what_plans_that_are_over_have_left(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    readers = [reader(folder) for _ in range(3)]
    for each in readers[:2]:
        list(each.read(each.partitions()[0]))
    (tmp_path / "blockmgr-1").mkdir()
    over, running, spark = (tmp_path / name for name in (*map(name_of, readers[:2]), "blockmgr-1"))
    for each in (over, running, spark):
        os.utime(each, (0, time.time() - 1000))
    begun = readers[1].read(readers[1].partitions()[1])
    next(begun)
    list(readers[2].read(readers[2].partitions()[0]))
    assert set(tmp_path.iterdir()) == {running, spark, tmp_path / name_of(readers[2])}


def test_states_that_are_gone_are_found_again(
    folder: Path, tmp_path: Path, scanned: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    driver = reader(folder)
    tasks = driver.partitions()
    rows = []
    for at, task in enumerate(tasks):
        batches = driver.read(task)
        rows += next(batches).to_pylist()
        if at == 3:
            shutil.rmtree(tmp_path / name_of(driver))
        rows += [row for batch in batches for row in batch.to_pylist()]
    assert rows == wanted(folder)
    assert scanned == [4]


def name_of(driver: AmqpReader) -> str:
    return f"amqpcodec-{driver.name}"


def test_small_recordings_leave_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    driver = AmqpReader(read_options({"path": str(folder)}), table_schema("messages"))
    [task] = driver.partitions()
    assert [row for batch in driver.read(task) for row in batch.to_pylist()] == wanted(folder)
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_with_a_plan_is_said_after_the_reader_was_sent(tmp_path: Path) -> None:
    driver = reader(tmp_path / "nothing")
    arrived(driver)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        driver.partitions()


def test_the_plan_of_many_files_says_how_far_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader(folder).partitions()
    assert capsys.readouterr().err == ""  # quick ones say nothing
    monkeypatch.setattr(progress, "LONG", 0.0)
    reader(folder).partitions()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:5] == [
        "amqp: 1 of 3 files looked at",
        "amqp: 2 of 3 files looked at",
        "amqp: 3 of 3 files looked at",
        "amqp: 1 of 2 ends of files found",
        "amqp: 2 of 2 ends of files found",
    ]
    assert lines[5].startswith("amqp: planned in 0.")
    assert lines[5].endswith("1 recordings, 11 tasks")


SCRIPT = """
from glob import glob
from amqpcodec.spark import register
spark = session(**{"spark.local.dir": given["scratch"]}).master("local[2]").getOrCreate()
register(spark)
messages = spark.read.format("amqp").option("maxPartitionBytes", "30000").load(given["folder"])
rows = [list(row) for row in messages.select("flow", "offset", "packet", "routing_key").collect()]
left = len(glob(given["scratch"] + "/**/state-0-*", recursive=True))
spark.stop()
report(rows=rows, left=left)
"""


@pytest.mark.spark
def test_spark_has_a_folder_for_states_and_removes_it(java: None, folder: Path, tmp_path: Path) -> None:
    found = run(SCRIPT, SETTINGS, folder=str(folder), scratch=str(tmp_path))
    columns = ("flow", "offset", "packet", "routing_key")
    assert found["rows"] == [[row[name] for name in columns] for row in wanted(folder)]
    assert found["left"] == 10  # of eleven parts
    assert not list(tmp_path.rglob("state-*"))
