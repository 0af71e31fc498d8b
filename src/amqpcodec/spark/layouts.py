"""Messages to files, in the layouts that the data source writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from .. import DIALECTS, arrow
from ..arrow.decoding import DIALECT
from ..arrow.encoding import FRAME_MAX
from ..arrow.parquetfile import parquet_writer
from .files import INDEX_ENDING, Place
from .landing import Landing
from .options import boolean, one_of, size, typed, words

OCTETS = "octets"  # the column with the frames of a message


@dataclass(frozen=True)
class WriteOptions:
    """What is to be written, and how; docs/spark.md says what each option means."""

    path: str = ""
    layout: str = "stream"
    dialect: str = DIALECT
    frame_max: int = FRAME_MAX
    skip_incomplete: bool = False
    keys: tuple[str, ...] = ()
    impl: str = "c"

    def encoding(self) -> dict[str, Any]:
        """The arguments that the writers of `amqpcodec.arrow` take."""
        return {
            "dialect": self.dialect,
            "frame_max": self.frame_max,
            "skip_incomplete": self.skip_incomplete,
        }


class Written(NamedTuple):
    """A file that a task has written.

    Attributes:
        staged: where it is until it is committed.
        path: where it will be.
        messages: how many it has, or tells of.
        size: its octets.
    """

    staged: str
    path: str
    messages: int
    size: int


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of writing.

    Raises:
        ValueError: no path; an option that is not known, or whose text is no value of it.
    """
    made = typed(options, _WRITING, WriteOptions)
    if not made.path:
        raise ValueError("no path: say where to save")
    if made.keys and made.layout != "rows":
        raise ValueError(f"option 'keys' is for the layout rows, not {made.layout}")
    if len(set(made.keys)) < len(made.keys):
        raise ValueError("option 'keys' names a column twice")
    return made


def write_part(
    landing: Landing, name: str, batches: Iterable[pa.RecordBatch], options: WriteOptions
) -> list[Written]:
    """Write messages to files that are not committed yet.

    Args:
        landing: the folder they are for.
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
    return _LAYOUTS[options.layout](landing, name, chain([first], given), options)


def _stream(
    landing: Landing, name: str, batches: Iterator[pa.RecordBatch], options: WriteOptions
) -> list[Written]:
    """A file of frames and its index."""
    with _opened(landing, f"{name}.amqp") as file, _opened(landing, f"{name}.amqp{INDEX_ENDING}") as index:
        with arrow.StreamWriter(file.file, index.file, **options.encoding()) as writer:
            messages = sum(map(writer.write, batches))
        return [file.written(messages), index.written(messages)]


def _capture(
    landing: Landing, name: str, batches: Iterator[pa.RecordBatch], options: WriteOptions
) -> list[Written]:
    """A capture with the connections of the messages."""
    with _opened(landing, f"{name}.pcap") as file:
        with arrow.CaptureWriter(file.file, **options.encoding()) as writer:
            messages = sum(map(writer.write, batches))
        return [file.written(messages)]


def _rows(
    landing: Landing, name: str, batches: Iterator[pa.RecordBatch], options: WriteOptions
) -> list[Written]:
    """A Parquet file with the frames of each message, and its keys before them."""
    messages, writer = 0, None
    with _opened(landing, f"{name}.parquet") as file:
        for batch in batches:
            # With null for each message that is left out.
            keys, octets = batch.select(options.keys), arrow.encode_values(batch, **options.encoding())
            table = pa.Table.from_batches([keys]).append_column(OCTETS, octets)
            if options.skip_incomplete:
                table = table.filter(octets.is_valid())
            writer = writer or parquet_writer(file.file, table.schema, "zstd")
            writer.write_table(table)
            messages += table.num_rows
        if writer is not None:
            writer.close()
        return [file.written(messages)]


_LAYOUTS: dict[str, Callable[..., list[Written]]] = {
    "stream": _stream,
    "pcap": _capture,
    "rows": _rows,
}


class _Staged:
    """A file that is written."""

    def __init__(self, landing: Landing, name: str) -> None:
        self._names = landing.staged(name)
        place = Place(self._names[0])
        self.file = place.system.open_output_stream(place.inner)

    def written(self, messages: int) -> Written:
        """What is told of the file."""
        return Written(*self._names, messages, self.file.tell())


@contextmanager
def _opened(landing: Landing, name: str) -> Iterator[_Staged]:
    staged = _Staged(landing, name)
    try:
        yield staged
    finally:
        staged.file.close()


_WRITING: dict[str, tuple[str, Callable[[str], Any]]] = {
    "path": ("path", str),
    "layout": ("layout", one_of(*_LAYOUTS)),
    "dialect": ("dialect", one_of(*DIALECTS)),
    "frameMax": ("frame_max", size),
    "skipIncomplete": ("skip_incomplete", boolean),
    "keys": ("keys", words),
    "impl": ("impl", one_of("c", "py")),
}
