"""Messages to files: the outputs of the data source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from .. import arrow
from .._options import select
from ..arrow.parquetfile import parquet_writer
from ..options import EncodingOptions, SparkWriteOptions
from .committer import Committer
from .files import INDEX_ENDING, Location

OCTETS = "octets"  # the column with the frames of a message


class OutputFile(NamedTuple):
    """A file that a task has written.

    Attributes:
        staged: where it is until it is committed.
        path: where it will be.
        messages: how many are in it; 0 in an index.
        size: its octets.
    """

    staged: str
    path: str
    messages: int
    size: int


def write_part(
    committer: Committer, name: str, batches: Iterable[pa.RecordBatch], options: SparkWriteOptions
) -> list[OutputFile]:
    """Write messages to files that are not committed yet.

    Args:
        committer: the folder they are for.
        name: of the file, but for its ending.
        batches: the messages; without a single one, no file is written.
        options: how to write.

    Returns:
        The files.

    Raises:
        EncodeError: as `amqpcodec.arrow.encode_messages`.
    """
    given = (batch for batch in batches if batch.num_rows)
    first = next(given, None)
    if first is None:
        return []
    return _OUTPUTS[options["output"]](committer, name, chain([first], given), options)


def _stream(
    committer: Committer, name: str, batches: Iterator[pa.RecordBatch], options: SparkWriteOptions
) -> list[OutputFile]:
    """A file of frames and its index."""
    with (
        _opened(committer, f"{name}.amqp") as file,
        _opened(committer, f"{name}.amqp{INDEX_ENDING}") as index,
    ):
        with arrow.StreamWriter(file.file, index.file, **select(EncodingOptions, options)) as writer:
            messages = sum(map(writer.write, batches))
        return [file.written(messages), index.written(0)]


def _capture(
    committer: Committer, name: str, batches: Iterator[pa.RecordBatch], options: SparkWriteOptions
) -> list[OutputFile]:
    """A capture with the connections of the messages."""
    with _opened(committer, f"{name}.pcap") as file:
        with arrow.CaptureWriter(file.file, **select(EncodingOptions, options)) as writer:
            messages = sum(map(writer.write, batches))
        return [file.written(messages)]


def _rows(
    committer: Committer, name: str, batches: Iterator[pa.RecordBatch], options: SparkWriteOptions
) -> list[OutputFile]:
    """A Parquet file with the frames of each message, and its keys before them."""
    messages, writer = 0, None
    with _opened(committer, f"{name}.parquet") as file:
        for batch in batches:
            # With null for each message that is left out.
            keys, octets = (
                batch.select(list(options["keys"])),
                arrow.encode_values(batch, **select(EncodingOptions, options)),
            )
            table = pa.Table.from_batches([keys]).append_column(OCTETS, octets)
            if options["skip_incomplete"]:
                table = table.filter(octets.is_valid())
            writer = writer or parquet_writer(file.file, table.schema, "zstd")
            writer.write_table(table)
            messages += table.num_rows
        if writer is not None:
            writer.close()
        return [file.written(messages)]


_OUTPUTS: dict[str, Callable[..., list[OutputFile]]] = {
    "stream": _stream,
    "capture": _capture,
    "rows": _rows,
}


class _Staged:
    """A file that is written."""

    def __init__(self, committer: Committer, name: str) -> None:
        self._names = committer.staged(name)
        location = Location(self._names[0])
        self.file = location.system.open_output_stream(location.inner)

    def written(self, messages: int) -> OutputFile:
        """The file as it is reported to the driver."""
        return OutputFile(*self._names, messages, self.file.tell())


@contextmanager
def _opened(committer: Committer, name: str) -> Iterator[_Staged]:
    staged = _Staged(committer, name)
    try:
        yield staged
    finally:
        staged.file.close()
