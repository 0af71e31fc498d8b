"""Work in steps, each a job of Spark, so that nothing depends on what the caller's machine can reach."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from .committer import Committer
from .packaging import unpacker
from .schemas import struct_type

# Of what the whole work has in common and an argument; what it gives can be pickled.
Step = Callable[[Any, Any], Iterable[Any]]
_RESULT = pa.schema({"result": pa.binary()})


def each(spark: SparkSession, job: Any, step: Step, arguments: Sequence[Any]) -> list[Any]:
    """Call a step for each argument in a task of its own; return the results in order."""
    opened = unpacker()
    # A worker gets the arguments of all tasks, but makes objects only of its own.
    common = pickle.dumps((_worker, (step, job)))
    pickles = [pickle.dumps(argument) for argument in arguments]

    def task(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = opened(common)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from work(pickles[number])

    count = len(arguments)
    if not count:
        return []
    done = spark.range(0, count, 1, count).mapInArrow(task, struct_type(_RESULT)).toArrow()
    return [pickle.loads(octets) for octets in done["result"].to_pylist()]


@contextmanager
def removed_on_failure(spark: SparkSession, job: Committer) -> Iterator[None]:
    """Has what the block began to write removed if it fails."""
    try:
        yield
    except BaseException as error:
        try:
            each(spark, job, abort, [None])
        except Exception as second:
            error.add_note(f"what was begun may still be in {job.staging!r}: {second}")
        raise


def commit(job: Committer, files: list[tuple[str, str]]) -> tuple[()]:
    """The step that moves files to where they belong."""
    job.commit(files)
    return ()


def abort(job: Committer, argument: None) -> tuple[()]:
    """The step that removes what was written."""
    job.abort()
    return ()


def _worker(step: Step, job: Any) -> Callable[[bytes], Iterator[pa.RecordBatch]]:
    """Return a function that does a step for a pickled argument, and pickles its results."""
    return partial(_work, step, job)


def _work(step: Step, job: Any, argument: bytes) -> Iterator[pa.RecordBatch]:
    for result in step(job, pickle.loads(argument)):
        octets = pickle.dumps(result)
        # By its memory: for an object of Python, Arrow loads pandas, which takes more memory than the rest.
        buffers = [None, pa.py_buffer(struct.pack("=ii", 0, len(octets))), pa.py_buffer(octets)]
        yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.binary(), 1, buffers)], schema=_RESULT)
