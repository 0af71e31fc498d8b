"""The steps of a conversion, as workers do them: plan, follow, convert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from amqpcodec.arrow.parquetfile import parquet_writer

from .files import Place
from .landing import Landing
from .options import ReadOptions
from .planning import Part, Recording, plan
from .reading import batches, check_build, states
from .schemas import arrow_schema, renamed

_GROUP_ROWS, _GROUP_OCTETS = 131_072, 24 << 20
_FILE_GROUPS = 64
_TIMES = {"ts_min": ("ts", "ts_first"), "ts_max": ("ts", "ts_last")}


@dataclass(frozen=True)
class Job(Landing):
    """A conversion.

    Attributes:
        options: what to read, and how.
        compression: of the files.
    """

    options: ReadOptions
    compression: str

    def state(self, recording: int, part: int) -> str:
        """The file with the state at the beginning of a part."""
        return f"{self.staging}/state-{recording}-{part}"


class Written(NamedTuple):
    """A file that a task has written.

    Attributes:
        staged: where it is until it is committed.
        path: where it will be.
        rows, octets: how many it has.
        ts_min, ts_max: microseconds of its first and last time; None without.
    """

    staged: str
    path: str
    rows: int
    octets: int
    ts_min: int | None
    ts_max: int | None


def begin(job: Job, argument: None) -> list[Recording]:
    """Gives what is to be read, and makes the folder for what will be written."""
    check_build(job.options.impl)
    _schema(job.options)  # complain about columns now
    recordings = plan(job.options)
    job.prepare(piece.path for recording in recordings for part in recording for piece in part.pieces)
    return recordings


def follow(job: Job, argument: tuple[int, Recording]) -> tuple[()]:
    """Puts the states of a recording into files, each at once: an attempt after another writes the same."""
    at, recording = argument
    for part, state in enumerate(states(recording[:-1], job.options), 1):
        place = Place(job.state(at, part))
        attempt = f"{place.inner}-{uuid4().hex}"
        with place.system.open_output_stream(attempt) as file:
            file.write(state)
        place.system.move(attempt, place.inner)
    return ()


def convert(job: Job, argument: tuple[int, tuple[int, int, Part]]) -> list[Written]:
    """Writes the rows of a part to files whose names no other attempt has."""
    number, (recording, at, part) = argument
    if at:
        place = Place(job.state(recording, at))
        with place.system.open_input_file(place.inner) as file:
            part = replace(part, state=file.read())
    schema = _schema(job.options)
    with closing(_Files(job, number, schema)) as files:
        for group in _groups(batches(part, _names(job.options), job.options), schema):
            files.write(group)
            del group  # before the next one is made
    return files.written


class _Files:
    """The files of a part.

    What Parquet tells of groups at the end of a file is in memory until then, so a part with very many of
    them has several files.

    Attributes:
        written: those that are closed.
    """

    def __init__(self, job: Job, number: int, schema: pa.Schema) -> None:
        self._job, self._number, self._schema = job, number, schema
        self._file: _File | None = None
        self.written: list[Written] = []

    def write(self, group: pa.Table) -> None:
        """Add a group; one without rows only makes sure that there is a file."""
        if not group.num_rows and (self._file or self.written):
            return
        if self._file is None:
            name = f"part-{self._number:05d}-{len(self.written):03d}-{self._job.name[:12]}"
            staged, path = self._job.staged(f"{name}.{self._job.compression}.parquet")
            self._file = _File(staged, path, self._schema, self._job.compression)
        self._file.write(group)
        if self._file.groups == _FILE_GROUPS:
            self.close()

    def close(self) -> None:
        """End the file that is open."""
        if self._file is not None:
            self.written.append(self._file.close())
            self._file = None


class _File:
    """A file that is written, how many groups it has, its rows, and their first and last time."""

    def __init__(self, staged: str, path: str, schema: pa.Schema, compression: str) -> None:
        self._names = staged, path
        place = Place(staged)
        self._stream = place.system.open_output_stream(place.inner)
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

    def close(self) -> Written:
        """End the file; what is told of it."""
        with self._stream:
            self._writer.close()
            octets = self._stream.tell()
        staged, path = self._names
        return Written(staged, path, self._rows, octets, **self._times)

    def _see(self, which: str, time: int | None) -> None:
        known = self._times[which]
        if time is not None and (known is None or (time < known) == (which == "ts_min")):
            self._times[which] = time


def _groups(found: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches put together to groups of rows; one at least, so that the file has its columns."""
    waiting: list[pa.RecordBatch] = []
    rows = octets = 0
    for batch in found:
        waiting.append(_copied(pa.RecordBatch.from_arrays(batch.columns, schema=schema)))
        rows, octets = rows + batch.num_rows, octets + batch.nbytes
        if rows >= _GROUP_ROWS or octets >= _GROUP_OCTETS:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, octets = [], 0, 0
    yield pa.Table.from_batches(waiting, schema)


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in Arrow's own memory, which has reserved more address space than it uses, once anything is.

    What a batch comes in is used for the next one, so a worker with little address space can hold a group.
    """
    return pa.concat_batches([batch.slice(0, 0), batch])


def _names(options: ReadOptions) -> list[str]:
    """The columns to read, as the library calls them."""
    columns = options.columns
    return list(columns or arrow_schema(options.table, options.dialect).names)


def _schema(options: ReadOptions) -> pa.Schema:
    return renamed(arrow_schema(options.table, options.dialect, _names(options)), options.corrupt_column)
