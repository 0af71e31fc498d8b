"""Captures to Parquet inside the workers; through the JVM, writing would be five times slower."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from operator import attrgetter
from typing import Unpack, cast
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from .. import arrow
from .._options import resolve, select, takes
from ..options import CaptureOptions, SparkConversionOptions, SparkReadOptions
from . import tasks
from .chains import UnstitchedWarning
from .files import without_secret
from .notices import NothingFoundWarning, nothing_found, warn_of_files
from .planning import Part, Place, Recording, places, together
from .schemas import without_recording
from .steps import commit, each, removed_on_failure

_NUMBERS = 1 << 20  # more than any cluster has cores
STATISTICS = pa.schema(
    {
        "path": pa.string(),
        "rows": pa.int64(),
        "octets": pa.int64(),
        "ts_min": pa.timestamp("us", "UTC"),
        "ts_max": pa.timestamp("us", "UTC"),
    }
)


@takes(SparkConversionOptions)
def pcap_to_parquet(
    spark: SparkSession,
    src: str | Iterable[str],
    dst: str,
    *,
    table: str = "messages",
    **options: Unpack[SparkConversionOptions],
) -> DataFrame:
    """Write a table of the contents of captures or streams as Parquet files.

    The workers read and write the files themselves, on storage that all of them share. Each part of a
    recording becomes one file, or several if it is very large; small recordings share one. When all files are
    complete, they are moved to their folder, and an empty file ``_SUCCESS`` is written beside them. Otherwise
    nothing is left.

    Args:
        spark: the session, of Spark Connect as well.
        src: files, folders and patterns, or one of them, as for ``format("amqp")``.
        dst: the folder to write.
        table: as for `amqpcodec.arrow.read_capture`.
        options: those of `SparkConversionOptions`.

    Returns:
        A row for each file written: `path`, `rows`, `octets`, and its first and last time, `ts_min` and
        `ts_max`, null if that column is not among those written.

    Raises:
        TypeError, ValueError: an argument or option that cannot be, such as a path with a secret.
        pyspark.errors.PySparkException: a worker could not read or write; the reason is in its text.
    """
    checked = select(CaptureOptions, options)
    if checked["columns"] is not None:
        checked["columns"] = without_recording(checked["columns"])
    arrow.read_capture((), table, **checked)  # raise now, not in a job
    paths = list(map(without_secret, [src] if isinstance(src, str) else src))
    without_secret(dst)
    given = select(SparkReadOptions, options)
    given["min_partitions"] = options["min_partitions"] or parallelism(spark)
    given |= {"table": table, "paths": paths}
    reading = cast(SparkReadOptions, resolve(SparkReadOptions, given))
    job = tasks.Job(dst, options["save"], uuid4().hex, reading, options["compression"])
    return _converted(spark, job)


def _converted(spark: SparkSession, job: tasks.Job) -> DataFrame:
    do = partial(each, spark, job)
    with removed_on_failure(spark, job):
        begun: tasks.Begun = do(tasks.begin, [None])[0]
        recordings = begun.recordings
        wanted = [
            place
            for place in places(recordings)
            if place.part.kind != "bad" or job.options["table"] == "errors"
        ] or [Place(0, 0, Part("capture", ()))]  # a file that has the columns
        works = together(wanted, attrgetter("size"), job.options)
        # First parts first: those behind them then mostly find the state with which they begin.
        by_position = sorted(enumerate(works), key=lambda each: each[1][0].at)
        written: list[tasks.PartFile] = sorted(do(tasks.convert, by_position), key=attrgetter("path"))
        do(commit, [[(file.staged, file.path) for file in written]])
    warn_of_files(recordings, job.options["paths"], 5)
    for text in begun.warnings:
        warnings.warn(text, UnstitchedWarning, stacklevel=4)
    _warn_of_nothing(job, recordings, written)
    columns = list(zip(*written, strict=True)) or [()] * len(tasks.PartFile._fields)
    found = dict(zip(tasks.PartFile._fields, columns, strict=True))
    arrays = [pa.array(found[field.name], field.type) for field in STATISTICS]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=STATISTICS))


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks a session does side by side."""
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none; there, Spark divides numbers so
    if context is not None:
        return int(context.defaultParallelism)
    divided = spark.range(_NUMBERS).select(spark_partition_id().alias("partition"))
    return divided.distinct().count()


def _warn_of_nothing(job: tasks.Job, recordings: list[Recording], written: list[tasks.PartFile]) -> None:
    """Warn if captures had nothing of what was asked for; a table of errors may well be empty."""
    captures = any(part.kind == "capture" for recording in recordings for part in recording)
    rows = sum(file.rows for file in written)
    if captures and not rows and job.options["table"] != "errors" and job.options["mode"] != "drop":
        hint = next(filter(None, (file.hint for file in written)), "")
        warnings.warn(nothing_found(job.options, hint), NothingFoundWarning, stacklevel=5)
