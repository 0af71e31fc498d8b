"""What Spark could do at best: batches that are made already, so that nothing is decoded.

In a module of its own, since workers import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from amqpcodec.spark.schemas import struct_type

GROUP_ROWS = 131_072


class Ceiling(DataSource):
    """Gives the batches of an Arrow file, `path`, over and over: `rows` rows in each of `parts` parts."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        return struct_type(pa.ipc.open_file(self.options["path"]).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(dict(self.options), schema)


class CeilingReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options, self.names = options, schema.names

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in range(int(self.options["parts"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in repeated(self.options["path"], int(self.options["rows"])):
            yield batch.select(self.names)


def repeated(path: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file, again and again, until there were so many rows."""
    file = pa.ipc.open_file(path)
    batches = [file.get_batch(at) for at in range(file.num_record_batches)]
    while rows > 0:
        for batch in batches:
            if rows > 0:
                yield batch.slice(0, rows)
            rows -= batch.num_rows


class WriteParquet:
    """Writes such batches inside a worker, one file for each row that it is given."""

    def __init__(self, path: str, rows: int, folder: Path) -> None:
        self.path, self.rows, self.folder = path, rows, folder

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                self._write(self.folder / f"part-{number}.parquet")
            yield batch

    def _write(self, target: Path) -> None:
        schema = pa.ipc.open_file(self.path).schema
        with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
            waiting: list[pa.RecordBatch] = []
            for batch in repeated(self.path, self.rows):
                waiting.append(batch)
                if sum(each.num_rows for each in waiting) >= GROUP_ROWS:
                    writer.write_table(pa.Table.from_batches(waiting))
                    waiting = []
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting))
