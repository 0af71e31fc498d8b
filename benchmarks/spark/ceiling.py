"""What Spark could do at best: batches that are made already, so that nothing is decoded.

In a module of its own, since workers import it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import StructType

from amqpcodec.spark.schemas import data_type, struct_type

GROUP_ROWS = 131_072
BATCH_ROWS = 10_000
_Arrays = Iterator[pa.Array]
_Batches = Iterator[pa.RecordBatch]


class Ceiling(DataSource):
    """Gives the batches of an Arrow file, `path`, over and over: `rows` rows in each of `parts` parts."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        return struct_type(pa.ipc.open_file(self.options["path"]).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return CeilingWriter()


class CeilingWriter(DataSourceArrowWriter):
    """Takes batches and drops them."""

    def write(self, iterator: _Batches) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


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


def prebuilt(path: str) -> Callable[[_Batches], _Batches]:
    """Gives, in place of each batch, as many rows of the one in an Arrow file."""

    def give(batches: _Batches) -> _Batches:
        made = pa.ipc.open_file(path).get_batch(0)
        for batch in batches:
            yield made.slice(0, batch.num_rows)

    return give


def prebuilt_struct(path: str) -> Any:
    """The same as a function of columns, which returns structs."""
    fields = list(pa.ipc.open_file(path).schema)

    def give(arrays: _Arrays) -> _Arrays:
        made = pa.StructArray.from_arrays(pa.ipc.open_file(path).get_batch(0).columns, fields=fields)
        for values in arrays:
            yield made.slice(0, len(values))

    return arrow_udf(give, data_type(pa.struct(fields)))


def rewrite(columns: tuple[str, ...], size: int, folder: Path) -> Callable[[_Batches], _Batches]:
    """Reads Parquet files inside a worker, and writes `size` octets for every row."""

    def work(batches: _Batches) -> _Batches:
        octets = memoryview(bytes(BATCH_ROWS * size))
        for paths in batches:
            for path in paths.column(0).to_pylist():
                rows = 0
                with open(folder / Path(path).name, "wb") as file:
                    for batch in parquet.ParquetFile(path).iter_batches(BATCH_ROWS, columns=list(columns)):
                        file.write(octets[: batch.num_rows * size])
                        rows += batch.num_rows
                yield pa.record_batch({"rows": pa.array([rows])})

    return work
