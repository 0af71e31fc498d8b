"""Files that cannot be read fail a query or a stream, or are skipped: with a warning and a row in errors."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyarrow import parquet
from pyspark.errors import PySparkException
from support.followed import age, batch, in_order, put, reader, recorded, rows_between

from amqpcodec.spark import parquet_to_stream, pcap_to_parquet, table_schema
from amqpcodec.spark.notices import BadFileWarning, NothingFoundWarning
from amqpcodec.spark.options import read_options
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.schemas import arrow_schema

BAD = {
    "readme": b"# Captures of last week\n",
    "head": b"\xd4\xc3\xb2\xa1cut",
    "section": b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x01\x02\x03\x04" + bytes(16),
    "packed": gzip.compress(b"\xd4\xc3\xb2\xa1" + bytes(20))[:12] + b"\xff" * 20,
    "link": None,
    "pipe": None,
}
SAID = {
    "readme": "is neither a capture nor a stream of frames",
    "head": "cut off",
    "section": "unknown byte-order mark",
    "packed": "is neither a capture nor a stream of frames",
    "link": "is no file: a link to what is not there",
    "pipe": "is no file: a link to what is not there, a pipe",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the files that a recorder writes."""
    path = tmp_path_factory.mktemp("recorded") / "a.pcap"
    return recorded(path, 60_000, seed=2, bursts=10, piece=10_000)


def spoil(path: Path, kind: str) -> None:
    """Put a bad file somewhere."""
    octets = BAD[kind]
    if kind == "link":
        path.symlink_to("/nowhere/at/all.pcap")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        assert octets is not None
        path.write_bytes(octets)
        age(path, 7200)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_fails_a_batch_unless_it_is_skipped(files: list[bytes], tmp_path: Path, kind: str) -> None:
    put(tmp_path, files, 0, len(files))
    wanted = batch(tmp_path)
    bad = tmp_path / "trace_00002x.pcap"
    spoil(bad, kind)
    for path in (tmp_path, tmp_path / "*.pcap"):
        with pytest.raises((ValueError, OSError), match=SAID[kind]) as caught:
            batch(path)
        assert str(bad) in " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        with pytest.warns(BadFileWarning, match=f"^skipped '{bad}': .*{SAID[kind]}"):
            assert batch(path, badFiles="skip") == wanted
        with pytest.warns(BadFileWarning, match=str(bad)):
            (row,) = batch(path, "errors", badFiles="skip")
        assert (row["file"], row["kind"], row["code"], row["flow"]) == (str(bad), "file", "FILE", None)
        assert SAID[kind] in row["message"]


def test_a_link_that_leads_nowhere_is_said_to_where_it_is_named(tmp_path: Path) -> None:
    spoil(tmp_path / "a.pcap", "link")
    with pytest.raises(FileNotFoundError, match=r"a.pcap' is no file: a link to what is not there"):
        batch(tmp_path / "a.pcap")
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*b.pcap'"):
        batch(tmp_path / "b.pcap")


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_fails_a_stream_unless_it_is_skipped(
    files: list[bytes], tmp_path: Path, kind: str
) -> None:
    """It lies amid a series, and connections go on behind it; also after a restart."""
    paths = put(tmp_path, files, 0, 2, age=7200)
    start = json.loads(json.dumps(reader(tmp_path).latestOffset({})))
    paths += put(tmp_path, files, 3, len(files), age=7200)
    wanted = in_order(batch(tmp_path, rotated="true"))
    bad = tmp_path / "trace_00002.pcap"
    spoil(bad, kind)
    failing = reader(tmp_path)
    for _ in range(2):
        with pytest.raises((ValueError, OSError), match=SAID[kind]):
            failing.latestOffset(start)
    source = reader(tmp_path, badFiles="skip")
    with pytest.warns(BadFileWarning, match=f"^skipped '{bad}': .*{SAID[kind]}"):
        end = json.loads(json.dumps(source.latestOffset(start)))
    rows = rows_between(reader(tmp_path), {}, start)
    restarted = reader(tmp_path, badFiles="skip")
    assert rows_between(restarted, start, end) == rows_between(source, start, end)
    assert in_order(rows + rows_between(restarted, start, end)) == wanted
    assert restarted.latestOffset(end) == end


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_need_not_grow_old(tmp_path: Path, kind: str) -> None:
    spoil(tmp_path / "a.pcap", kind)
    with pytest.raises(FileNotFoundError, match=r"a.pcap' is no file"):
        reader(tmp_path).latestOffset({})
    with pytest.warns(BadFileWarning, match=r"a.pcap' is no file"):
        assert reader(tmp_path, badFiles="skip").latestOffset({})


