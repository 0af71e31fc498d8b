"""The table `connections`: what is gathered of a connection until it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from amqpcodec import DecodeError, decode_pairs
from amqpcodec._kernel.wire import METHOD, OVERHEAD
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.capture import CLIENT_TO_SERVER, Close, Connection, Fault

from .rows import Place, Row, fault_code, method_ids, micros
from .sink_base import Flows, Sink, flow_of
from .tables import table_columns
from .text import cell_text, clean

_PEERS = ("client", "server")
_SIDES = ("_sent", "_received")
_COUNTS = (
    *(count + side for count in ("octets", "frames", "messages") for side in _SIDES),
    "gaps",
    "octets_missing",
    "errors",
)


class Account:
    """One connection so far.

    Attributes:
        cells: those of its row that are known.
        closes: how many directions have ended.
        told: whether there was a frame or a fault.
    """

    __slots__ = ("cells", "closes", "told")

    def __init__(self) -> None:
        self.cells: dict[str, Any] = dict.fromkeys(_COUNTS, 0)
        self.closes = 0
        self.told = False

    def seen(self, time_ns: int | None) -> None:
        """Something came at this time."""
        time = micros(time_ns)
        if time is not None:
            self.cells.setdefault("ts_first", time)
            self.cells["ts_last"] = time


class ConnectionSink(Sink):
    """One row a connection when both directions have ended; none if there was neither frame nor fault."""

    payloads = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._accounts: dict[Connection, Account] = {}

    def is_counted_only(self, method: Any) -> bool:
        """See `Sink.is_counted_only`."""
        return super().is_counted_only(method) and method.spec.name not in _LEARN

    def frame(self, place: Place, octets: bytes, dialect: ModuleType) -> None:
        """Count a frame, and learn from the methods of the connection class."""
        direction = place.direction
        cells = self._told(place.connection, place.time_ns).cells
        cells["frames" + _SIDES[direction]] += 1
        if octets[0] != METHOD or len(octets) < OVERHEAD + 4:
            return
        method = dialect.METHODS.get(method_ids(octets))
        if method is None:
            return
        cells["messages" + _SIDES[direction]] += method.spec.content
        learn = _LEARN.get(method.spec.name)
        if learn is not None:
            record, _ = self.make.payload(place, octets, dialect)
            if record is not None:
                learn(cells, record, _PEERS[direction])

    def followed(
        self, connection: Connection, direction: int, frames: int, messages: int, *times_ns: int | None
    ) -> None:
        """Count frames that somebody else has looked at, none of which has anything to tell.

        Args:
            connection, direction: whose they are.
            frames: how many there were.
            messages: how many of them were methods that carry content.
            times_ns: of the first and the last frame of the connection since this was called before.
        """
        for time_ns in times_ns:
            account = self._told(connection, time_ns)
        account.cells["frames" + _SIDES[direction]] += frames
        account.cells["messages" + _SIDES[direction]] += messages

    def fault(self, fault: Fault) -> None:
        """Count a fault."""
        self._count(fault_code(fault))
        if fault.connection is None:
            return
        cells = self._told(fault.connection, fault.time_ns).cells
        if fault.kind == "error":
            cells["errors"] += 1
        elif fault.kind == "gap":
            cells["gaps"] += 1
            cells["octets_missing"] += fault.length
            cells["octets" + _SIDES[fault.direction or CLIENT_TO_SERVER]] -= fault.length

    def close(self, event: Close) -> None:
        """Once both directions have ended, the row is complete."""
        connection = event.connection
        account = self._accounts.setdefault(connection, Account())
        account.seen(event.time_ns)
        account.closes += 1
        account.cells["octets" + _SIDES[event.direction]] += event.offset
        if account.closes < len(_SIDES):
            return
        del self._accounts[connection]
        if account.told:
            place = {"file": self.make.files.locate(event.packet)[0], **self.make.origin(connection)}
            self._add(Row({**place, "dialect": connection.dialect, **account.cells}, 0))

    def state(self, note: Note) -> list[Any]:
        """See `Sink.state`."""
        return [
            [connection.number, account.closes, account.told, list(map(list, account.cells.items()))]
            for connection, account in self._accounts.items()
        ]

    def restore(self, state: Iterable[Fields], flows: Flows) -> None:
        """See `Sink.restore`."""
        kinds = {column.name: column.kind for column in table_columns("connections")}
        for fields in state:
            account = self._accounts[flow_of(flows, fields).connection] = Account()
            account.closes, account.told = fields.number(0, 1), fields.flag()
            for cell in fields.items():
                name = cell.text()
                if name not in kinds:
                    raise damaged("there is no such column")
                account.cells[name] = _cell(kinds[name], cell)
            fields.end()

    def _told(self, connection: Connection, time_ns: int | None) -> Account:
        account = self._accounts.get(connection)
        if account is None:
            account = self._accounts[connection] = Account()
        account.told = True
        account.seen(time_ns)
        return account


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


_LEARN: dict[str, Callable[[dict[str, Any], Any, str], None]] = {
    "connection.start": _start,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
    "connection.close": _close,
}
