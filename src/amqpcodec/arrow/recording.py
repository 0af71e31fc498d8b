"""Messages in columns to captures, as if they had been recorded."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Unpack

import pyarrow as pa

from .. import EncodeError
from .._columns.buffers_py import values
from .._columns.schemas import Column, table_columns
from .._options import takes
from ..capture import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Endpoint
from ..capture.dialects import module
from ..capture.writing import Conversation, PacketWriter
from ..options import AMQP_PORT, EncodingOptions
from .arrays import memory_of
from .encoding import TIME, BatchEncoder, taken_from

_ENDPOINT = re.compile(r"\[?([0-9A-Fa-f:.]+?)\]?:(\d{1,5})")
_SERVER = Endpoint(bytes((10, 255, 0, 1)), AMQP_PORT)
_UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # nanoseconds
_STEP_NS = 1000  # between messages whose time is not known


class _Row(NamedTuple):
    """The values of a row that describe its packets."""

    file: str | None
    flow: int | None
    client: str | None
    server: str | None
    direction: int | None
    name: str | None
    kind: str | None

    def way(self) -> int:
        """The direction; by the method, if the row has none."""
        if self.direction is not None:
            return self.direction
        method = self.name or self.kind or "publish"
        return CLIENT_TO_SERVER if method.endswith("publish") else SERVER_TO_CLIENT

    def ends(self, number: int) -> tuple[Endpoint, Endpoint]:
        """Client and server; if they are not known, addresses made from the number."""
        client, server = _endpoint(self.client), _endpoint(self.server)
        if client is None or server is None or len(client.address) != len(server.address):
            host = number // 28000 % 2**16
            return Endpoint(bytes((10, 0, *divmod(host, 256))), 32768 + number % 28000), _SERVER
        return client, server


_COLUMNS = tuple(column for column in table_columns("messages", ()) if column.name in _Row._fields)


@takes(EncodingOptions)
class CaptureWriter:
    """Writes messages to a capture: a TCP connection for each `flow` of each `file`, packets in their order.

    Args:
        file: path or binary file object to write a pcap file with nanoseconds to; an object stays open.
        options: those of `EncodingOptions`.

    Beside the columns of the message, `file`, `flow`, `client`, `server`, `direction` and `ts_ns` (or `ts`)
    count. Rows without `flow` share a connection. The client's protocol header comes first. Close the
    writer, or use it in a ``with`` statement: connections end only then.

    Raises:
        OSError: the file cannot be written.
        TypeError, ValueError: an option that cannot be.
    """

    def __init__(self, file: str | os.PathLike[str] | BinaryIO, **options: Unpack[EncodingOptions]) -> None:
        self._header = module(options["dialect"]).protocol_header()
        self._encoder = BatchEncoder(options)
        self._own = open(file, "wb", 1 << 20) if isinstance(file, (str, os.PathLike)) else None  # noqa: SIM115
        self._packets = PacketWriter(self._own or file)  # type: ignore[arg-type]
        self._open: dict[tuple[str | None, int | None], Conversation] = {}
        self._by_ends: dict[tuple[Endpoint, Endpoint], tuple[str | None, int | None]] = {}
        self._begun = 0
        self._time_ns = 0

    def write(self, messages: Any) -> int:
        """Add messages, see `encode_messages`; returns their number.

        A batch with a refused row is not written at all.
        """
        count = first = 0
        for encoded, batch in self._encoder.encode(messages):
            rows, times = _rows(batch), _times(batch)
            _check_directions(rows, encoded.rows, first)
            first += batch.num_rows
            begin = 0
            for at, end in zip(encoded.rows, encoded.ends, strict=True):
                time_ns = times[at]
                self._time_ns = self._time_ns + _STEP_NS if time_ns is None else time_ns
                row = rows[at]
                self._conversation(row).send(row.way(), encoded.octets[begin:end], self._time_ns)
                begin = end
            count += len(encoded.ends)
        return count

    def close(self) -> None:
        """End all connections, and the file if it was opened here."""
        for conversation in self._open.values():
            conversation.close(self._time_ns)
        self._open.clear()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _conversation(self, row: _Row) -> Conversation:
        """The connection of a row, opened if it is not yet."""
        key = row.file, row.flow
        known = self._open.get(key)
        if known is not None:
            return known
        ends = row.ends(self._begun)
        before = self._open.pop(self._by_ends.get(ends, key), None)
        if before is not None:  # two cannot be open between the same ends
            before.close(self._time_ns)
        made = Conversation(self._packets, *ends, self._time_ns, self._begun)
        made.send(CLIENT_TO_SERVER, self._header, self._time_ns)
        self._open[key], self._by_ends[ends] = made, key
        self._begun += 1
        return made


def _rows(batch: pa.RecordBatch) -> list[_Row]:
    return list(map(_Row, *(_cells(batch, column) for column in _COLUMNS)))


def _cells(batch: pa.RecordBatch, column: Column) -> list[Any]:
    """The values of a column, nulls for one that a batch does not have."""
    if column.name not in batch.schema.names:
        return [None] * batch.num_rows
    taken, array = taken_from(batch, column)
    return values(taken, memory_of(taken, array))


def _check_directions(rows: list[_Row], positions: Iterable[int], first: int) -> None:
    """Raise EncodeError at the first row to be written whose direction is invalid."""
    for at in positions:
        direction = rows[at].direction
        if direction not in (None, CLIENT_TO_SERVER, SERVER_TO_CLIENT):
            raise EncodeError(f"row {first + at}: it must be 0 or 1, not {direction}", "direction")


def _times(batch: pa.RecordBatch) -> list[int | None]:
    """The times of messages in nanoseconds; as numbers of Python, since Arrow's end in 2262."""
    name = next((name for name in (TIME.name, "ts") if name in batch.schema.names), TIME.name)
    index = batch.schema.get_field_index(name)  # none of a name that is there twice
    if index < 0 or not pa.types.is_timestamp(batch.schema.field(index).type):
        return _cells(batch, TIME._replace(name=name))
    column = batch.column(index)
    unit = _UNITS[column.type.unit]
    return [None if time is None else time * unit for time in column.cast(pa.int64()).to_pylist()]


def _endpoint(text: str | None) -> Endpoint | None:
    """An address and port as the tables show them; None if it is none."""
    found = _ENDPOINT.fullmatch(text or "")
    if found is None or int(found[2]) > 65535:
        return None
    try:
        return Endpoint(ipaddress.ip_address(found[1]).packed, int(found[2]))
    except ValueError:
        return None
