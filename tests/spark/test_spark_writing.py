"""Messages written by Spark are read back as the same messages, and nothing is left of what failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import synthetic_capture
from pyarrow import parquet

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from amqpcodec import EncodeError, arrow
from amqpcodec.spark import parquet_to_stream, register, replay
from amqpcodec.spark.committer import Committer
from amqpcodec.spark.options import write_options
from amqpcodec.spark.outputs import write_part

# The packets are others, and consumers did not begin there.
MOVED = ["file", "flow", "offset", "packet", "queue", "ts_last"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    synthetic_capture.record(path, 150_000, 4, seed=5, bursts=20)
    return path


@pytest.fixture(scope="module")
def messages(recorded: Path) -> pa.Table:
    reader = arrow.read_capture(recorded)
    return pa.Table.from_batches(list(reader), reader.schema)


@pytest.fixture(scope="module")
def df(spark: Any, recorded: Path) -> Any:
    register(spark)
    return spark.read.format("amqp").load(str(recorded)).cache()


def names(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[0] + path.suffix for path in folder.iterdir())


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.drop_columns([name for name in MOVED if name in table.schema.names]).to_pylist()
    return sorted(rows, key=repr)


def test_a_capture_is_written_with_the_same_messages(df: Any, messages: pa.Table, tmp_path: Path) -> None:
    df.repartition(2, "flow").sortWithinPartitions("ts_ns").write.format("amqp").mode("append").options(
        output="capture"
    ).save(str(tmp_path / "out"))
    assert names(tmp_path / "out") == ["_SUCCESS", "part.pcap", "part.pcap"]
    reader = arrow.read_capture(sorted((tmp_path / "out").glob("*.pcap")))
    assert in_order(pa.Table.from_batches(list(reader), reader.schema)) == in_order(messages)


def test_streams_are_written_with_their_index(df: Any, messages: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "out"
    df.coalesce(1).write.format("amqp").mode("append").save(str(target))
    assert names(target) == ["_SUCCESS", "part.amqp", "part.arrow"]
    (stream,) = target.glob("*.amqp")
    assert stream.read_bytes() == arrow.encode_messages(messages)
    index = pa.ipc.open_file(next(iter(target.glob("*.arrow")))).read_all()
    assert index["ts_ns"].to_pylist() == messages["ts_ns"].to_pylist()
    df.limit(3).coalesce(1).write.format("amqp").mode("append").save(str(target))
    assert len(list(target.glob("*.amqp"))) == 2
    df.limit(1).coalesce(1).write.format("amqp").mode("overwrite").save(str(target))
    assert names(target) == ["_SUCCESS", "part.amqp", "part.arrow"]
    again = df.sparkSession.read.format("amqp").option("dialect", "rabbitmq-0-9-1").load(str(target))
    assert again.count() == 1


def test_rows_have_the_octets_of_messages_behind_their_keys(
    df: Any, messages: pa.Table, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    writer = df.coalesce(1).write.format("amqp").mode("append").options(output="rows", keys="flow, ts_ns")
    writer.save(str(target))
    (file,) = target.glob("*.parquet")
    found = parquet.read_table(file)
    assert found.schema.names == ["flow", "ts_ns", "octets"]
    assert found["flow"].to_pylist() == messages["flow"].to_pylist()
    assert found["octets"].to_pylist() == arrow.encode_values(messages).to_pylist()


@pytest.mark.parametrize("output", ["stream", "capture", "rows"])
def test_a_message_that_cannot_be_written_leaves_nothing(spark: Any, output: str, tmp_path: Path) -> None:
    register(spark)
    rows = [("a" * (256 if number == 7 else 1), number % 3 > 0) for number in range(10)]
    df = spark.createDataFrame(rows, "routing_key string, complete boolean").repartition(2)
    writer = df.write.format("amqp").mode("append").option("output", output)
    with pytest.raises(PySparkException, match=r"not complete|not 256"):
        writer.save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(PySparkException, match="not 256"):
        writer.option("skipIncomplete", "true").save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_rows_that_are_no_whole_message_are_left_out_if_asked(spark: Any, tmp_path: Path) -> None:
    register(spark)
    rows = [("a", True), ("b", False)]
    df = spark.createDataFrame(rows, "routing_key string, complete boolean").coalesce(1)
    for output, ending in (("stream", "amqp"), ("rows", "parquet")):
        target = tmp_path / output
        df.write.format("amqp").mode("append").options(output=output, skipIncomplete=True).save(str(target))
        (file,) = target.glob(f"*.{ending}")
        octets = file.read_bytes()
        if output == "rows":
            octets = parquet.read_table(file)["octets"].to_pylist()[0]
        assert arrow.decode_messages(octets)["routing_key"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "json"}, "none of stream, capture, rows"),
        ({"output": "rows", "keys": "nothing"}, "cannot be a key"),
        ({"keys": "flow"}, "is for the output rows"),
        ({"table": "messages"}, "no option 'table'"),
    ],
)
def test_options_that_cannot_be_are_refused(
    df: Any, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        df.write.format("amqp").mode("append").options(**options).save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_parquet_becomes_streams_inside_the_workers(
    spark: Any, messages: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    parquet.write_table(messages, tmp_path / "in" / "a.parquet", row_group_size=100)
    parquet.write_table(messages.slice(0, 10), tmp_path / "in" / "b.parquet")
    target = tmp_path / "out"
    written = parquet_to_stream(spark, str(tmp_path / "in"), str(target)).collect()
    streams = sorted(target.glob("*.amqp"))
    expected = [arrow.encode_messages(messages), arrow.encode_messages(messages.slice(0, 10))]
    assert [path.read_bytes() for path in streams] == expected
    assert {row.path for row in written} == {str(path) for path in target.iterdir() if path.name[0] == "p"}
    assert sum(row.messages for row in written) == messages.num_rows + 10
    with pytest.raises(PySparkException, match="is there already"):
        parquet_to_stream(spark, str(tmp_path / "in"), str(target))
    assert sorted(target.glob("*.amqp")) == streams


def test_large_parquet_files_are_read_in_parts(messages: pa.Table, tmp_path: Path, monkeypatch: Any) -> None:
    parquet.write_table(messages, tmp_path / "a.parquet", row_group_size=50)
    groups = parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups
    monkeypatch.setattr(replay, "_GROUP_OCTETS", 1)
    options = write_options({"path": str(tmp_path / "out")})
    job = replay._Job(str(tmp_path / "out"), "append", "job", (str(tmp_path / "a.parquet"),), options)
    parts = list(replay._plan(job, None))
    assert [part.groups for part in parts] == [range(group, group + 1) for group in range(groups)]
    written = [file for number, part in enumerate(parts) for file in replay._write(job, (number, part))]
    job.commit([(file.staged, file.path) for file in written])
    octets = b"".join(path.read_bytes() for path in sorted((tmp_path / "out").glob("*.amqp")))
    assert octets == arrow.encode_messages(messages)


@pytest.mark.parametrize("output", ["stream", "capture", "rows"])
def test_a_file_is_reported_with_its_messages(messages: pa.Table, tmp_path: Path, output: str) -> None:
    options = write_options({"path": str(tmp_path / "out"), "output": output})
    committer = Committer(str(tmp_path / "out"), "append", "job")
    committer.prepare()
    file, *_ = write_part(committer, "part", messages.to_batches(max_chunksize=100), options)
    assert (file.messages, file.size) == (messages.num_rows, Path(file.staged).stat().st_size)


@pytest.mark.parametrize("nulls", ["some", "most", "all"])
def test_columns_of_nulls_are_not_read_and_change_nothing(tmp_path: Path, nulls: str) -> None:
    properties = pa.struct([("content_type", pa.string()), ("app_id", pa.string())])
    table = pa.table(
        {
            "routing_key": pa.array([None, None] if nulls == "all" else ["a", None], pa.string()),
            "mandatory": pa.array([None, True] if nulls == "some" else [None, None], pa.bool_()),
            "properties": pa.array([{"app_id": None if nulls == "all" else "b"}, None], properties),
            "headers": pa.array([[("k", None)], None], pa.map_(pa.string(), pa.string())),
        }
    ).drop_columns(["headers"] if nulls == "all" else [])
    parquet.write_table(table, tmp_path / "a.parquet")
    options = write_options({"path": str(tmp_path / "out")})
    job = replay._Job(str(tmp_path / "out"), "append", "job", (str(tmp_path / "a.parquet"),), options)
    found = parquet.ParquetFile(tmp_path / "a.parquet").metadata
    columns = replay._with_values(found, range(1), replay._wanted(options))
    assert "properties.content_type" not in columns or nulls == "all"
    assert ("mandatory" in columns) == (nulls != "most")
    (stream, _) = [file for part in enumerate(replay._plan(job, None)) for file in replay._write(job, part)]
    assert stream.messages == 2
    assert Path(stream.staged).read_bytes() == arrow.encode_messages(table)


def test_files_without_a_column_that_names_their_folder_are_refused(tmp_path: Path) -> None:
    options = write_options({"path": str(tmp_path / "out")})
    for folder in ("day=1/exchange=a", "day=1/size=2"):
        source = tmp_path / folder / "a.parquet"
        source.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"routing_key": ["a"]}), source)
        job = replay._Job(str(tmp_path / "out"), "append", "job", (str(source.parent),), options)
        if "exchange" in folder:
            with pytest.raises(ValueError, match=r"is without exchange, .* spark.read.parquet"):
                list(replay._plan(job, None))
            assert not (tmp_path / "out").exists()
        else:
            assert [part.path for part in replay._plan(job, None)] == [str(source)]


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"\xd4\xc3\xb2\xa1" * 6)
    options = write_options({"path": str(tmp_path / "out")})
    job = replay._Job(str(tmp_path / "out"), "append", "job", (str(tmp_path / "a.pcap"),), options)
    with pytest.raises(ValueError, match=r"/a.pcap' is no Parquet file: "):
        list(replay._plan(job, None))


def test_a_parquet_column_that_looks_misspelt_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"exchang": ["orders"]}), tmp_path / "a.parquet")
    options = write_options({"path": str(tmp_path / "out")})
    job = replay._Job(str(tmp_path / "out"), "append", "job", (str(tmp_path / "a.parquet"),), options)
    with pytest.raises(EncodeError, match="exchang: no such column; the nearest is 'exchange'") as caught:
        list(replay._plan(job, None))
    assert caught.value.__notes__ == [f"in {str(tmp_path / 'a.parquet')!r}"]


def test_a_failed_conversion_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, size in enumerate((1, 256)):
        parquet.write_table(pa.table({"routing_key": ["a" * size]}), tmp_path / "in" / f"{number}.parquet")
    with pytest.raises(PySparkException, match=r"not 256(.|\n)*in '.*/in/1.parquet'"):
        parquet_to_stream(spark, str(tmp_path / "in"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
