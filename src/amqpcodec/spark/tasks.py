"""The steps of a conversion, as workers do them: plan, follow, convert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from .files import Place
from .landing import Landing
from .options import ReadOptions
from .planning import Part, Recording, plan
from .reading import batches, check_build, states
from .schemas import arrow_schema, renamed

_GROUP_ROWS, _GROUP_OCTETS = 131_072, 24 << 20
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
    """Writes the rows of a part to a file whose name no other attempt has."""
    number, (recording, at, part) = argument
    if at:
        place = Place(job.state(recording, at))
        with place.system.open_input_file(place.inner) as file:
            part = replace(part, state=file.read())
    staged, path = job.staged(f"part-{number:05d}-{job.name[:12]}.{job.compression}.parquet")
    place = Place(staged)
    statistics = _Statistics()
    schema = _schema(job.options)
    with place.system.open_output_stream(place.inner) as file:
        with parquet.ParquetWriter(file, schema, compression=job.compression) as writer:
            for group in _groups(statistics.watched(batches(part, _names(job.options), job.options)), schema):
                writer.write_table(group, max(group.num_rows, 1))
        octets = file.tell()
    return [Written(staged, path, statistics.rows, octets, **statistics.times)]


class _Statistics:
    """Counts rows as they pass, and their first and last time."""

    def __init__(self) -> None:
        self.rows = 0
        self.times: dict[str, int | None] = dict.fromkeys(_TIMES)

    def watched(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        for batch in found:
            self.rows += batch.num_rows
            for which, columns in _TIMES.items():
                for column in set(columns) & set(batch.schema.names):
                    self._see(which, pc.min_max(batch.column(column))[which.removeprefix("ts_")].value)
            yield batch

    def _see(self, which: str, time: int | None) -> None:
        known = self.times[which]
        if time is not None and (known is None or (time < known) == (which == "ts_min")):
            self.times[which] = time


def _groups(found: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Batches put together to groups of rows; one at least, so that the file has its columns."""
    waiting: list[pa.RecordBatch] = []
    rows = octets = 0
    for batch in found:
        waiting.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        rows, octets = rows + batch.num_rows, octets + batch.nbytes
        if rows >= _GROUP_ROWS or octets >= _GROUP_OCTETS:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, octets = [], 0, 0
    yield pa.Table.from_batches(waiting, schema)


def _names(options: ReadOptions) -> list[str]:
    """The columns to read, as the library calls them."""
    columns = options.columns
    return list(columns or arrow_schema(options.table, options.dialect).names)


def _schema(options: ReadOptions) -> pa.Schema:
    return renamed(arrow_schema(options.table, options.dialect, _names(options)), options.corrupt_column)
