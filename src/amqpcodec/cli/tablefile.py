"""Record batches to Parquet and Arrow IPC files, written beside the work that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

import pyarrow as pa

from ..arrow.parquetfile import parquet_writer
from .inputs import reason

ROW_GROUP_BYTES = 48 << 20


class TableFileError(Exception):
    """The file cannot be written; the text is the reason."""


class TableFile:
    """Writes record batches to a file, one group of rows after the other, in a thread of its own.

    No more than two groups are in memory: the one that is being filled, and the one that is being written.

    Args:
        path: the file, new or empty.
        kind: ``"parquet"`` or ``"ipc"`` (Arrow's own file format).
        schema: that of every batch.
        compression: ``"zstd"`` or ``"none"``; for Parquet also ``"snappy"`` and ``"gzip"``.
        row_group_rows: rows of a full group.
        row_group_bytes: octets of columns that make a group full however few its rows.

    To be used in a ``with`` statement: the file is whole when that has ended without an exception.

    Raises:
        TableFileError: the file cannot be written; also where the ``with`` statement ends.
    """

    def __init__(
        self,
        path: str,
        kind: str,
        schema: pa.Schema,
        compression: str,
        row_group_rows: int,
        row_group_bytes: int = ROW_GROUP_BYTES,
    ) -> None:
        self._schema = schema
        self._most_rows, self._most_octets = row_group_rows, row_group_bytes
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._octets = 0
        self._written: Future[None] | None = None
        with _blaming_file():
            # To append: ext4 waits for the disk when a file that was truncated is closed.
            self._sink = pa.OSFile(path, "ab")
            self._writer = _writer(self._sink, kind, schema, compression)
        self._thread = ThreadPoolExecutor(1)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Waits where writing is slower than what comes."""
        while batch.num_rows:
            room = self._most_rows - self._rows
            self._add(batch.slice(0, room))
            batch = batch.slice(room)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._octets += batch.nbytes
        if self._rows >= self._most_rows or self._octets >= self._most_octets:
            self._hand_over()

    def _hand_over(self) -> None:
        """Let the group be written, once the one before it is."""
        group = pa.Table.from_batches(self._batches, self._schema)
        self._batches, self._rows, self._octets = [], 0, 0
        self._wait()
        self._written = self._thread.submit(self._write_group, group)

    def _write_group(self, group: pa.Table) -> None:
        self._writer.write_table(group, group.num_rows)

    def _wait(self) -> None:
        if self._written is not None:
            written, self._written = self._written, None
            with _blaming_file():
                written.result()

    def __enter__(self) -> TableFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self._thread.shutdown()
            with suppress(OSError, pa.ArrowException):  # of a file that is whole, `_finish` has reported it
                self._close()

    def _finish(self) -> None:
        if self._batches:
            self._hand_over()
        self._wait()
        with _blaming_file():
            self._close()

    def _close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._sink.close()


def _writer(sink: Any, kind: str, schema: pa.Schema, compression: str) -> Any:
    if kind == "parquet":
        return parquet_writer(sink, schema, compression)
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
    return pa.ipc.new_file(sink, schema, options=options)


@contextmanager
def _blaming_file() -> Iterator[None]:
    """Makes an error in the block one of the file that is written."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise TableFileError(reason(error)) from error