def test_a_bad_file_is_one_row_in_a_stream_of_errors(files: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, files, 0, 3, age=7200)
    spoil(tmp_path / "trace_00001.pcap", "readme")
    source = reader(tmp_path, "errors", badFiles="skip")
    with pytest.warns(BadFileWarning):
        end = source.latestOffset({})
    for each in (source, reader(tmp_path, "errors", badFiles="skip")):
        found = [row for row in rows_between(each, {}, end) if row["kind"] == "file"]
        assert [(Path(row["file"]).name, row["code"]) for row in found] == [("trace_00001.pcap", "FILE")]
    assert source.latestOffset(end) == end


@pytest.mark.parametrize("columns", ["message", "code,file"])
def test_the_row_of_a_bad_file_has_the_columns_asked_for(tmp_path: Path, columns: str) -> None:
    spoil(tmp_path / "a.pcap", "readme")
    names = columns.split(",")
    source = AmqpReader(
        read_options({"path": str(tmp_path), "table": "errors", "badFiles": "skip"}),
        table_schema("errors", columns=names),
    )
    with pytest.warns(BadFileWarning):
        parts = source.partitions()
    (found,) = [batch for part in parts for batch in source.read(part)]
    assert (found.num_rows, found.schema.names) == (1, names)


@pytest.mark.parametrize("paths", [[], ["a.pcap"]])
def test_a_batch_of_nothing_warns(tmp_path: Path, paths: list[str]) -> None:
    for name in paths:
        (tmp_path / name).touch()
    with pytest.warns(NothingFoundWarning) as caught:
        assert batch(tmp_path) == []
    assert [str(warning.message) for warning in caught] == [
        f"nothing to read: no file, or only empty ones, in '{tmp_path}'"
    ]


def test_a_filter_of_names_that_none_fits_warns(files: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, files, 0, 1)
    with pytest.warns(NothingFoundWarning, match="nothing to read"):
        assert batch(tmp_path, pathGlobFilter="*.pcapng") == []


@pytest.mark.spark
@pytest.mark.parametrize("table", ["messages", "errors", "packets"])
def test_a_conversion_of_an_empty_folder_writes_the_columns(spark: Any, tmp_path: Path, table: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.warns(NothingFoundWarning) as caught:
        found = pcap_to_parquet(spark, str(tmp_path / "in"), str(tmp_path / "out"), table=table)
    message = f"nothing to read: no file, or only empty ones, in '{tmp_path}/in'"
    ours = [warning for warning in caught if warning.category is NothingFoundWarning]
    assert [str(warning.message) for warning in ours] == [message]
    assert [row.rows for row in found.collect()] == [0]
    (written,) = (tmp_path / "out").glob("*.parquet")
    assert parquet.read_schema(written).equals(arrow_schema(table, "auto"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0


@pytest.mark.spark
def test_a_conversion_skips_bad_files_on_request(spark: Any, files: list[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, files, 0, len(files))
    wanted = len(batch(folder))
    spoil(folder / "link.pcap", "link")
    with pytest.raises(PySparkException, match=r"link.pcap' is no file"):
        pcap_to_parquet(spark, str(folder), str(tmp_path / "out"))
    for table, rows in (("messages", wanted), ("errors", 1)):
        with pytest.warns(BadFileWarning, match=r"skipped '.*/link.pcap'"):
            pcap_to_parquet(spark, str(folder), str(tmp_path / table), table=table, bad_files="skip")
        assert parquet.read_table(tmp_path / table).num_rows == rows


@pytest.mark.spark
def test_a_replay_refuses_a_link_that_leads_nowhere(spark: Any, files: list[bytes], tmp_path: Path) -> None:
    put(tmp_path, files, 0, 1)
    pcap_to_parquet(spark, str(tmp_path / "trace_00000.pcap"), str(tmp_path / "in"))
    (tmp_path / "in" / "x.parquet").symlink_to("/nowhere.parquet")
    with pytest.raises(PySparkException, match=r"x.parquet' is no file"):
        parquet_to_stream(spark, str(tmp_path / "in"), str(tmp_path / "out"))
