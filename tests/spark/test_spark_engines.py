"""The same rows on executors, through Spark Connect, and from workers that die or have little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest
from conftest import SETTINGS
from pyarrow import parquet
from support.rotations import busy, write_rotated
from support.spark_jobs import run

pytestmark = pytest.mark.spark

READ_AND_CONVERT = """
from amqpcodec.spark import pcap_to_parquet
spark = session(**given["more"]).getOrCreate()
rows = spark.read.format("amqp").option("maxGroupBytes", "1").load(given["path"]).count()
written = pcap_to_parquet(spark, given["path"], given["out"], table="frames", maxGroupBytes=1)
tell(rows=rows, written=sum(row.rows for row in written.collect()))
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording in four files."""
    folder = tmp_path_factory.mktemp("captures")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=4)
    return folder / "set"


def counts(folder: Path) -> tuple[int, int]:
    """Rows of messages and of frames."""
    from amqpcodec import arrow

    found = []
    for table in ("messages", "frames"):
        session = arrow.CaptureSession(table, columns=())
        batches = [batch for path in sorted(folder.iterdir()) for batch in session.read(str(path))]
        found.append(sum(batch.num_rows for batch in (*batches, *session.finish())))
    return found[0], found[1]


def check(found: dict[str, int], folder: Path, out: Path) -> None:
    messages, frames = counts(folder)
    assert found == {"rows": messages, "written": frames}
    assert parquet.read_table(out).num_rows == frames
    assert len([name for name in os.listdir(out) if name.endswith(".parquet")]) == 4
    assert len(os.listdir(out)) == 5
    assert "_SUCCESS" in os.listdir(out)


def test_executors_of_a_cluster_read_and_write(java: None, folder: Path, tmp_path: Path) -> None:
    # Its workers write to SPARK_HOME, which therefore is a folder of links.
    home = tmp_path / "home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    more = {"spark.master": "local-cluster[2,1,1024]", "spark.executor.memory": "1g"}
    script = f"os.environ['SPARK_HOME'] = {str(home)!r}\n{READ_AND_CONVERT}"
    found = run(script, SETTINGS, path=str(folder), out=str(tmp_path / "out"), more=more)
    check(found, folder, tmp_path / "out")
    assert (home / "work").is_dir()


def test_spark_connect_reads_and_writes(java: None, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    found = run(
        READ_AND_CONVERT, {}, path=str(folder), out=str(tmp_path / "out"), more={"spark.remote": "local[2]"}
    )
    check(found, folder, tmp_path / "out")


KILLED = """
import glob, signal, threading, time
from amqpcodec.spark import pcap_to_parquet
killed = []
def kill():
    # The worker that has a file open in the folder for what is not committed.
    while not killed:
        for link in glob.glob("/proc/[0-9]*/fd/*"):
            try:
                if f"{given['out']}/_temporary-" in os.readlink(link) and "/part-" in os.readlink(link):
                    killed.append(int(link.split("/")[2]))
                    os.kill(killed[0], signal.SIGKILL)
                    return
            except OSError:
                pass
        time.sleep(0.01)
spark = session(**{"spark.master": "local[2, 4]"}).getOrCreate()
watcher = threading.Thread(target=kill, daemon=True)
watcher.start()
# The pure build takes long enough to be met at work.
written = pcap_to_parquet(spark, given["path"], given["out"], table="frames", maxGroupBytes=1, impl="py")
watcher.join(10)
tell(written=sum(row.rows for row in written.collect()), killed=len(killed))
spark.stop()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds the worker by its open files in /proc")
def test_a_worker_that_is_killed_loses_and_doubles_nothing(java: None, folder: Path, tmp_path: Path) -> None:
    found = run(KILLED, SETTINGS, path=str(folder), out=str(tmp_path / "out"))
    messages, frames = counts(folder)
    assert found["killed"] == 1
    check({"rows": messages, "written": found["written"]}, folder, tmp_path / "out")
    assert found["written"] == frames


LIMITED = """
more = {"spark.master": "local[2]", "spark.executor.pyspark.memory": "500m"}
spark = session(**more).getOrCreate()
def limit(batches):
    import struct, resource
    import pyarrow as pa
    for _ in batches:
        octets = pa.py_buffer(struct.pack("=q", resource.getrlimit(resource.RLIMIT_AS)[0]))
        yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 1, [None, octets])], ["octets"])
limit = spark.range(1).mapInArrow(limit, "octets long").collect()[0].octets
found = spark.read.format("amqp").load(given["path"])
counted = found.selectExpr("count(body) AS rows", "sum(body_size) AS octets").collect()[0]
tell(limit=limit, **counted.asDict())
spark.stop()
"""


def test_a_capture_larger_than_the_memory_of_a_worker_is_read(java: None, tmp_path: Path) -> None:
    from amqpcodec import arrow

    path = tmp_path / "large.pcap"
    busy(path, 30_000_000, connections=60)
    piece = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(9):
            file.write(piece[24:])
    rows = octets = 0
    for batch in arrow.read_capture(str(path), columns=["body", "body_size"]):
        rows += len(batch["body"]) - batch["body"].null_count
        octets += sum(batch["body_size"].to_pylist())
    found = run(LIMITED, SETTINGS, path=str(path))
    assert found == {"limit": 500 << 20, "rows": rows, "octets": octets}


def test_the_command_converts(java: None, folder: Path, tmp_path: Path) -> None:
    script = """
from amqpcodec.cli import main
begin = ["spark", "convert", given["path"], given["out"], "--conf", "spark.driver.host=127.0.0.1"]
what = ["--table", "methods", "--columns", "name,channel", "--option", "maxGroupBytes=1"]
tell(codes=[main([*begin, *what, "--master", "local[2]"]), main([*begin, "--master", "local[1]"])])
"""
    found = run(script, SETTINGS, path=str(folder), out=str(tmp_path / "out"))
    assert found["codes"] == [0, 2]
    assert parquet.read_table(tmp_path / "out").schema.names == ["name", "channel"]
    assert len(os.listdir(tmp_path / "out")) == 5
