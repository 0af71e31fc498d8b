"""The jobs that are measured on Spark, each beside what it could be at best: the same with nothing to decode.

In a module of its own, since a process has one session, and several of them do the same jobs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from captures import FOLDER, ROOT, capture

CAPTURES = 4
CONNECTIONS = 64  # of each
SAMPLE = 20  # batches of a ceiling
BATCH_ROWS = 10_000  # that Spark sends to a worker
FRAMES, REPEATED = 100_000, 20  # frames in a table, and how often it has each
NUMBERS = ("ts", "offset", "channel", "size", "method_id")
THREE = "ts timestamp, exchange string, routing_key string"
FLAT = ("offset", "frame_type", "channel", "size", "class_id", "method_id", "name", "_error")
STRUCT = FLAT[1:]
REPLAYED = ("ts_ns", "name", "exchange", "routing_key", "properties", "headers_raw", "body")
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}

Work = Callable[[], Any]


@contextmanager
def session(master: str, **settings: str) -> Iterator[tuple[Any, Path]]:
    """Return a session whose workers find the package and the benchmarks, and a folder of its own."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT / "src")])
    from pyspark.sql import SparkSession

    from amqpcodec.spark.java import local_java

    with local_java(), tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        spark = SparkSession.builder.master(master).config(map=SETTINGS | settings).getOrCreate()
        try:
            yield spark, Path(scratch)
        finally:
            spark.stop()


class Job(NamedTuple):
    """What is done with `amount` of a unit: by us, and with nothing to decode."""

    unit: str
    amount: int
    work: Work
    ceiling: Work


def captures(megabytes: int) -> tuple[list[str], dict[str, int]]:
    """Return seeded captures, and the sums of the counts of their contents."""
    paths, sums = [], dict.fromkeys(("octets", "frames", "messages", "connections"), 0)
    for seed in range(CAPTURES):
        path, counts = capture(megabytes, CONNECTIONS, seed)
        counts["octets"] = path.stat().st_size
        paths.append(str(path))
        sums = {name: sums[name] + counts[name] for name in sums}
    return paths, sums


def nowhere(frame: Any) -> None:
    """Compute every row and drop it."""
    frame.write.format("noop").mode("overwrite").save()


