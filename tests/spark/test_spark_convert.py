"""`pcap_to_parquet` writes the rows of `amqpcodec.arrow`, all of them or nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import PySparkException
from support.rotations import busy, write_rotated
from support.spark_jobs import in_spark
from support.timing import undisturbed, within

from amqpcodec import arrow, rabbitmq
from amqpcodec._options import resolve
from amqpcodec.options import SparkReadOptions
from amqpcodec.spark import pcap_to_parquet, tasks
from amqpcodec.spark import states as spark_states
from amqpcodec.spark.chains import UnstitchedWarning
from amqpcodec.spark.options import read_options
from amqpcodec.spark.planning import Part, Place
from amqpcodec.spark.reading import states as reading_states
from amqpcodec.spark.schemas import arrow_schema
from amqpcodec.spark.steps import _RESULT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording in three files."""
    folder = tmp_path_factory.mktemp("captures")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=3)
    return folder / "set"


def wanted(folder: Path, table: str = "messages", **options: Any) -> pa.Table:
    return in_spark(arrow.CaptureSession(table, **options), sorted(folder.iterdir()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_rows_are_those_of_the_library_and_are_counted(spark: Any, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    found = pcap_to_parquet(spark, str(folder), str(out), max_group_bytes=1)
    expected = wanted(folder)
    assert parquet.read_table(out).equals(expected)
    assert spark.read.parquet(str(out)).count() == expected.num_rows
    statistics = found.toArrow().to_pylist()
    assert names(out) == ["_SUCCESS", *(Path(row["path"]).name for row in statistics)]
    assert len(statistics) == 3
    for row in statistics:
        written = parquet.read_table(row["path"])
        assert row["rows"] == written.num_rows
        assert row["octets"] == Path(row["path"]).stat().st_size
        times = written["ts"].to_pylist()
        assert (row["ts_min"], row["ts_max"]) == (min(times), max(times))


def test_captures_that_cannot_be_stitched_are_named_where_the_conversion_was_asked_for(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    first, second, _ = sorted(folder.iterdir())
    for name, path in (("a_00001", first), ("a_10002", second), ("a_20002", second)):
        (tmp_path / f"{name}.pcap").write_bytes(path.read_bytes())
    with pytest.warns(
        UnstitchedWarning, match=r"a_00001\.pcap', '.*a_10002\.pcap', '.*a_20002\.pcap'; rotated=true"
    ):
        pcap_to_parquet(spark, str(tmp_path / "*.pcap"), str(tmp_path / "out"))
    assert len(names(tmp_path / "out")) == 2  # small recordings share a file, beside _SUCCESS


def here() -> Any:
    """Return a session whose tasks run in this process."""

    def numbers(start: int, end: int, step: int, parts: int) -> Any:
        batch = pa.RecordBatch.from_pydict({"id": range(start, end, step)})

        def run(task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: Any) -> Any:
            table = pa.Table.from_batches(task(iter([batch])), schema=_RESULT)
            return SimpleNamespace(toArrow=lambda: table)

        return SimpleNamespace(mapInArrow=run)

    context = SimpleNamespace(defaultParallelism=2)
    return SimpleNamespace(range=numbers, createDataFrame=lambda table: table, sparkContext=context)


@pytest.mark.parametrize("table", ["messages", "errors"])
def test_all_rows_are_written_and_counted(folder: Path, tmp_path: Path, table: str) -> None:
    found: Any = pcap_to_parquet(here(), str(folder), str(tmp_path / "out"), table=table)
    assert sum(found["rows"].to_pylist()) == wanted(folder, table).num_rows
    assert all(row["ts_min"] < row["ts_max"] for row in found.to_pylist() if row["rows"] > 1)
    assert parquet.read_table(tmp_path / "out").equals(wanted(folder, table))


@pytest.mark.parametrize("order", ["forwards", "backwards", "any"])
def test_tasks_need_not_wait_for_each_other(
    folder: Path, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = resolve(SparkReadOptions, {"paths": [str(folder)], "max_partition_bytes": 30_000})
    job = tasks.Job(str(tmp_path), "append", "job", cast(SparkReadOptions, reading), "zstd")
    scanned: list[int] = []

    def states(parts: Sequence[Part], options: SparkReadOptions) -> Iterator[bytes]:
        scanned.append(len(parts))
        return reading_states(parts, options)

    monkeypatch.setattr(spark_states, "states", states)
    ((recording,), _) = tasks.begin(job, None)[0]
    arguments = [(number, [Place(0, number, part)]) for number, part in enumerate(recording)]
    if order == "backwards":
        arguments.reverse()
    elif order == "any":
        random.Random(1).shuffle(arguments)
    written = [file for argument in arguments for file in tasks.convert(job, argument)]
    found = [parquet.read_table(file.staged) for file in sorted(written, key=lambda file: file.path)]
    assert pa.concat_tables(found).equals(wanted(folder))
    assert len(recording) > 6
    if order == "forwards":
        assert not scanned
    elif order == "backwards":
        assert scanned == [len(recording) - 1]
    else:
        assert 0 < len(scanned) < len(recording) - 1


def test_a_part_of_another_plan_is_refused(folder: Path, tmp_path: Path) -> None:
    reading = resolve(SparkReadOptions, {"paths": [str(folder)], "max_partition_bytes": 30_000})
    job = tasks.Job(str(tmp_path), "append", "job", cast(SparkReadOptions, reading), "zstd")
    ((recording,), _) = tasks.begin(job, None)[0]
    with pytest.raises(RuntimeError, match="planned twice"):
        tasks.convert(job, (0, [Place(0, 2, recording[1])]))


def test_the_time_of_small_batches_grows_with_their_number(tmp_path: Path) -> None:
    reading = resolve(SparkReadOptions, {"paths": ["in"], "columns": ["exchange"]})
    job = tasks.Job(str(tmp_path), "append", "job", cast(SparkReadOptions, reading), "zstd")
    batch = pa.RecordBatch.from_pydict({"exchange": ["orders"]})

    def seconds(count: int) -> float:
        files = tasks._Files(job, 0)
        began = time.process_time()
        for _ in range(count):
            files.add(batch)
        return time.process_time() - began

    with undisturbed():
        few = max(seconds(300) for _ in range(3))
        assert within(8 * few, lambda: seconds(1200), 3)


@pytest.mark.slow("needs a session of Spark")
def test_columns_compression_and_mode_are_chosen(spark: Any, folder: Path, tmp_path: Path) -> None:
    columns = ["_corrupt_record", "channel", "args.routing_key"]
    found = pcap_to_parquet(
        spark, [str(folder)], str(tmp_path / "out"), table="methods", columns=columns, compression="snappy",
        mode="drop", column_name_of_corrupt_record="bad",
    )  # fmt: skip
    written = parquet.read_table(tmp_path / "out")
    assert written.equals(
        wanted(folder, "methods", columns=columns).rename_columns(["bad", "channel", "args"])
    )
    assert [row.ts_min for row in found.collect()] == [None]
    file = next((tmp_path / "out").glob("*.parquet"))
    assert parquet.ParquetFile(file).metadata.row_group(0).column(1).compression == "SNAPPY"


def test_a_folder_that_is_there_is_kept_unless_save_says_otherwise(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pcap_to_parquet(spark, str(folder), str(out), table="connections")
    before = names(out)
    with pytest.raises(PySparkException, match=r"out' is there already; save says what to do"):
        pcap_to_parquet(spark, str(folder), str(out), table="connections")
    assert names(out) == before
    pcap_to_parquet(spark, str(folder), str(out), table="connections", save="append")
    assert len(names(out)) == 3
    rows = wanted(folder, "connections").num_rows
    assert parquet.read_table(out).num_rows == 2 * rows
    pcap_to_parquet(spark, str(folder), str(out), table="connections", save="overwrite")
    assert parquet.read_table(out).num_rows == rows
    assert not set(names(out)[1:]) & set(before)


def test_what_fails_leaves_nothing(spark: Any, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for path in folder.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    ack = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(7))
    (source / "stream").write_bytes(ack + b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x99\x99\xce" + ack)
    with pytest.raises(PySparkException, match=r"in '.*/stream'"):
        pcap_to_parquet(spark, str(source), str(tmp_path / "out"), table="methods", mode="fail")
    assert names(tmp_path) == ["in"]


def test_what_fails_leaves_what_was_there(spark: Any, folder: Path, tmp_path: Path) -> None:
    pcap_to_parquet(spark, str(folder), str(tmp_path / "out"), table="errors")
    before = names(tmp_path / "out")
    (tmp_path / "bad.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    with pytest.raises(PySparkException, match="cut off"):
        pcap_to_parquet(spark, str(tmp_path / "bad.pcap"), str(tmp_path / "out"), save="overwrite")
    assert names(tmp_path / "out") == before


def test_what_is_read_cannot_be_overwritten(spark: Any, folder: Path) -> None:
    before = names(folder)
    with pytest.raises(PySparkException, match=r"trace_00001.pcap' is read, so .* cannot be overwritten"):
        pcap_to_parquet(spark, str(folder), str(folder), save="overwrite")
    assert names(folder) == before


def test_captures_without_rows_make_a_table_without_rows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "stream.amqp").write_bytes(rabbitmq.protocol_header())
    found = pcap_to_parquet(spark, str(tmp_path / "stream.amqp"), str(tmp_path / "out"))
    assert [(row.rows, row.ts_min) for row in found.collect()] == [(0, None)]
    stored = parquet.read_schema(next((tmp_path / "out").glob("*.parquet")))
    assert stored.equals(arrow_schema("messages", "auto"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"save": "replace"}, "save: 'replace' is none of errorifexists, append, overwrite"),
        ({"compression": "lzma"}, "compression: 'lzma' is none of zstd"),
        ({"table": "frame"}, "no table 'frame'"),
        ({"columns": ["ts", "colour"]}, "no column 'colour'; there are file, "),
        ({"columns": ["properties.colour"]}, "no column 'properties.colour'"),
        ({"columns": ["ts", "ts"]}, "column 'ts' is asked for twice"),
        ({"table": "packets", "columns": ["payload"]}, "include_credentials shows it"),
        ({"frame_max": 7}, "frame_max: must be 8 to"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pcap_to_parquet(None, "in", "out", **arguments)  # type: ignore[arg-type]


def test_a_wrong_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match="the nearest option is 'max_group_bytes'"):
        pcap_to_parquet(None, "in", "out", maxGroupBytes=1)  # type: ignore[arg-type]


def test_a_target_that_is_there_is_found_before_the_files_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    job = tasks.Job(
        str(tmp_path / "out"), "errorifexists", "name", read_options({"path": "/nowhere"}), "zstd"
    )
    with pytest.raises(FileExistsError, match=r"out' is there already; save says what to do then"):
        tasks.begin(job, None)
