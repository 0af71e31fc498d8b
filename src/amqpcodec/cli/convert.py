"""``amqpcodec convert``: a table of what is in captures and raw streams, as a Parquet or Arrow file."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import capture
from .._options import resolve
from ..errors import DecodeError
from ..options import (
    CaptureOptions,
    ConvertOptions,
    FileOptions,
    RotatedOptions,
    StreamOptions,
    TableOptions,
)
from . import EXIT_FAULTS, EXIT_OK, EXIT_UNUSABLE, inputs, output
from .options import add_options, given
from .progress import Watched, reading, size
from .replacing import ended_by_sigterm, replacing

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = {".parquet": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc"}
_IPC_COMPRESSIONS = ("zstd", "none")
_INCOMPLETE = "INCOMPLETE"
_KINDS = {
    "GAP": ("gap", "gaps"),
    "LOST": ("lost stretch", "lost stretches"),
    "FILE": ("fault of a file", "faults of files"),
    _INCOMPLETE: ("message not complete", "messages not complete"),
}


class _UnusableError(Exception):
    """Arguments, an input or the output that cannot be used; the text says which and why."""


def add_parser(subparsers: Any) -> None:
    """Describe the subcommand's arguments."""
    parser = subparsers.add_parser(
        "convert",
        help="write a table of what is in captures to a Parquet or Arrow file",
        description="Write a table of what is in captures (pcap, pcapng, also in gzip) and raw streams to a "
        "Parquet file, or to an Arrow file (.arrow, .ipc, .feather). An existing file is replaced once the "
        "new one is whole.",
        epilog="Exit code: 0 all was read; 1 bytes were missing or lost, or rows in error or incomplete; 2 "
        "unusable input, output or arguments, and nothing written.",
    )
    inputs.add_files(parser)
    parser.add_argument("out", metavar="OUT", help="the file to write; its ending is the kind")
    add_options(parser, ConvertOptions)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert every file; gives the exit code."""
    try:
        kind = _kind(arguments)
        names = list(inputs.expanded(arguments.files))
        if inputs.is_read(arguments.out, names):
            raise _UnusableError(f"{arguments.out!r} is read, so it cannot be written")
        with ended_by_sigterm():
            tables = _convert(names, kind, arguments)
    except _UnusableError as error:
        output.complain(str(error))
        return EXIT_UNUSABLE
    except DecodeError as error:
        output.complain(f"{arguments.out!r} was not written: {error}")
        return EXIT_FAULTS
    if not getattr(arguments, "quiet", False):
        output.complain(f"{arguments.out!r}: {tables.report()}")
    return EXIT_FAULTS if tables.faults else EXIT_OK


def _kind(arguments: argparse.Namespace) -> str:
    kind = _ENDINGS.get(os.path.splitext(arguments.out)[1].lower())
    if kind is None:
        raise _UnusableError(f"{arguments.out!r}: its ending should be one of {', '.join(_ENDINGS)}")
    compression = getattr(arguments, "compression", None)
    if kind == "ipc" and compression not in (None, *_IPC_COMPRESSIONS):
        raise _UnusableError(f"{arguments.out!r}: such a file has no compression {compression}")
    return kind


def _convert(names: list[str], kind: str, arguments: argparse.Namespace) -> _Tables:
    """Writes the file; gives what was read."""
    tables = _Tables(names, arguments)
    options = resolve(FileOptions, given(arguments, FileOptions))
    from .tablefile import TableFile, TableFileError

    try:
        with (
            replacing(arguments.out) as path,
            reading(os.path.basename(arguments.out), sum(map(size, names))) as report,
            TableFile(path, kind, tables.schema, **options) as file,
        ):
            for batch in _batches(tables, report):
                file.write(batch)
    except (OSError, TableFileError) as error:
        raise _UnusableError(f"{arguments.out!r}: {inputs.reason(error)}") from error
    return tables


def _batches(tables: _Tables, report: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    """The batches of one recording after the other."""
    for files in tables.recordings:
        try:
            yield from tables.read(files, report)
        except (capture.CaptureError, OSError) as error:
            raise _UnusableError(f"{files.name!r}: {inputs.unreadable(error)}") from error


class _Tables:
    """Reads the table asked for from one recording after the other.

    Args:
        names: of the files.
        arguments: those of the command.

    Attributes:
        recordings: to be read.
        schema: of what is to be written.
        rows: that were read so far.
        faults: of what was read so far, by code.
    """

    def __init__(self, names: list[str], arguments: argparse.Namespace) -> None:
        try:
            from .. import arrow
        except ImportError as error:
            raise _UnusableError(str(error)) from error
        self._arguments = arguments
        self._table = resolve(TableOptions, given(arguments, TableOptions))["table"]
        self._of_streams = inputs.of_streams(arguments)
        options = given(arguments, StreamOptions if self._of_streams else CaptureOptions)
        # The columns of a stream do not depend on what is in it either.
        options.setdefault("dialect", "auto")
        options["_check_all"] = True  # the exit code is not to depend on the columns
        stream: Any = arrow.read_stream
        self._stream = partial(stream, table=self._table, **options)
        self._session: Any = partial(arrow.CaptureSession, self._table, **options)
        rotated = resolve(RotatedOptions, given(arguments, RotatedOptions))
        try:
            self.schema = self._stream(()).schema if self._of_streams else self._session().schema
            way = "false" if self._of_streams else rotated["rotated"]
            self.recordings = inputs.recordings(names, way, rotated["series_pattern"])
        except ValueError as error:
            raise _UnusableError(str(error)) from error
        self.rows = 0
        self._tracker: Any = None  # of the recording read last
        self.faults: Counter[str] = Counter()

    def read(self, files: inputs.Recording, report: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """The batches of a recording, as they are to be written."""
        before = self.rows, self.faults.total()
        for batch in (self._of_frames if self._of_streams else self._of_packets)(files, report):
            self.rows += batch.num_rows
            yield batch
        are_left_out = getattr(self._arguments, "mode", "") == "drop" and self.faults.total() > before[1]
        if self.rows > before[0] or are_left_out or self._of_streams or self._table == "errors":
            return
        where = inputs.searched_in_vain(self._arguments, self._tracker)
        output.complain(f"{files.shown()}: no {self._table} found on {where}")

    def _of_packets(self, files: inputs.Recording, report: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        session = self._session()
        self._tracker = session.tracker
        for file in files:
            name = None if files.name == inputs.STANDARD_INPUT else files.name
            yield from session.read(Watched(file, report), name)
        yield from session.finish()
        self.faults.update(session.faults)

    def _of_frames(self, files: inputs.Recording, report: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        from ..arrow.arrays import with_file

        for file in files:
            reader = self._stream(Watched(file, report))
            for batch in reader:
                yield batch if files.name == inputs.STANDARD_INPUT else with_file(batch, files.name)
            self.faults.update(reader.faults)

    def report(self) -> str:
        """Return how many rows there are, what was wrong by kind, and where that is shown."""
        rows = f"{_number(self.rows, ('row', 'rows'))} of {self._table}"
        if not self.faults:
            return f"{rows}, and all was read"
        kinds = (_number(count, _KINDS.get(code, (code, code))) for code, count in self.faults.items())
        where = "; decode --errors shows where" if self.faults.keys() - {_INCOMPLETE} else ""
        return f"{rows}; {', '.join(kinds)}{where}"


def _number(count: int, names: tuple[str, str]) -> str:
    return f"{count} {names[count != 1]}"
