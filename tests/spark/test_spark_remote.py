"""What lies on other machines, named by URIs, is listed, read and written as what lies here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyarrow import fs
from support.rotations import busy, write_rotated

from amqpcodec import arrow
from amqpcodec.spark import files, table_schema
from amqpcodec.spark.committer import Committer
from amqpcodec.spark.files import listed
from amqpcodec.spark.options import read_options
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.streaming import AmqpStreamReader

COLUMNS = ["file", "flow", "offset", "routing_key", "body", "complete"]


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for `store://bucket`; pyarrow finds it behind a path that begins with its name."""
    (tmp_path / "bucket").mkdir()

    def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
        assert uri == "store://bucket/"
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "bucket/"

    there = vars(fs) | {"FileSystem": SimpleNamespace(from_uri=from_uri)}
    monkeypatch.setattr(files, "fs", SimpleNamespace(**there))
    files._store.cache_clear()
    yield tmp_path / "bucket"
    files._store.cache_clear()


@pytest.fixture
def captures(bucket: Path) -> list[str]:
    """A recording in four files, by their URIs."""
    paths = write_rotated(bucket / "set", busy(bucket / "whole", 200_000), seed=2, files=4)
    return [f"store://bucket/set/{path.name}" for path in paths]


def wanted(bucket: Path, captures: list[str], *, ended: bool) -> list[dict[str, Any]]:
    session = arrow.CaptureSession(columns=COLUMNS)
    found = [
        batch for uri in captures for batch in session.read(bucket / uri.removeprefix("store://bucket/"), uri)
    ]
    return pa.Table.from_batches([*found, *(session.finish() if ended else [])], session.schema).to_pylist()


@pytest.mark.parametrize("path", ["set", "set/", "s*", "set/*.pcap", "{set/trace_*,set/none}"])
def test_files_are_listed_by_their_uris(captures: list[str], path: str) -> None:
    found = listed([f"store://bucket/{path}"], recursive=False, name_pattern=None)
    assert [uri for uri, _ in found] == captures
    assert listed(captures, recursive=False, name_pattern=None) == found


@pytest.mark.parametrize("size", ["1g", "20k"])
def test_a_recording_is_read_in_parts(bucket: Path, captures: list[str], size: str) -> None:
    options = {"path": "store://bucket/set", "maxGroupBytes": size, "maxPartitionBytes": size}
    reader = AmqpReader(read_options(options), table_schema(columns=COLUMNS))
    parts = reader.partitions()
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert (len(parts) == 1) == (size == "1g")
    assert rows == wanted(bucket, captures, ended=True)


def test_a_folder_is_followed(bucket: Path, captures: list[str]) -> None:
    options = read_options({"path": "store://bucket/set", "minFileAge": "0s"})
    reader = AmqpStreamReader(options, table_schema(columns=COLUMNS))
    end = reader.latestOffset({})
    assert [position["last"] for position in end.values()] == captures[-1:]
    rows = [
        row for part in reader.partitions({}, end) for batch in reader.read(part) for row in batch.to_pylist()
    ]
    assert rows == wanted(bucket, captures, ended=False)


@pytest.mark.parametrize("save", ["append", "overwrite"])
def test_a_folder_is_written(bucket: Path, captures: list[str], save: str) -> None:
    if save == "overwrite":
        with pytest.raises(ValueError, match=r"trace_00001.pcap' is read, so 'store://bucket/set' cannot be"):
            Committer("store://bucket/set", save, "name").prepare(captures)
    (bucket / "out").mkdir()
    (bucket / "out" / "before").touch()
    job = Committer("store://bucket/out", save, "name")
    job.prepare(captures)
    staged, path = job.staged("part")
    (bucket / staged.removeprefix("store://bucket/")).touch()
    job.commit([(staged, path)])
    names = {path.name for path in (bucket / "out").iterdir()}
    assert names == {"_SUCCESS", "part"} | ({"before"} if save == "append" else set())


def test_what_failed_is_removed(bucket: Path) -> None:
    job = Committer("store://bucket/out", "append", "name")
    job.prepare()
    assert (bucket / "out").is_dir()
    job.abort()
    assert list(bucket.iterdir()) == []
