"""Readers of files, as Spark calls them: rows in the workers, and the plan of a batch query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..options import SparkReadOptions
from . import progress
from .notices import warn_of_files, warning_if_empty
from .packaging import Packaged
from .planning import Place, Recording, Task, places, plan, tasks_of
from .reading import batches
from .schemas import project, without_recording
from .states import States, scratch, touch


class RowReader(Packaged):
    """Reads rows in the workers.

    Args:
        options: what to read, and how.
        schema: the columns wanted.

    Attributes:
        name: of the plan that tasks are from.
        divided: its recordings of several parts, by their numbers.

    Raises:
        ValueError: the table does not have these columns.
    """

    def __init__(self, options: SparkReadOptions, schema: StructType) -> None:
        self.options = options
        self.columns, self.schema = project(
            schema, options["table"], options["dialect"], options["column_name_of_corrupt_record"]
        )
        # What is not asked for need not be followed from part to part either.
        self.options = options | {"columns": tuple(without_recording(self.columns))}
        self.name = ""
        self.divided: dict[int, Recording] = {}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        # Spark asks for one partition even if there is none.
        if not isinstance(partition, Task):
            return
        options = self.options
        folder = scratch(self.name) if self.divided else None
        states = States(folder, options, self._parts_of)
        for place in partition.places:
            part = states.begun(place)
            on_state = partial(states.leave, place) if self.divided else None
            hints: list[str] = []
            found = batches(part, self.columns, options, on_state=on_state, on_hint=hints.append)
            for batch in warning_if_empty(part, found, options, hints):
                if folder is not None:
                    touch(folder)
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    def _parts_of(self, place: Place) -> Recording:
        return self.divided[place.recording]


class AmqpReader(RowReader, DataSourceReader):
    """Plans on the driver, reads in the workers.

    Planning looks at the first and last octets of files. A task finds the state before its part by itself.
    """

    def __init__(self, options: SparkReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._tasks: list[InputPartition] | None = None
        self._failed: Exception | None = None

    def partitions(self) -> list[InputPartition]:
        """Return the tasks: each reads a part of a recording, or several small ones.

        Raises:
            Exception: as `plan`. Spark asks twice, and a store that does not answer is waited for once.
        """
        if self._failed is not None:
            raise self._failed
        try:
            return self._planned()
        except Exception as error:
            self._failed = error
            raise

    def _planned(self) -> list[InputPartition]:
        if self._tasks is None:
            begin = monotonic()
            recordings = plan(self.options)
            warn_of_files(recordings, self.options["paths"])
            self.name = uuid4().hex
            self.divided = {at: each for at, each in enumerate(recordings) if len(each) > 1}
            self._tasks = tasks_of(places(recordings), self.options)
            if (seconds := monotonic() - begin) >= progress.LONG:
                count = f"{len(recordings):,} recordings, {len(self._tasks):,} tasks"
                progress.say(f"planned in {seconds:.1f} s: {count}")
        return self._tasks

    def sent(self) -> dict[str, Any]:
        """See `Packaged`: workers need to know what is before a part, and Spark asks for tasks only later."""
        with suppress(Exception):  # `partitions` raises it
            self.partitions()
        return super().sent() | {"_tasks": None, "_failed": None}
