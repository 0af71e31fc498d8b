"""A column of octets to rows: each value is a part of a stream, cut between frames. The pure build.

Every value is read by itself, from its first octet on, as the whole of one direction; so what is in one value
never bears on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from amqpcodec import DecodeError
from amqpcodec.capture import Close, Connection, Data, Event
from amqpcodec.capture.frames import ConnectionDecoder
from amqpcodec.limits import MAX_LIMIT

from .buffers_py import Batch, Columns, Filled, values
from .build import make_sink
from .decoding import Decoding
from .feeder_py import dispatch
from .schemas import Column

VALUES = Column("value", "binary")
VALUE = Column("value", "int32")
Cells = dict[str, Any]


class NothingError(DecodeError):
    """A value that has no row of the table in it."""

    @property
    def reply_name(self) -> str:
        """The code that stands in `_error`."""
        return "nothing"


class SeveralError(DecodeError):
    """A value with more than one row of the table in it."""

    @property
    def reply_name(self) -> str:
        """The code that stands in `_error`."""
        return "several"


class ValueReader:
    """Reads columns of octets into the columns of a table.

    Args:
        table: ``"frames"``, ``"methods"`` or ``"messages"``.
        columns: those to fill, from `schemas.chosen`.
        decoding: how; not with the dialect ``"auto"``, and ``"drop"`` only with `explode`. Its `rows` and
            `octets` do not count.
        direction: 0 client to server, 1 server to client.
        explode: whether a value becomes all its rows, with its number in a further column `VALUE` before the
            others; otherwise it becomes exactly one.
        store: what rows are kept in: `Columns` of the build in use.

    Attributes:
        columns: those of the batches.
        store: as the argument, made.
        make: makes the rows.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[Column],
        decoding: Decoding,
        *,
        direction: int,
        explode: bool,
        store: Callable[[Sequence[Column]], Any] = Columns,
    ) -> None:
        self.columns = (VALUE, *columns) if explode else tuple(columns)
        self.store = store(self.columns)
        self._gathered = _Gathered()
        self._decoding = replace(decoding, batch_rows=MAX_LIMIT, batch_bytes=MAX_LIMIT, from_start=True)
        self._reading = self._decoding.reading(payloads=False)
        self._sink = make_sink(table, columns, self._decoding, store=self._gathered.begin)
        self.make = self._sink.make
        self._table = table
        self._direction = direction
        self._explode = explode

    def read(self, memory: Filled) -> Batch:
        """The rows of a column of octets; after an error, the reader is of no further use.

        Raises:
            DecodeError: in mode ``"fail"``, the first error; it names the value.
        """
        for number, octets in enumerate(values(VALUES, memory)):
            if octets is not None:
                self.add(number, octets)
            elif not self._explode:
                self.store.append({}, 0)
        batch: Batch = self.store.take()
        return batch

    def add(self, number: int, octets: bytes, known: int = 0) -> None:
        """Add the rows of a value.

        Args:
            number: which one it is, from 0.
            octets: the value.
            known: how many of its rows there are already.

        Raises:
            DecodeError: as `read`.
        """
        try:
            rows = self._rows(octets)
            if not self._explode:
                rows = [self._only(rows)]
        except DecodeError as error:
            error.message = f"value {number}: {error.message}"
            raise
        for cells in rows[known:]:
            self.store.append({**cells, VALUE.name: number}, 0)

    def _only(self, rows: list[Cells]) -> Cells:
        """The one row of a value, which says so if there is none or there are others."""
        if not rows:
            message = f"there is nothing for {self._table} in the value"
            return self._blame({}, NothingError(message))
        if len(rows) > 1:
            cells, second = rows[:2]
            if str(second.get("_error")).startswith("LOST"):
                return {**cells, "_error": cells.get("_error") or second["_error"]}
            message = "there is more than one row in the value"
            return self._blame(cells, SeveralError(message, offset=second["offset"]))
        return rows[0]

    def _blame(self, cells: Cells, error: DecodeError) -> Cells:
        if self._decoding.mode == "fail":
            raise error
        code = error.reply_name.upper()
        return {**cells, "_error": cells.get("_error") or f"{code} at {error.offset}"}

    def _rows(self, octets: bytes) -> list[Cells]:
        """All rows of a value, those for octets in no frame included."""
        connection = Connection(0, None, None)
        decoder = ConnectionDecoder(connection, self._reading)
        # The value begins with a frame, so none is searched for.
        decoder.directions[self._direction].follow()
        for event in self._events(connection, octets):
            for item in decoder.feed(event):
                dispatch(item, decoder, self._sink)
            if isinstance(event, Close):
                self._sink.close(event)
        return self._gathered.take()

    def _events(self, connection: Connection, octets: bytes) -> Iterator[Event]:
        yield Data(connection, self._direction, 0, octets, None, None)
        for direction, end in ((self._direction, len(octets)), (1 - self._direction, 0)):
            yield Close(connection, direction, end, None, None)


class _Gathered:
    """In place of columns: the cells of the rows as they come."""

    def __init__(self) -> None:
        self.rows = self.octets = 0
        self._cells: list[Cells] = []

    def begin(self, columns: Sequence[Column]) -> Any:
        """Return the columns that a sink keeps its rows in."""
        return self

    def append(self, cells: Cells, octets: int) -> None:
        """Add a row."""
        self._cells.append(cells)

    def take(self) -> list[Cells]:
        """The rows so far."""
        cells, self._cells = self._cells, []
        return cells
