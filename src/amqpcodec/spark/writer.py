"""Messages written by ``format("amqp")``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..options import SparkWriteOptions
from . import outputs
from .committer import Committer
from .outputs import OCTETS, write_part
from .packaging import Packaged
from .reading import check_build


@dataclass(frozen=True)
class CommitMessage(WriterCommitMessage):
    """The files of a task."""

    files: list[outputs.OutputFile]


class AmqpWriter(Packaged, DataSourceArrowWriter):
    """Each task writes its messages to a file; the driver moves all of them to their folder.

    Args:
        options: what to write, and how.
        schema: the columns of the messages.
        overwrite: whether the files are to take the place of what is in the folder.

    Raises:
        ValueError: a key that is none of the columns, or has the name of the frames.
    """

    def __init__(self, options: SparkWriteOptions, schema: StructType, overwrite: bool) -> None:
        for key in options["keys"]:
            if key not in schema.names or key == OCTETS:
                raise ValueError(f"{key!r} cannot be a key; the columns are {', '.join(schema.names)}")
        self.options = options
        self.committer = Committer(options["path"], "overwrite" if overwrite else "append", uuid4().hex)
        self.committer.prepare()  # here, since a task given up too late must not make the folder again

    def write(self, iterator: Iterator[pa.RecordBatch]) -> CommitMessage:
        """Write the messages of a task."""
        check_build(self.options["impl"])
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        name = f"part-{number:05d}-{self.committer.name[:12]}"
        return CommitMessage(write_part(self.committer, name, iterator, self.options))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have written: the files are there now."""
        files = [file for each in messages if isinstance(each, CommitMessage) for file in each.files]
        self.committer.commit([(file.staged, file.path) for file in files])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task has failed: nothing is left."""
        self.committer.abort()
