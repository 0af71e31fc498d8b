"""The same rows on executors, through Spark Connect, and from workers that die or have little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyspark
import pytest
from pyarrow import parquet
from support.rotations import busy, write_rotated
from support.spark_jobs import SETTINGS, run

from amqpcodec import arrow
from amqpcodec.spark.versions import lack

pytestmark = pytest.mark.spark

EVERYTHING = """
from pyspark.sql.functions import struct
from amqpcodec.spark import (
    decode_frames, decode_streams, from_amqp, parquet_to_stream, pcap_to_parquet, to_amqp
)
from amqpcodec.spark.convert import parallelism
from amqpcodec.spark.versions import lack
spark = session(**given["more"]).getOrCreate()
path, out = given["path"], given["out"]
messages = spark.read.format("amqp").option("maxGroupBytes", "1").load(path)
location = ["flow", "direction", "offset"]
message = ["name", "exchange", "routing_key", "properties", "headers_raw", "body"]
found = {"rows": messages.count(), "cores": parallelism(spark)}
written = pcap_to_parquet(spark, path, out, table="frames", max_group_bytes=1)
found["written"] = sum(row.rows for row in written.collect())
pcap_to_parquet(spark, path, out + "-messages", columns=location + message)

# A row of octets for each message, and back.
stored = spark.read.parquet(out + "-messages")
rows = stored.write.format("amqp").mode("append").options(output="rows", keys=",".join(location))
rows.save(out + "-octets")
octets = spark.read.parquet(out + "-octets")
if lack("to_amqp") is None:
    made = stored.select(*location, to_amqp(struct(*message)).alias("octets"))
    found["to_amqp"] = made.intersectAll(octets).count()
bodies = octets.select(from_amqp("octets", "messages", columns=["body_size"]).alias("m")).select("m.*")
found["from_amqp"] = bodies.selectExpr("sum(body_size)").collect()[0][0]
frames = decode_frames(octets, "octets", keys=["flow"], columns=["name"])
found["decode_frames"] = frames.where("name IN ('basic.publish', 'basic.deliver')").count()
streams = decode_streams(octets, ["flow", "direction"], "offset", "octets", columns=["body_size"])
found["decode_streams"] = streams.count()

stored.write.format("amqp").mode("append").option("output", "stream").save(out + "-stream")
found["stream"] = spark.read.format("amqp").option("columns", "kind").load(out + "-stream").count()
replayed = parquet_to_stream(spark, out + "-messages", out + "-replayed").collect()
found["replayed"] = sum(row.messages for row in replayed if row.path.endswith(".amqp"))
report(**found)
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording in four files."""
    folder = tmp_path_factory.mktemp("captures")
    write_rotated(folder / "set", busy(folder / "whole", 250_000), seed=1, files=4)
    return folder / "set"


def table(folder: Path, name: str, columns: tuple[str, ...] = ()) -> pa.Table:
    """A table of the recording."""
    session = arrow.CaptureSession(name, columns=columns)
    batches = [batch for path in sorted(folder.iterdir()) for batch in session.read(str(path))]
    return pa.Table.from_batches([*batches, *session.finish()], session.schema)


def check_everything(found: dict[str, int], folder: Path, out: Path) -> None:
    messages = table(folder, "messages", ("body_size",))
    others = ["rows", "decode_frames", "decode_streams", "stream", "replayed"]
    others += ["to_amqp"] if lack("to_amqp") is None else []
    assert found == dict.fromkeys(others, messages.num_rows) | {
        "written": table(folder, "frames").num_rows,
        "from_amqp": pc.sum(messages["body_size"]).as_py(),
        "cores": 2,
    }
    check_files(found["written"], folder, out)


def check_files(frames: int, folder: Path, out: Path) -> None:
    assert frames == table(folder, "frames").num_rows
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
    script = f"os.environ['SPARK_HOME'] = {str(home)!r}\n{EVERYTHING}"
    found = run(script, SETTINGS, path=str(folder), out=str(tmp_path / "out"), more=more)
    check_everything(found, folder, tmp_path / "out")
    assert (home / "work").is_dir()


def test_spark_connect_reads_and_writes(java: None, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    found = run(
        EVERYTHING, {}, path=str(folder), out=str(tmp_path / "out"), more={"spark.remote": "local[2]"}
    )
    check_everything(found, folder, tmp_path / "out")


KILLED = """
import glob, signal, threading, time
from amqpcodec.spark import pcap_to_parquet
killed = []
def kill():
    # A worker that has a capture open, once there is a folder for what is not committed.
    while not killed:
        for link in glob.glob("/proc/[0-9]*/fd/*") if glob.glob(f"{given['out']}/_temporary-*") else ():
            try:
                if os.readlink(link).startswith(f"{given['path']}/"):
                    killed.append(int(link.split("/")[2]))
                    os.kill(killed[0], signal.SIGKILL)
                    return
            except OSError:
                pass
        time.sleep(0.01)
spark = session(**{"spark.master": "local[2, 4]"}).getOrCreate()
watcher = threading.Thread(target=kill, daemon=True)
watcher.start()
# The pure build takes long enough over such files to be met at work.
written = pcap_to_parquet(spark, given["path"], given["out"], table="frames", max_group_bytes=1, impl="py")
watcher.join(10)
report(written=sum(row.rows for row in written.collect()), killed=len(killed))
spark.stop()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds the worker by its open files in /proc")
def test_a_worker_that_is_killed_loses_and_doubles_nothing(java: None, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_rotated(folder, busy(tmp_path / "whole", 2_500_000), seed=1, files=4)
    found = run(KILLED, SETTINGS, path=str(folder), out=str(tmp_path / "out"))
    assert found["killed"] == 1
    check_files(found["written"], folder, tmp_path / "out")


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
from amqpcodec.spark import pcap_to_parquet
written = pcap_to_parquet(spark, given["path"], given["out"], max_partition_bytes=1 << 30).collect()
report(limit=limit, written=[row.rows for row in written], **counted.asDict())
spark.stop()
"""


def test_a_capture_larger_than_the_memory_of_a_worker_is_read_and_converted(
    java: None, tmp_path: Path
) -> None:
    path = tmp_path / "large.pcap"
    busy(path, 30_000_000, connections=60)
    capture = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(9):
            file.write(capture[24:])
    rows = octets = messages = 0
    for batch in arrow.read_capture(str(path), columns=["body", "body_size"]):
        messages += batch.num_rows
        rows += len(batch["body"]) - batch["body"].null_count
        octets += sum(batch["body_size"].to_pylist())
    found = run(LIMITED, SETTINGS, path=str(path), out=str(tmp_path / "out"))
    assert found == {"limit": 500 << 20, "rows": rows, "octets": octets, "written": [messages]}
