"""A folder that recorders fill, and a stream that follows it."""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import synthetic_capture

from amqpcodec import arrow
from amqpcodec.spark import table_schema
from amqpcodec.spark.options import read_options
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.streaming import AmqpStreamReader

COLUMNS = ["file", "flow", "packet", "ts_ns", "direction", "offset", "routing_key", "body", "complete"]
HEADER = 24


def recorded(path: Path, size: int, *, seed: int, bursts: int, piece: int) -> list[bytes]:
    """A capture as a rotation leaves it: cut between packets, amid connections and messages.

    Args:
        path: where it may be written.
        size: octets of all files.
        seed: what is in it.
        bursts: of each connection.
        piece: octets of a file.
    """
    synthetic_capture.record(path, size, 4, seed=seed, bursts=bursts)
    octets, at, cuts = path.read_bytes(), HEADER, [HEADER]
    while at < len(octets):
        at += 16 + struct.unpack_from("<I", octets, at + 8)[0]
        if at - cuts[-1] > piece:
            cuts.append(at)
    cuts.append(len(octets))
    return [octets[:HEADER] + octets[begin:end] for begin, end in pairwise(cuts)]


def age(path: Path, seconds: float) -> None:
    """Set how long ago the last octet was written."""
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)


def put(folder: Path, files: list[bytes], first: int, last: int, age: float = 0) -> list[Path]:
    """Files of a rotation as they come, and how long ago the last octet was written."""
    paths = []
    for number in range(first, last):
        path = folder / f"trace_{number:05d}.pcap"
        path.write_bytes(files[number])
        os.utime(path, (path.stat().st_mtime - age,) * 2)
        paths.append(path)
    return paths


def expected(paths: list[Path]) -> list[tuple[Any, ...]]:
    """The rows of one session over files that is not finished."""
    session = arrow.CaptureSession(columns=COLUMNS)
    rows = [row for path in paths for batch in session.read(path) for row in batch.to_pylist()]
    return in_order(rows)


def in_order(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in COLUMNS) for row in rows), key=repr)


def reader(folder: Path, table: str = "messages", **options: str) -> AmqpStreamReader:
    schema = table_schema(table, columns=COLUMNS if table == "messages" else None)
    return AmqpStreamReader(read_options({"path": str(folder), "table": table, **options}), schema)


def at_most(files: int) -> Any:
    """Hold the limit of a batch, as PySpark has it since 4.2."""
    from pyspark.sql.streaming.datasource import ReadMaxFiles

    return ReadMaxFiles(files)


def rows_between(source: AmqpStreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    return _rows(source, source.partitions(start, end))


def batch(path: Path | str, table: str = "messages", **options: str) -> list[dict[str, Any]]:
    """The rows of what is there now, without a stream."""
    schema = table_schema(table, columns=COLUMNS if table == "messages" else None)
    source = AmqpReader(read_options({"path": str(path), "table": table, **options}), schema)
    return _rows(source, source.partitions())


def _rows(source: Any, parts: Any) -> list[dict[str, Any]]:
    batches = [batch for part in parts for batch in source.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []
