"""The steps of a conversion, as workers do them: plan, convert."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from amqpcodec.arrow.parquetfile import parquet_writer

from ..options import SparkReadOptions
from .committer import Committer
from .files import Location
from .planning import FileRange, Part, Place, Recording, plan
from .reading import batches, check_build
from .schemas import arrow_schema, renamed
from .states import States, load, put

_GROUP_ROWS, _GROUP_BYTES = 131_072, 24 << 20
_FILE_GROUPS = 64
_LIMITED = "PYSPARK_EXECUTOR_MEMORY_MB"  # in the environment of workers with `spark.executor.pyspark.memory`
_TIMES = {"ts_min": ("ts", "ts_first"), "ts_max": ("ts", "ts_last")}


@dataclass(frozen=True)
class Job(Committer):
    """A conversion.

    Attributes:
        options: what to read, and how.
        compression: of the files.
    """

    options: SparkReadOptions
    compression: str

    def parts(self, recording: int) -> str:
        """The file with the ranges of each part of a recording that has several."""
        return f"{self.staging}/parts-{recording}"


class PartFile(NamedTuple):
    """A file that a task has written.

    Attributes:
        staged: where it is until it is committed.
        path: where it will be.
        rows, octets: how many it has.
        ts_min, ts_max: microseconds of its first and last time; None without.
        hint: where else to look for AMQP.
    """

    staged: str
    path: str
    rows: int
    octets: int
    ts_min: int | None
    ts_max: int | None
    hint: str = ""


class Begun(NamedTuple):
    """The facts known when a conversion begins.

    Attributes:
        recordings: what is to be read.
        warnings: for the one who asked for it, whom a worker cannot warn.
    """

    recordings: list[Recording]
    warnings: list[str]


def begin(job: Job, argument: None) -> list[Begun]:
    """Gives what is to be read, and makes the folder for what will be written."""
    check_build(job.options["impl"])
    job.is_begun()  # before the files are looked at, which may take long
    warnings: list[str] = []
    recordings = plan(job.options, warnings.append)
    job.prepare(each.path for recording in recordings for part in recording for each in part.ranges)
    for at, recording in enumerate(recordings):
        if len(recording) > 1:
            put(job.parts(at), json.dumps([_ranges(part) for part in recording]).encode())
    return [Begun(recordings, warnings)]


def _ranges(part: Part) -> list[list[object]]:
    return [[each.path, each.end] for each in part.ranges]


def convert(job: Job, argument: tuple[int, Sequence[Place]]) -> list[PartFile]:
    """Write the rows of some parts to files whose names no other attempt has."""
    number, places = argument
    large = {}
    if _LIMITED not in os.environ:
        # A batch for a group, which need not be copied. Small ones do with less room to grow in.
        large = {"batch_rows": _GROUP_ROWS, "_batch_bytes": _GROUP_BYTES}
    states = States(job.staging, job.options, partial(_parts, job))
    hints: list[str] = []
    with closing(_Files(job, number)) as files:
        for place in places:
            on_state = partial(states.leave, place)
            part, names = states.begun(place), _names(job.options)
            for batch in batches(part, names, job.options, on_state=on_state, on_hint=hints.append, **large):
                files.add(batch)
                del batch  # before the next one is made
        files.finish()
    return [file._replace(hint=next(filter(None, hints), "")) for file in files.written]


def _parts(job: Job, place: Place) -> Recording:
    """Return the parts of a recording as they were planned, without sizes."""
    planned = json.loads(load(job.parts(place.recording)))
    if planned[place.at] != _ranges(place.part):
        raise RuntimeError("the job was planned twice, and files came or went between; run it again")
    return tuple(Part("capture", tuple(FileRange(*each) for each in ranges)) for ranges in planned)


class _Files:
    """The files of a part, one at least, in groups of rows: large batches as they are, small ones together.

    What Parquet writes about groups at the end of a file is in memory until then, so a part with very many of
    them has several files.

    Attributes:
        written: those that are closed.
    """

    def __init__(self, job: Job, number: int) -> None:
        self._job, self._number, self._schema = job, number, _schema(job.options)
        self._file: _File | None = None
        self._few: list[pa.RecordBatch] = []  # batches that are to be one group
        self._rows = self._octets = 0  # in them
        self.written: list[PartFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; few of them wait for more."""
        rows = pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        octets = rows.nbytes
        if rows.num_rows >= _GROUP_ROWS or octets >= _GROUP_BYTES // 2:
            self._write_few()
            self._write([rows])
        elif rows.num_rows:
            # In Arrow's own memory: what a batch comes in is used for the next one, unless it is kept.
            self._few.append(pa.concat_batches([rows.slice(0, 0), rows]))
            self._rows += rows.num_rows
            self._octets += octets
            if self._rows >= _GROUP_ROWS or self._octets >= _GROUP_BYTES:
                self._write_few()

    def finish(self) -> None:
        """Write what waits; without any rows, a file that has its columns."""
        self._write_few()
        if not (self._file or self.written):
            self._write([])

    def close(self) -> None:
        """End the file that is open."""
        if self._file is not None:
            self.written.append(self._file.close())
            self._file = None

    def _write_few(self) -> None:
        if self._few:
            self._write(self._few)
            self._few, self._rows, self._octets = [], 0, 0

    def _write(self, batches: list[pa.RecordBatch]) -> None:
        if self._file is None:
            name = f"part-{self._number:05d}-{len(self.written):03d}-{self._job.name[:12]}"
            staged, path = self._job.staged(f"{name}.{self._job.compression}.parquet")
            self._file = _File(staged, path, self._schema, self._job.compression)
        self._file.write(pa.Table.from_batches(batches, self._schema))
        if self._file.groups == _FILE_GROUPS:
            self.close()


class _File:
    """A file that is written, how many groups it has, its rows, and their first and last time."""

    def __init__(self, staged: str, path: str, schema: pa.Schema, compression: str) -> None:
        self._names = staged, path
        location = Location(staged)
        self._stream = location.system.open_output_stream(location.inner)
        self._writer = parquet_writer(self._stream, schema, compression)
        self.groups = self._rows = 0
        self._times: dict[str, int | None] = dict.fromkeys(_TIMES)

    def write(self, group: pa.Table) -> None:
        """Add a group of rows."""
        self._writer.write_table(group, max(group.num_rows, 1))
        self.groups += 1
        self._rows += group.num_rows
        for which, columns in _TIMES.items():
            for column in set(columns) & set(group.schema.names):
                self._see(which, pc.min_max(group.column(column))[which.removeprefix("ts_")].value)

    def close(self) -> PartFile:
        """End the file; returns it as it is reported to the driver."""
        with self._stream:
            self._writer.close()
            octets = self._stream.tell()
        staged, path = self._names
        return PartFile(staged, path, self._rows, octets, self._times["ts_min"], self._times["ts_max"])

    def _see(self, which: str, time: int | None) -> None:
        known = self._times[which]
        if time is not None and (known is None or (time < known) == (which == "ts_min")):
            self._times[which] = time


def _names(options: SparkReadOptions) -> list[str]:
    """The columns to read, as the library calls them."""
    columns = options["columns"]
    return list(columns or arrow_schema(options["table"], options["dialect"]).names)


def _schema(options: SparkReadOptions) -> pa.Schema:
    schema = arrow_schema(options["table"], options["dialect"], _names(options))
    return renamed(schema, options["column_name_of_corrupt_record"])
