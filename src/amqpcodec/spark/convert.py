"""Captures to Parquet inside the workers: through the JVM, rows would be written a fifth as fast."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from .. import arrow
from . import tasks
from .landing import SAVE_MODES
from .options import read_options, text_of
from .planning import Recording
from .steps import commit, each, landed

COMPRESSIONS = ("zstd", "snappy", "gzip", "none")
STATISTICS = pa.schema(
    {
        "path": pa.string(),
        "rows": pa.int64(),
        "octets": pa.int64(),
        "ts_min": pa.timestamp("us", "UTC"),
        "ts_max": pa.timestamp("us", "UTC"),
    }
)


def pcap_to_parquet(
    spark: SparkSession,
    src: str | Iterable[str],
    dst: str,
    *,
    table: str = "messages",
    columns: Iterable[str] | None = None,
    mode: str = "permissive",
    compression: str = "zstd",
    save: str = "errorifexists",
    **options: Any,
) -> DataFrame:
    """Write a table of what is in captures or streams as Parquet files.

    The workers read and write by themselves, on storage that all of them share. A file is written for every
    part of a recording, or several if it is very large. When all are whole, they are moved to their folder,
    and an empty file ``_SUCCESS`` is put beside them; otherwise nothing is left.

    Args:
        spark: the session, of Spark Connect as well.
        src: files, folders and patterns, or one of them, as for ``format("amqp")``.
        dst: the folder to write.
        table: as for `amqpcodec.arrow.read_capture`.
        columns: the same; a column inside a struct is named with a dot.
        mode: ``"permissive"``, ``"dropmalformed"`` or ``"failfast"``.
        compression: ``"zstd"``, ``"snappy"``, ``"gzip"`` or ``"none"``.
        save: what to do if there is such a folder: ``"errorifexists"``, ``"append"`` to it, or
            ``"overwrite"`` what is in it.
        options: those of the data source, see docs/spark.md, as text or values of Python.

    Returns:
        A row for each file written: `path`, `rows`, `octets`, and its first and last time, `ts_min` and
        `ts_max`, null if that column is not among those written.

    Raises:
        ValueError: an argument or option that cannot be.
        pyspark.errors.PySparkException: a worker could not read or write; the reason is in its text.
    """
    given = {name: text_of(value) for name, value in options.items()}
    given |= {"table": table, "mode": mode, "paths": text_of([src] if isinstance(src, str) else list(src))}
    if columns is not None:
        given["columns"] = ",".join(columns)
    for what, value, known in (("save", save, SAVE_MODES), ("compression", compression, COMPRESSIONS)):
        if value not in known:
            raise ValueError(f"{what}: {value!r} is none of {', '.join(known)}")
    reading = read_options(given)
    arrow.read_capture((), table, columns=reading.columns, **reading.decoding())  # complain now, not in a job
    return _converted(spark, tasks.Job(dst, save, uuid4().hex, reading, compression))


def _converted(spark: SparkSession, job: tasks.Job) -> DataFrame:
    do = partial(each, spark, job)
    with landed(spark, job):
        recordings: list[Recording] = do(tasks.begin, [None])
        do(tasks.follow, [(at, parts) for at, parts in enumerate(recordings) if len(parts) > 1])
        parts = [(at, place, part) for at, parts in enumerate(recordings) for place, part in enumerate(parts)]
        written: list[tasks.Written] = do(tasks.convert, list(enumerate(parts)))
        do(commit, [[(file.staged, file.path) for file in written]])
    columns = list(zip(*written, strict=True)) or [()] * len(tasks.Written._fields)
    found = dict(zip(tasks.Written._fields, columns, strict=True))
    arrays = [pa.array(found[field.name], field.type) for field in STATISTICS]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=STATISTICS))
