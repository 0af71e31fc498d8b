"""An S3 is read in few requests, as files on this machine are; its failures say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from pyarrow.fs import S3FileSystem

pytest.importorskip("pyspark")

from support.object_store import KEYS, Store, object_store
from support.rotations import busy, write_rotated

from amqpcodec.spark import files, table_schema
from amqpcodec.spark.committer import Committer
from amqpcodec.spark.files import listed, open_file
from amqpcodec.spark.options import read_options
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.streaming import AmqpStreamReader

pytestmark = pytest.mark.slow("starts an S3")

COLUMNS = ["flow", "offset", "routing_key", "body", "complete"]


@pytest.fixture(scope="module")
def running() -> Iterator[Store]:
    pytest.importorskip("moto", reason="an S3 for tests: pip install 'amqpcodec[stores]'")
    with object_store() as store:
        yield store


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": running.url}).items():
        monkeypatch.setenv(name, value)
    running.delay, running.page, running.broken = 0.0, 0, 0
    files._store.cache_clear()
    yield running
    files._store.cache_clear()


@pytest.fixture
def captures(store: Store, tmp_path: Path) -> list[Path]:
    """A recording in nine files, in the bucket `captures` as well."""
    paths = write_rotated(tmp_path / "set", busy(tmp_path / "whole", 3_000_000), seed=2, files=9)
    system = S3FileSystem(endpoint_override=store.url, allow_bucket_creation=True)
    system.create_dir("captures")
    for path in paths:
        with system.open_output_stream(f"captures/day/{path.name}") as stream:
            stream.write(path.read_bytes())
    store.requests.clear()
    return paths


def rows(path: str, **options: str) -> list[dict[str, Any]]:
    reader = AmqpReader(read_options({"path": path, **options}), table_schema(columns=COLUMNS))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("scheme", ["s3", "S3", "s3a", "s3n"])
@pytest.mark.parametrize("inside", ["day", "day/", "day/*.pcap", "d?y/trace_0000[0-9]*"])
def test_a_recording_in_a_store_is_read_as_the_one_here(
    store: Store, captures: list[Path], scheme: str, inside: str
) -> None:
    assert rows(f"{scheme}://captures/{inside}") == rows(str(captures[0].parent))


def test_listings_in_pages_are_read_to_their_end(store: Store, captures: list[Path]) -> None:
    store.page = 2
    found = listed(["s3://captures/day"], recursive=False, name_pattern=None)
    assert [path.rpartition("/")[2] for path, _ in found] == [path.name for path in captures]
    assert sum("list-type=2" in request for request in store.requests) >= 5


def test_a_range_of_a_file_is_fetched_once(store: Store, captures: list[Path]) -> None:
    size = captures[0].stat().st_size
    with open_file(f"s3://captures/day/{captures[0].name}") as file:
        assert file.read() == captures[0].read_bytes()
    ranges = [tuple(map(int, each.removeprefix("bytes=").split("-"))) for each in store.gets()]
    assert sorted(ranges)[-1][1] == size - 1
    assert sum(end - begin + 1 for begin, end in ranges) == size
    assert len(ranges) <= 3


@pytest.mark.parametrize("broken", [1, 2])
def test_answers_that_break_off_are_asked_for_again(store: Store, captures: list[Path], broken: int) -> None:
    wanted = rows(str(captures[0].parent))
    store.broken = broken
    assert rows("s3://captures/day") == wanted
    assert store.broken == 0


def test_a_folder_of_a_store_is_followed(store: Store, captures: list[Path]) -> None:
    options = read_options({"path": "s3a://captures/day", "minFileAge": "0s"})
    reader = AmqpStreamReader(options, table_schema(columns=COLUMNS))
    end = reader.latestOffset({})
    found = [
        row for part in reader.partitions({}, end) for batch in reader.read(part) for row in batch.to_pylist()
    ]
    assert found
    assert found == rows(str(captures[0].parent))[: len(found)]


@pytest.mark.parametrize("save", ["append", "overwrite"])
def test_files_of_a_store_are_moved_side_by_side(store: Store, captures: list[Path], save: str) -> None:
    system = files.Location("s3://captures/out").system
    job = Committer("s3://captures/out", save, uuid4().hex)
    job.prepare()
    staged = [job.staged(f"part-{number}") for number in range(8)]
    for number, (source, _) in enumerate(staged):
        with system.open_output_stream(source.removeprefix("s3://")) as stream:
            stream.write(b"%d" % number)
    store.delay, store.most_together = 0.02, 0
    job.commit(staged)
    assert store.most_together > 1
    assert [open_file(path).read() for _, path in staged] == [b"%d" % number for number in range(8)]
    found = listed(["s3://captures/out"], recursive=False, name_pattern=None)
    assert [path for path, _ in found] == [path for _, path in staged]


def test_a_bucket_that_is_not_there_is_asked_for_once(store: Store) -> None:
    reader = AmqpReader(read_options({"path": "s3a://none/day"}), table_schema(columns=COLUMNS))
    with pytest.raises(FileNotFoundError, match=r"there is no file 's3a://none/day'") as first:
        reader.partitions()
    asked = len(store.requests)
    with pytest.raises(FileNotFoundError) as second:
        reader.partitions()
    assert second.value is first.value
    assert len(store.requests) == asked


def test_a_store_that_does_not_answer_fails_in_seconds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    begin = monotonic()
    with pytest.raises(OSError, match=r"'s3://captures/day' cannot be listed: .*AWS_ENDPOINT_URL"):
        rows("s3://captures/day")
    assert monotonic() - begin < 15
