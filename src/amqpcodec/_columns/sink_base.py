"""What the column sinks of the pure build share: rows gathered to batches.

Batches are cut by rows and by the octets of the frames behind them, so they are the same however the octets
came in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import Close, Fault
from amqpcodec.capture.frames import NEGOTIATING
from amqpcodec.capture.streams_py import Flow

from .buffers_py import Batch, Columns
from .decoding import Decoding
from .rows import Place, Row, Rows, error_code, fault_code
from .tables import Column

Flows = Mapping[int, Flow]


class Sink:
    """Turns the frames of connections into batches of one table.

    Args:
        table: name of the table.
        columns: those to fill, as `tables.chosen` gives them, in this order.
        decoding: how frames become rows.
        file: name of the first file for the column `file`.
        faults: where faults and rows in error are counted by code; rows that are left out count as well.
        store: what rows are kept in: `Columns` of the build in use.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[Column],
        decoding: Decoding,
        *,
        file: str | None = None,
        faults: dict[str, int] | None = None,
        store: Callable[[Sequence[Column]], Columns] = Columns,
    ) -> None:
        self.table = table
        self.decoding = decoding
        self.make = Rows(table, columns, decoding, file)
        self._faults = {} if faults is None else faults
        self._full: list[Batch] = []
        self._last_fault: tuple[Any, ...] = ()  # where the last fault was
        self.store = store(columns)

    payloads = False  # whether damaged payloads have to be told as faults

    def is_counted_only(self, method: Any) -> bool:
        """Whether a method of the connection class negotiates nothing and has nothing to hide."""
        spec = method.spec
        return spec.name not in NEGOTIATING and not self.make.is_secret(spec.class_id, spec.method_id)

    def frame(self, place: Place, octets: bytes, dialect: ModuleType) -> None:
        """Take a frame whose end is known, whatever is in it.

        Args:
            place: where it was found.
            octets: the whole frame.
            dialect: module of the dialect that it is to be read as.

        Raises:
            DecodeError: in mode ``"fail"``, the error of a row.
        """

    def fault(self, fault: Fault) -> None:
        """Take a fault. One of kind ``"error"`` with octets was given to `frame` before.

        Raises:
            DecodeError: in mode ``"fail"``, the error of a row.
        """
        place = fault.connection, fault.direction, fault.offset
        behind_error = place == self._last_fault  # what is lost behind an error needs no row of its own
        self._last_fault = place
        if fault.kind == "lost" and self.decoding.from_start and not behind_error:
            self._add(self.make.damage_row(fault))
        elif fault.kind != "error":
            self._count(fault_code(fault))
        elif not fault.octets:
            self._add(self.make.damage_row(fault))

    def close(self, event: Close) -> None:
        """Nothing more will come in a direction; called behind its last frames and faults."""

    def snapshot(self, note: Note) -> list[Any]:
        """What is kept beside rows, for `restore` to make the same of.

        Args:
            note: is told of each packet in it.
        """
        return []

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """Go on from a state.

        Args:
            state: the lists in it.
            flows: the connections still known, by their numbers.

        Raises:
            ValueError: it is damaged.
        """
        if next(iter(state), None) is not None:
            raise damaged("the table keeps nothing")

    def batches(self, final: bool = False) -> list[Batch]:
        """The full batches since the last call; with `final`, also the one begun, if it has rows."""
        if final and self.store.rows:
            self.cut()
        full, self._full = self._full, []
        return full

    def _add(self, row: Row) -> None:
        """Append a row, and cut the batch if it is full."""
        cells, octets, error = row
        if error is not None:
            self._count(error_code(error))
            if self.decoding.mode == "fail":
                raise error
            if self.decoding.mode == "drop":
                return
        store, decoding = self.store, self.decoding
        store.append(cells, octets)
        if store.rows >= decoding.batch_rows or store.octets >= decoding.batch_bytes:
            self.cut()

    def _count(self, code: str) -> None:
        """One more fault or row in error."""
        self._faults[code] = self._faults.get(code, 0) + 1

    def cut(self) -> None:
        """The rows so far are a batch."""
        self._full.append(self.store.take())


def flow_of(flows: Flows, state: Fields) -> Flow:
    """The connection whose number comes next in a state.

    Raises:
        ValueError: it is not known.
    """
    flow = flows.get(state.number())
    if flow is None:
        raise damaged("there is no such connection")
    return flow