class Jobs:
    """The jobs of a session."""

    def __init__(self, spark: Any, paths: list[str], counts: dict[str, int], folder: Path) -> None:
        self.spark, self.paths, self.counts, self.folder = spark, paths, counts, folder

    def all(self) -> dict[str, Job]:
        """Every job by its name; what they need is made."""
        return self._reading() | self._writing_parquet() | self._octets() | self._replaying()

    def _reading(self) -> dict[str, Job]:
        octets, messages = self.counts["octets"], self.counts["messages"]
        made, numbers = self._sample("messages"), self._sample("frames", NUMBERS)
        whole, made_whole = self.read("messages"), self._made(made, messages)
        three, made_three = self.read("messages", THREE), self._made(made, messages, THREE)
        frames, made_frames = (
            self.read("frames", columns=",".join(NUMBERS)),
            self._made(numbers, self.counts["frames"]),
        )
        assert whole.count() == messages, "messages are missing"
        first = self.paths[:1]
        size = os.path.getsize(first[0])

        def alone(most: int) -> None:
            # Planned anew every time: Spark keeps the plan of a DataFrame, and the scan is part of it.
            nowhere(self.read("messages", paths=first, maxPartitionBytes=most))

        return {
            "frames, numbers": Job("octets", octets, partial(nowhere, frames), partial(nowhere, made_frames)),
            "messages": Job("messages", messages, partial(nowhere, whole), partial(nowhere, made_whole)),
            "messages, counted": Job("messages", messages, whole.count, made_whole.count),
            "messages, 3 columns": Job(
                "messages", messages, partial(nowhere, three), partial(nowhere, made_three)
            ),
            # A single capture: by two tasks, for which its first half is scanned in advance, and by one.
            "messages, divided": Job("octets", size, partial(alone, size // 2 + 1), partial(alone, size)),
        }

    def _writing_parquet(self) -> dict[str, Job]:
        from .ceiling import WriteParquet

        messages = self.counts["messages"]
        made = self._sample("messages")
        target = self.folder / "direct-ceiling"
        target.mkdir()
        write = self._each(WriteParquet(made, messages // CAPTURES, target))
        through_jvm, made_through_jvm = (
            partial(self._parquet, frame) for frame in (self.read("messages"), self._made(made, messages))
        )
        size = os.path.getsize(self.paths[0])
        halved, whole = (partial(self._direct_alone, most) for most in (size // 2 + 1, size))
        return {
            "pcap_to_parquet": Job("messages", messages, self._direct, write),
            "pcap_to_parquet, divided": Job("octets", size, halved, whole),
            "write.parquet": Job("messages", messages, through_jvm, made_through_jvm),
        }

    def _octets(self) -> dict[str, Job]:
        """A table with a frame in each row."""
        from amqpcodec.spark import decode_frames, from_amqp
        from amqpcodec.spark.schemas import struct_type

        from .ceiling import prebuilt, prebuilt_struct

        table = self.spark.read.parquet(self._frames())
        flat, struct = self._decoded(FLAT), self._decoded(STRUCT)
        rows = FRAMES * REPEATED
        types = struct_type(_schema(flat))
        return {
            "from_amqp": Job(
                "rows", rows,
                partial(nowhere, table.select(from_amqp("octets", columns=STRUCT).alias("d"))),
                partial(nowhere, table.select(prebuilt_struct(struct)("octets").alias("d"))),
            ),
            "decode_frames": Job(
                "rows", rows,
                partial(nowhere, decode_frames(table, "octets", columns=FLAT)),
                partial(nowhere, table.mapInArrow(prebuilt(flat), types)),
            ),
        }  # fmt: skip

    def _replaying(self) -> dict[str, Job]:
        """Messages in Parquet to streams."""
        from amqpcodec.spark import parquet_to_stream, pcap_to_parquet

        from .ceiling import rewrite

        source, target = str(self.folder / "messages"), str(self.folder / "stream")
        pcap_to_parquet(self.spark, self.paths, source, columns=REPLAYED)
        messages = self.counts["messages"]
        frame = self.spark.read.parquet(source)

        def save(name: str) -> None:
            frame.write.format(name).mode("overwrite").save(target)

        def direct() -> list[Any]:
            return parquet_to_stream(self.spark, source, target, save="overwrite").collect()

        copies = self.folder / "stream-ceiling"
        copies.mkdir()
        files = [str(path) for path in sorted(Path(source).glob("*.parquet"))]
        rewriting = self.spark.createDataFrame([(path,) for path in files], "path string")
        copying = rewrite(REPLAYED, sum(row.size for row in direct()) // messages, copies)
        rewriting = rewriting.repartition(len(files)).mapInArrow(copying, "rows long")
        return {
            "write.format": Job("messages", messages, partial(save, "amqp"), partial(save, "ceiling")),
            "parquet_to_stream": Job("messages", messages, direct, rewriting.collect),
        }

    def read(
        self, table: str, schema: str | None = None, paths: list[str] | None = None, **options: Any
    ) -> Any:
        """Our source."""
        reader = self.spark.read.format("amqp").option("table", table).options(**options)
        return (reader.schema(schema) if schema else reader).load(paths or self.paths)

    def _made(self, sample: str, rows: int, schema: str | None = None) -> Any:
        """The source of batches that are made already."""
        reader = self.spark.read.format("ceiling").option("parts", CAPTURES).option("rows", rows // CAPTURES)
        return (reader.schema(schema) if schema else reader).load(sample)

    def _each(self, work: Any) -> Work:
        """What is done with the number of each capture."""
        frame = self.spark.range(0, CAPTURES, 1, CAPTURES).mapInArrow(work.__call__, "id long")
        return lambda: frame.collect()

    def _direct(self) -> None:
        """Captures to Parquet inside the workers."""
        from amqpcodec.spark import pcap_to_parquet

        written = pcap_to_parquet(self.spark, self.paths, str(self.folder / "direct"), save="overwrite")
        assert sum(row.rows for row in written.collect()) == self.counts["messages"], "messages are missing"

    def _direct_alone(self, most: int) -> None:
        """One capture to Parquet inside the workers, by tasks that read so many bytes."""
        from amqpcodec.spark import pcap_to_parquet

        target = str(self.folder / "direct-alone")
        pcap_to_parquet(self.spark, self.paths[:1], target, save="overwrite", max_partition_bytes=most)

    def _parquet(self, frame: Any) -> None:
        """Parquet written by Spark itself."""
        frame.write.mode("overwrite").option("compression", "zstd").parquet(str(self.folder / "jvm"))

    def _sample(self, table: str, columns: tuple[str, ...] | None = None) -> str:
        """An Arrow file of some batches of a table."""
        from amqpcodec import arrow

        reader = arrow.read_capture(self.paths[0], table, columns=columns)
        return _stored(self.folder / f"{table}.arrow", reader.schema, islice(reader, SAMPLE))

    def _frames(self) -> str:
        """A Parquet file with the octets of a frame in each row."""
        import pyarrow as pa
        from pyarrow import parquet

        from amqpcodec.capture import CapturedFrame, read_frames

        target = self.folder / "frames.parquet"
        items = (item.octets for item in read_frames(self.paths[0]) if isinstance(item, CapturedFrame))
        table = pa.table({"octets": pa.array(islice(items, FRAMES), pa.binary())})
        with parquet.ParquetWriter(target, table.schema) as writer:
            for _ in range(REPEATED):
                writer.write_table(table)
        return str(target)

    def _decoded(self, columns: tuple[str, ...]) -> str:
        """An Arrow file of as many decoded frames as Spark sends to a worker at a time."""
        from pyarrow import parquet

        from amqpcodec import arrow

        octets = parquet.read_table(self.folder / "frames.parquet")["octets"].slice(0, BATCH_ROWS)
        values = octets.combine_chunks()
        batch = arrow.decode_values(values, "frames", columns=columns, explode="offset" in columns)
        batch = batch.select(columns)
        return _stored(self.folder / f"decoded-{len(columns)}.arrow", batch.schema, [batch])


def _stored(target: Path, schema: Any, batches: Any) -> str:
    import pyarrow as pa

    with pa.ipc.new_file(str(target), schema) as file:
        for batch in batches:
            file.write_batch(batch)
    return str(target)


def _schema(path: str) -> Any:
    import pyarrow as pa

    return pa.ipc.open_file(path).schema
