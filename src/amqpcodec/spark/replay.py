"""Messages in Parquet files to files of frames, inside the workers: a corpus to replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from io import FileIO
from typing import NamedTuple, Unpack, cast
from uuid import uuid4

import pyarrow as pa
from pyarrow import ArrowInvalid, parquet
from pyspark.sql import DataFrame, SparkSession

from .._columns.schemas import LEAD, table_columns
from .._options import resolve, select, takes
from ..arrow.encoding import check_names
from ..errors import AmqpError, EncodeError
from ..options import SparkEncodingOptions, SparkWriteOptions
from .committer import Committer
from .files import check_regular, listed, open_anywhere, without_secret
from .outputs import OutputFile, write_part
from .reading import check_build
from .steps import commit, each, removed_on_failure

_GROUP_OCTETS = 512 << 20  # of a file, uncompressed, for one task
_BATCH_ROWS = 10_000
# Of a column of a file on this machine, read at once. A whole column of a group would be new memory each
# time, which the system has to clear. Elsewhere, a read is a request.
_READ_OCTETS = 256 << 10
# What says only where a message came from, or what is in others.
_UNREAD = frozenset((*(column.name for column in LEAD if column.name != "ts_ns"), "frames", "ts_last"))


@takes(SparkEncodingOptions)
def parquet_to_stream(
    spark: SparkSession, src: str | Iterable[str], dst: str, **options: Unpack[SparkEncodingOptions]
) -> DataFrame:
    """Write the messages in Parquet files as streams of frames with an index, in the order of their rows.

    The workers read and write the files themselves, on storage that all of them share. With
    ``write.format("amqp")`` rows pass through the JVM, which takes longer. Each file becomes a stream, or
    several if it is large, split between row groups. They are committed as by `pcap_to_parquet`.

    Args:
        spark: the session, of Spark Connect as well.
        src: Parquet files with columns of the table `messages`, folders of them and patterns. Tables
            that are partitioned by one of these columns are refused: the files do not have it.
        dst: the folder to write.
        options: those of `SparkEncodingOptions`.

    Returns:
        A row for each file written: its `path`, the number of `messages` in it, which is 0 for an index, and
        its `size` in bytes.

    Raises:
        TypeError, ValueError: an option that cannot be; a path with a secret.
        pyspark.errors.PySparkException: a worker could not read or write, or a column looks misspelt; the
            reason is in its text.
    """
    paths = tuple(map(without_secret, (src,) if isinstance(src, str) else src))
    writing = resolve(SparkWriteOptions, select(SparkWriteOptions, options) | {"path": without_secret(dst)})
    job = _Job(dst, options["save"], uuid4().hex, paths, cast(SparkWriteOptions, writing))
    do = partial(each, spark, job)
    with removed_on_failure(spark, job):
        parts: list[_RowGroups] = do(_plan, [None])
        written: list[OutputFile] = do(_write, list(enumerate(parts)))
        do(commit, [[(file.staged, file.path) for file in written]])
    return spark.createDataFrame([file[1:] for file in written], "path string, messages long, size long")


@dataclass(frozen=True)
class _Job(Committer):
    """A replay: files to read, and the stream to write."""

    paths: tuple[str, ...]
    options: SparkWriteOptions


class _RowGroups(NamedTuple):
    """Row groups of a file."""

    path: str
    groups: range


def _plan(job: _Job, argument: None) -> Iterator[_RowGroups]:
    """The row groups that each task reads."""
    check_build(job.options["impl"])
    found = listed(job.paths, recursive=True, name_pattern=None)
    files = [path for path, size in found if check_regular(path, size)]
    wanted = _wanted(job.options)
    for path in files:
        away = wanted & {folder.partition("=")[0] for folder in path.split("/")[:-1] if "=" in folder}
        if away:
            raise ValueError(
                f"{path!r} is without {', '.join(sorted(away))}, which stands in the name of its folder: "
                'read such tables by spark.read.parquet, and write them by format("amqp")'
            )
    job.prepare(files)
    for path in files:
        with closing(open_anywhere(path)) as file:
            try:
                opened = parquet.ParquetFile(file)
            except ArrowInvalid as error:
                raise ValueError(f"{path!r} is no Parquet file: {error}") from error
            found = opened.metadata
            _check_names(path, opened.schema_arrow, job.options)
        first = octets = 0
        for group in range(found.num_row_groups):
            octets += found.row_group(group).total_byte_size
            if octets >= _GROUP_OCTETS or group + 1 == found.num_row_groups:
                yield _RowGroups(path, range(first, group + 1))
                first, octets = group + 1, 0


def _write(job: _Job, argument: tuple[int, _RowGroups]) -> list[OutputFile]:
    """Writes the messages of a part to a stream."""
    number, part = argument
    with closing(open_anywhere(part.path)) as file:
        found = parquet.ParquetFile(file, buffer_size=_READ_OCTETS if isinstance(file, FileIO) else 0)
        columns = _with_values(found.metadata, part.groups, _wanted(job.options))
        batches = found.iter_batches(_BATCH_ROWS, row_groups=part.groups, columns=columns)
        try:
            return write_part(job, f"part-{number:05d}-{job.name[:12]}", batches, job.options)
        except AmqpError as error:
            error.add_note(f"in {part.path!r}")
            raise


def _with_values(found: parquet.FileMetaData, groups: range, wanted: set[str]) -> list[str]:
    """The columns of row groups to read: of those wanted, what is not null throughout, by its path.

    A message has few of the properties, and reading the nulls of the others takes as long as their values. A
    column of another type, all of whose values are null, is therefore accepted.
    """
    paths = [found.schema.column(index).path for index in range(found.num_columns)]
    known = [index for index, path in enumerate(paths) if path.partition(".")[0] in wanted]
    chosen = [index for index in known if not _is_null(found, groups, index)]
    return [paths[index] for index in chosen or known]  # rows of a batch without columns are not counted


def _is_null(found: parquet.FileMetaData, groups: range, index: int) -> bool:
    """Return whether a column has no value in any of some row groups, as far as the file says so."""
    if found.schema.column(index).max_repetition_level:
        return False  # both columns of a map are read, or none
    chunks = (found.row_group(group).column(index) for group in groups)
    return all(
        chunk.is_stats_set
        and chunk.statistics.has_null_count
        and chunk.statistics.null_count == chunk.num_values
        for chunk in chunks
    )


def _check_names(path: str, schema: pa.Schema, options: SparkWriteOptions) -> None:
    """Raise `EncodeError` where a column looks misspelt, which would not be read."""
    try:
        check_names(schema, table_columns("messages", (options["dialect"],)))
    except EncodeError as error:
        error.add_note(f"in {path!r}")
        raise


def _wanted(options: SparkWriteOptions) -> set[str]:
    """The columns to read."""
    return {column.name for column in table_columns("messages", (options["dialect"],))} - _UNREAD
