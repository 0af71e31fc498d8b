"""Column sinks: where the frames and faults of connections become the rows of a table.

`rows` makes each row; in the compiled build, `cells_c` makes the common ones. Batches are cut by rows and by
the octets of the frames behind them, so they are the same however the octets came in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError, decode_pairs
from amqpcodec._kernel.wire import METHOD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import CLIENT_TO_SERVER, Close, Connection, Fault, LocatedSegment
from amqpcodec.capture.dialects import NEGOTIATING
from amqpcodec.capture.envelopes import method_ids
from amqpcodec.capture.streams_py import Flow

from .buffers_py import Batch, Columns
from .contents_py import Totals
from .decoding import Decoding
from .origins import NO_TIME, FrameOrigin
from .rows import Row, Rows, error_code, fault_code, micros
from .schemas import Column, table_columns
from .text import cell_text, clean

Flows = Mapping[int, Flow]
_PEERS = ("client", "server")
_SIDES = ("_sent", "_received")
_OCTETS = tuple("octets" + side for side in _SIDES)
_TOTALS = tuple(count + side for count in ("frames", "messages") for side in _SIDES)
_FAULTS = ("gaps", "octets_missing", "errors")
_FIRST = (*_OCTETS, *_TOTALS, *_FAULTS, "ts_first", "ts_last")  # cells in a snapshot, before all others


class Sink:
    """Turns the frames of connections into batches of one table.

    Args:
        table: name of the table.
        columns: those to fill, from `schemas.chosen`, in this order.
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

    payloads = False  # whether damaged payloads are faults

    def is_counted_only(self, method: Any) -> bool:
        """Return whether a method of the connection class negotiates nothing and has nothing to hide."""
        spec = method.spec
        return spec.name not in NEGOTIATING and not self.make.is_secret(spec.class_id, spec.method_id)

    def frame(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> None:
        """Take a frame whose end is known, whatever is in it.

        Args:
            origin: where it was found.
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
        where = fault.connection, fault.direction, fault.offset
        behind_error = where == self._last_fault  # what is lost behind an error needs no row of its own
        self._last_fault = where
        if fault.kind == "lost" and self.decoding.from_start and not behind_error:
            self._add(self.make.damage_row(fault))
        elif fault.kind != "error":
            self._count(fault_code(fault))
        elif not fault.octets:
            self._add(self.make.damage_row(fault))

    def close(self, event: Close) -> None:
        """Nothing more will come in a direction; called behind its last frames and faults."""

    def snapshot(self, note: Note) -> list[Any]:
        """Return the state beside rows, for `restore`.

        Args:
            note: is called with each packet in it.
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


class FrameSink(Sink):
    """The table `frames`."""

    def frame(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> None:
        """Add a row, without looking into the payload."""
        self._add(self.make.frame_row(origin, octets, dialect))


class MethodSink(Sink):
    """The table `methods`."""

    def frame(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> None:
        """Add a row for a method."""
        if octets[0] == METHOD:
            self._add(self.make.method_row(origin, octets, dialect))


class ErrorSink(Sink):
    """The table `errors`."""

    payloads = True

    def fault(self, fault: Fault) -> None:
        """Add a row."""
        self._count(fault_code(fault))
        self._add(self.make.fault_row(fault))


class PacketSink(Sink):
    """The table `packets`: segments and faults in, batches out.

    Raises:
        ValueError: payloads are asked for without `include_credentials`: login data cannot be left out of
            them.
    """

    def __init__(self, table: str, columns: Sequence[Column], decoding: Decoding, **options: Any) -> None:
        super().__init__(table, columns, decoding, **options)
        if any(column.name == "payload" for column in columns) and not decoding.include_credentials:
            raise ValueError("the payload of packets has login data in it: include_credentials shows it")

    def packet(self, located: LocatedSegment) -> None:
        """Add a row."""
        self._add(self.make.packet_row(located))


# -- the table `connections`


class ConnectionRow:
    """One connection so far.

    Attributes:
        totals: counts of its frames, and when it was seen.
        cells: those of its row that are known beside those.
        closes: how many directions have ended.
        faulty: whether there was a fault.
    """

    __slots__ = ("cells", "closes", "faulty", "totals")

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.cells: dict[str, Any] = dict.fromkeys((*_OCTETS, *_FAULTS), 0)
        self.closes = 0
        self.faulty = False

    @property
    def exists(self) -> bool:
        """Return whether there was a frame or a fault."""
        return self.faulty or self.totals.frames_sent + self.totals.frames_received > 0

    def row(self) -> dict[str, Any]:
        """All cells that are known."""
        totals = self.totals
        cells = {**self.cells, **{name: getattr(totals, name) for name in _TOTALS}}
        if totals.first_ns != NO_TIME:
            cells.update(ts_first=micros(totals.first_ns), ts_last=micros(totals.last_ns))
        return {**{name: cells[name] for name in _FIRST if name in cells}, **cells}

    def restore(self, cells: dict[str, Any]) -> None:
        """Go on from the cells of a row."""
        totals = self.totals
        for name in _TOTALS:
            setattr(totals, name, cells.pop(name, 0))
        for name in ("ts_first", "ts_last"):
            if cells.get(name) is not None:
                totals.see(_in_range(cells.pop(name) * 1000))
        self.cells.update(cells)


class ConnectionSink(Sink):
    """One row a connection when both directions have ended; none if there was neither frame nor fault.

    Args:
        errors: receives the faults as well; so both tables are made of frames that are checked once.
    """

    payloads = True

    def __init__(
        self,
        *arguments: Any,
        totals: Callable[[], Totals] = Totals,
        errors: ErrorSink | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._new_totals = totals
        self._errors = errors
        self._summaries: dict[Connection, ConnectionRow] = {}

    def is_counted_only(self, method: Any) -> bool:
        """See `Sink.is_counted_only`."""
        return super().is_counted_only(method) and method.spec.name not in _FACTS

    def totals(self, connection: Connection) -> Totals:
        """Return the totals of a connection: one object until it has ended."""
        return self._summary(connection).totals

    def frame(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> None:
        """Count a frame, and take facts from the methods of the connection class."""
        summary = self._summary(origin.connection)
        method = None
        if octets[0] == METHOD:
            method = dialect.METHODS.get(method_ids(octets))
        carries_content = method is not None and method.spec.content
        summary.totals.count(origin.direction, carries_content, _in_range(origin.time_ns))
        take_facts = _FACTS.get(method.spec.name) if method else None
        if take_facts is not None:
            record, _ = self.make.payload(origin, octets, dialect)
            if record is not None:
                take_facts(summary.cells, record, _PEERS[origin.direction])

    def fault(self, fault: Fault) -> None:
        """Count a fault."""
        if self._errors is not None:
            self._errors.fault(fault)
        self._count(fault_code(fault))
        if fault.connection is None:
            return
        summary = self._summary(fault.connection)
        summary.faulty = True
        summary.totals.see(_in_range(fault.time_ns))
        cells = summary.cells
        if fault.kind == "error":
            cells["errors"] += 1
        elif fault.kind == "gap":
            cells["gaps"] += 1
            cells["octets_missing"] += fault.length
            cells["octets" + _SIDES[fault.direction or CLIENT_TO_SERVER]] -= fault.length

    def close(self, event: Close) -> None:
        """Once both directions have ended, the row is complete."""
        connection = event.connection
        summary = self._summary(connection)
        summary.totals.see(_in_range(event.time_ns))
        summary.closes += 1
        summary.cells["octets" + _SIDES[event.direction]] += event.offset
        if summary.closes < len(_SIDES):
            return
        del self._summaries[connection]
        if summary.exists:
            lead = {"file": self.make.files.locate(event.packet)[0], **self.make.origin(connection)}
            if connection.proxied is not None:
                client, server = map(str, connection.proxied)
                lead.update(proxied_client=client, proxied_server=server)
            said = {"dialect": connection.dialect, "copy_of": connection.copy_of}
            self._add(Row({**lead, **said, **summary.row()}, 0))

    def snapshot(self, note: Note) -> list[Any]:
        """See `Sink.snapshot`."""
        return [
            [connection.number, summary.closes, summary.exists, list(map(list, summary.row().items()))]
            for connection, summary in self._summaries.items()
        ]

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """See `Sink.restore`."""
        kinds = {column.name: column.kind for column in table_columns("connections")}
        for fields in state:
            summary = self._summary(flow_of(flows, fields).connection)
            summary.closes, summary.faulty = fields.number(0, 1), fields.flag()
            cells: dict[str, Any] = {}
            for cell in fields.items():
                name = cell.text()
                if name not in kinds:
                    raise damaged("there is no such column")
                cells[name] = _cell(kinds[name], cell)
                cell.end()
            summary.restore(cells)
            fields.end()

    def _summary(self, connection: Connection) -> ConnectionRow:
        summary = self._summaries.get(connection)
        if summary is None:
            summary = self._summaries[connection] = ConnectionRow(self._new_totals())
        return summary


def _in_range(time_ns: int | None) -> int:
    """A time that columns can hold, or NO_TIME."""
    return NO_TIME if time_ns is None or micros(time_ns) is None else time_ns


def _cell(kind: str, state: Fields) -> Any:
    """The value of a cell of a kind of column that comes next in a state."""
    if kind == "string":
        return state.text_or_none()
    return state.number(-(2**31), 2**31 - 1) if kind == "int32" else state.number()


def _texts(cells: dict[str, Any], table: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    """Values of a field table as text, into columns by key; none from a table that cannot be read."""
    with suppress(DecodeError):
        cells.update({column: cell_text(table.get(key)) for key, column in columns.items()})


def _start(cells: dict[str, Any], method: Any, peer: str) -> None:
    _texts(cells, method.server_properties, {key: key for key in ("product", "version", "platform")})


def _start_ok(cells: dict[str, Any], method: Any, peer: str) -> None:
    columns = {key: f"client_{key}" for key in ("product", "version", "platform")}
    _texts(cells, method.client_properties, {**columns, "connection_name": "connection_name"})
    cells["mechanism"] = clean(method.mechanism)
    cells["user"] = _user(method.mechanism, method.response)


def _user(mechanism: str, response: bytes) -> str | None:
    """Who logs in, by the two mechanisms that say so in their first response."""
    if mechanism == "PLAIN" and response.count(b"\0") >= 2:
        return response.split(b"\0")[1].decode("utf-8", "backslashreplace")
    if mechanism == "AMQPLAIN":
        try:
            return cell_text(decode_pairs(response).get("LOGIN"))
        except DecodeError:
            return None
    return None


def _tune_ok(cells: dict[str, Any], method: Any, peer: str) -> None:
    cells.update({name: getattr(method, name) for name in ("channel_max", "frame_max", "heartbeat")})


def _open(cells: dict[str, Any], method: Any, peer: str) -> None:
    cells["vhost"] = clean(method.virtual_host)


def _close(cells: dict[str, Any], method: Any, peer: str) -> None:
    if "closed_by" not in cells:
        text = clean(method.reply_text)
        cells.update(closed_by=peer, close_code=method.reply_code, close_text=text)


_FACTS: dict[str, Callable[[dict[str, Any], Any, str], None]] = {
    "connection.start": _start,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
    "connection.close": _close,
}
