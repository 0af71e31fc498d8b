"""Rows of the tables, from the octets of frames, by the codec of their dialect.

Both builds make rows here: the pure build all of them, the compiled one those that cells decline. So
values, errors, texts and offsets are equal by construction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpcodec import DecodeError, InlineContent, RawTable, ReferenceContent
from amqpcodec._kernel.wire import HEADER, METHOD, PROTOCOL_HEADER
from amqpcodec.capture import Connection, Fault, LocatedSegment
from amqpcodec.capture.dialects import module
from amqpcodec.capture.envelopes import method_ids
from amqpcodec.capture.network import ACK
from amqpcodec.spec import CREDENTIALS, FieldSpec, MethodSpec
from amqpcodec.types import EPOCH

from .decoding import Decoding
from .files import Files
from .open_message import LEAST_HEADER, OpenMessage, body_size_in
from .origins import NO_TIME, FrameOrigin
from .schemas import (
    HEADERS,
    MESSAGE_NAMES,
    PROPERTIES_SHOWN,
    TRACE,
    Column,
    column_name,
    content_columns,
    kinds_of,
    method_columns,
    modules_of,
    property_columns,
)
from .text import clean, pairs
from .trace import TRACERS, trace_of
from .waits_py import DROPPED

if TYPE_CHECKING:
    from .following_py import Message

ENVELOPE = struct.Struct("!BHI")
_MAX_INT64 = 2**63 - 1
_TRACE = tuple(column.name for column in TRACE)
_MICROSECOND = timedelta(microseconds=1)
ANSWERS = frozenset(
    ("ack", "nack", "reject", "requeued", "confirmed", "refused")
)  # outcomes that are answers
_TRACER_KEYS = tuple(bytes([len(name)]) + name.encode() for name in TRACERS)
_FAULT_CODES = {"gap": "GAP", "lost": "LOST", "file": "FILE"}


class LostError(DecodeError):
    """Octets that belong to no frame, where all octets should."""

    @property
    def reply_name(self) -> str:
        """The code that stands in `_error`."""
        return "lost"


class Row(NamedTuple):
    """One row of a table.

    Attributes:
        cells: values by the name of their column, as `buffers_py.filled` takes them; null where missing.
        octets: octets of the frames it was made of.
        error: what is wrong with it, if anything is.
    """

    cells: dict[str, Any]
    octets: int
    error: DecodeError | None = None


class ValueRangeError(DecodeError):
    """A valid value that its column cannot hold."""

    @property
    def reply_name(self) -> str:
        """The code that stands in `_error`, in the form of the names of reply codes."""
        return "value-range"


class Rows:
    """Makes the rows of one table.

    Args:
        table: its name.
        columns: those wanted, from `schemas.chosen`. Cells of others may be made, but need not.
        decoding: how; its dialects are those whose fields the table has columns for.
        file: name of the first file for the column `file`.

    Attributes:
        checks: whether to look for errors also in fields that nobody asked for.
        files: where packets are.
        dialects: the modules of the dialects, by name.
    """

    def __init__(
        self, table: str, columns: Sequence[Column], decoding: Decoding, file: str | None = None
    ) -> None:
        modules = tuple(map(module, decoding.dialects))
        shown = modules_of(table, decoding.dialects)
        self.dialects: dict[str, ModuleType] = {each.DIALECT.name: each for each in modules}
        self._wanted = {column.name for column in columns}
        self._wanted |= {f"{column.name}.{child.name}" for column in columns for child in column.children}
        reports = not self._wanted.isdisjoint(("_error", "_corrupt_record"))
        self.checks = decoding.check_all or reports or decoding.mode != "permissive"
        self._credentials = decoding.include_credentials
        self._connection_classes = {each.DIALECT.connection_class for each in modules}
        self._open_ids = _open_ids(modules)
        self.files = Files(file)
        # Where fields go: of methods to children of `args`, or, if they carry content, to columns.
        self._inside, self._taken = ("args.", frozenset()) if table == "methods" else ("", MESSAGE_NAMES)
        self._arguments: dict[str, str] = {}
        self._properties: dict[str, str] = {}
        self._outer = "" if table == "deliveries" else "properties"  # the struct that properties go to
        self._traces = not self._wanted.isdisjoint(_TRACE)
        if table == "methods":
            self._arguments = kinds_of(method_columns(shown))
        elif table in ("messages", "deliveries"):
            self._arguments = kinds_of(content_columns(shown))
            self._properties = kinds_of(property_columns(shown))
        self._plans: dict[type, tuple[_Step, ...]] = {}
        self._read: dict[type, bool] = {}
        self._decoders: dict[ModuleType, tuple[Any, Any]] = {}
        self._connection: Connection | None = None
        self._origin: dict[str, Any] = {}

    def wants(self, column: str) -> bool:
        """Return whether a column is wanted."""
        return column in self._wanted

    # -- rows

    def frame_row(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> Row:
        """The row in `frames` of a frame whose end is known."""
        cells = self.lead(origin)
        frame_type, channel, size = ENVELOPE.unpack_from(octets)
        if frame_type == PROTOCOL_HEADER:
            cells.update(frame_type=frame_type, channel=0, size=len(octets), payload=octets)
            return Row(cells, len(octets))
        cells.update(frame_type=frame_type, channel=channel, size=size)
        if frame_type == METHOD:
            self._identify(cells, octets, dialect)
        elif frame_type == HEADER and size >= 2:
            cells["class_id"] = int.from_bytes(octets[7:9], "big")
        if "payload" in self._wanted and not self._secret(octets):
            cells["payload"] = octets[7:-1]
        return Row(cells, len(octets))

    def method_row(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> Row:
        """The row in `methods` of a method's frame, valid or damaged."""
        cells = self.lead(origin)
        cells["channel"] = ENVELOPE.unpack_from(octets)[1]
        known = self._identify(cells, octets, dialect)
        if known is not None and not self.reads(known):
            return Row(cells, len(octets))
        method, error = self.payload(origin, octets, dialect)
        if method is not None:
            cells["args"], error = self._values(origin, octets, dialect, method)
        self._blame(cells, error, octets)
        return Row(cells, len(octets), error)

    def message_row(self, content: OpenMessage) -> Row:
        """The row in `messages` of a content, whole or not."""
        cells = self.lead(content.origin)
        cells.update(
            channel=content.channel, frames=content.frames, ts_last=micros(content.last_ns),
            complete=content.complete,
        )  # fmt: skip
        if content.queue is not None:
            cells["queue"] = content.queue
        if content.body_size is not None and content.body_size <= _MAX_INT64:
            cells["body_size"] = content.body_size
        error, culprit = self._add_method(cells, content), content.method
        wrong = self._add_header(cells, content)
        if error is None:
            error, culprit = wrong, content.header
        if error is None:
            error, culprit = content.error, content.culprit
        if content.parts or content.body_size == 0:
            cells["body"] = b"".join(content.parts)
        self._blame(cells, error, culprit)
        return Row(cells, content.octets, error)

    def delivery_row(self, message: Message, outcome: str | None, packet: int, time_ns: int) -> Row:
        """The row in `deliveries` of a message, with the packet and time that decided on its outcome."""
        cells = self.lead(message.origin)
        cells.update(channel=message.channel, queue=message.queue, complete=message.complete, outcome=outcome)
        if message.tag and message.tag <= _MAX_INT64:
            cells["delivery_tag"] = message.tag
        error, culprit = self._add_method(cells, message), message.method
        wrong, header = self._add_header(cells, message), message.header
        if header is not None and len(header) >= LEAST_HEADER:
            size = body_size_in(header)
            cells["body_size"] = size if size <= _MAX_INT64 else None
        if error is None:
            error, culprit = wrong, header
        if error is None:
            error, culprit = message.error, message.culprit
        cells.update(outcome_cells(self.files, message.time_ns, outcome, packet, time_ns))
        if message.found is not None:
            cells["wait_by"] = message.found
        if message.found not in (None, DROPPED):
            cells.update(publish_flow=message.publish_flow, publish_offset=message.publish_offset)
            if message.wait_ns != NO_TIME:
                cells["wait_us"] = message.wait_ns // 1000
        self._blame(cells, error, culprit)
        return Row(cells, message.size, error)

    def damage_row(self, fault: Fault) -> Row:
        """The row in `frames`, `methods` and `messages` of a frame in error whose end is not known, or of
        octets that belong to no frame."""
        cells, error = self.lead(fault), _error_of(fault)
        self._blame(cells, error, None)
        return Row(cells, 0, error)

    def fault_row(self, fault: Fault) -> Row:
        """The row in `errors` of anything missing or unreadable."""
        cells = self.lead(fault)
        cells.update(
            kind=fault.kind, code=fault_code(fault), reply_code=fault.reply_code,
            message=clean(fault.message), length=fault.length,
        )  # fmt: skip
        if fault.octets and not self._secret(fault.octets):
            cells["octets"] = fault.octets
        if fault.dropped:
            cells["dropped"] = fault.dropped
        return Row(cells, len(fault.octets))

    def packet_row(self, located: LocatedSegment) -> Row:
        """The row in `packets` of a segment."""
        segment = located.segment
        origin = FrameOrigin(located.connection, located.direction, segment.packet, segment.time_ns, 0)
        cells = self.lead(origin)
        cells.update(
            offset=located.offset, seq=segment.seq, ack=segment.ack if segment.flags & ACK else None,
            flags=segment.flags, length=segment.length, payload=segment.data,
        )  # fmt: skip
        return Row(cells, len(segment.data))

    # -- what rows are made of

    def lead(self, origin: FrameOrigin | Fault) -> dict[str, Any]:
        """The cells that say where a row comes from.

        A fault of a file has the packet's number there, all else its number in the recording.
        """
        file, packet = self.files.locate(origin.packet)
        if origin.connection is None:
            file, packet = self.files.name, origin.packet
        return {
            "file": file,
            **self.origin(origin.connection),
            "direction": origin.direction,
            "ts": micros(origin.time_ns),
            "ts_ns": _nanos(origin.time_ns),
            "offset": origin.offset,
            "packet": packet,
        }

    def origin(self, connection: Connection | None) -> dict[str, Any]:
        """The cells that name a connection; a stream that is no capture has no ends to name."""
        if connection is not self._connection:
            self._connection, self._origin = connection, {}
            if connection is not None and connection.client is not None:
                client, server = str(connection.client), str(connection.server)
                self._origin.update(flow=connection.number, client=client, server=server)
        return self._origin

    def payload(
        self, origin: FrameOrigin, octets: bytes, dialect: ModuleType
    ) -> tuple[Any, DecodeError | None]:
        """Decode the payload of a frame, its tables as `RawTable`; or return None and the error."""
        return self._decode(self._decoders_of(dialect)[0], origin, octets)

    def _decode(self, decoder: Any, origin: FrameOrigin, octets: bytes) -> tuple[Any, DecodeError | None]:
        try:
            return next(decoder.feed(octets)).payload, None
        except DecodeError as error:
            error.offset += origin.offset
            return None, error
        finally:
            decoder.reset()

    def _decoders_of(self, dialect: ModuleType) -> tuple[Any, Any]:
        """Two decoders: one that keeps tables as octets, one that makes dicts of them."""
        decoders = self._decoders.get(dialect)
        if decoders is None:
            make: Any = dialect
            decoders = make.FrameDecoder(frame_max=0, tables="raw"), make.FrameDecoder(frame_max=0)
            self._decoders[dialect] = decoders
        return decoders

    def _identify(self, cells: dict[str, Any], octets: bytes, dialect: ModuleType) -> Any:
        """The cells for ids and name, as far as a method's frame has them; its class, if that is known."""
        ids = method_ids(octets)
        if ids is None:
            return None
        cells["class_id"], cells["method_id"] = ids
        method = dialect.METHODS.get(ids)
        if method is not None:
            cells["name"] = method.spec.name
        return method

    def _add_method(self, cells: dict[str, Any], content: OpenMessage | Message) -> DecodeError | None:
        """The cells that come from a content's method; what is wrong with it."""
        octets, dialect = content.method, content.dialect
        if octets is None:
            return None
        known = dialect.METHODS[method_ids(octets)]
        name = known.spec.name
        cells.update(name=name, kind=name.partition(".")[2])
        if not self.reads(known):
            return None
        method, error = self.payload(content.origin, octets, dialect)
        if method is not None:
            values, error = self._values(content.origin, octets, dialect, method)
            cells.update(values)
        return error

    def _add_header(self, cells: dict[str, Any], content: OpenMessage | Message) -> DecodeError | None:
        """The cells that come from a content header; what is wrong with it."""
        octets, dialect = content.header, content.dialect
        if octets is None:
            return None
        known = dialect.PROPERTIES.get(int.from_bytes(octets[7:9], "big"))
        if known is not None and not self.reads(known):
            return None
        origin = content.origin._replace(offset=content.header_offset)
        header, error = self.payload(origin, octets, dialect)
        if header is None:
            return error
        properties = header.properties
        values, error = self._values(origin, octets, dialect, properties)
        cells.update({self._outer: values} if self._outer else values)
        headers = getattr(properties, HEADERS.name, None)
        if isinstance(headers, RawTable):
            cells["headers_raw"] = headers.octets
            try:
                if self._traces and any(each in headers.octets for each in _TRACER_KEYS):
                    cells.update(zip(_TRACE, trace_of(headers), strict=True))
                if self.checks or HEADERS.name in self._wanted:
                    cells[HEADERS.name] = pairs(headers)
            except DecodeError:
                if self.checks or HEADERS.name in self._wanted:
                    error = self._table_error(origin, octets, dialect)
        return error

    def _values(
        self, origin: FrameOrigin, octets: bytes, dialect: ModuleType, record: Any
    ) -> tuple[dict[str, Any], DecodeError | None]:
        """The cells of a method's arguments or of properties; the first thing wrong with them."""
        cells: dict[str, Any] = {}
        first: DecodeError | None = None
        for attribute, cell, name in self._plan(record):
            value = getattr(record, attribute)
            if value is None:
                continue
            try:
                made = cell(value)
            except ValueRangeError as error:
                error.offset, error.method, error.field = origin.offset, record.spec.name, attribute
                first = first or error
            except DecodeError:
                first = first or self._table_error(origin, octets, dialect)
            else:
                if name is not None:
                    cells[name] = made
        return cells, first

    def reads(self, record: Any) -> bool:
        """Return whether rows depend on the fields of a method or content header, given its class."""
        read = self._read.get(record)
        if read is None:
            read = self._read[record] = self.checks or self._fills(record.spec)
        return read

    def _fills(self, spec: Any) -> bool:
        """Return whether a column is wanted that the fields of a class fill."""
        if not isinstance(spec, MethodSpec):
            shown = PROPERTIES_SHOWN if not self._outer else ("properties", HEADERS.name, "headers_raw")
            return self._traces or not self._wanted.isdisjoint(shown)
        if self._inside:
            return "args" in self._wanted
        return any(self._column_of(spec, field)[1] for field in spec.fields)

    def _plan(self, record: Any) -> tuple[_Step, ...]:
        """Where the fields of a class go, but for the headers of a content.

        What is wrong in a field that goes nowhere may have to be reported, too.
        """
        plan = self._plans.get(type(record))
        if plan is None:
            spec = record.spec
            fields = (field for field in spec.fields if not _is_headers(spec, field))
            steps = (
                (field.attribute, _CELLS.get(field.type, _as_it_is), *self._column_of(spec, field))
                for field in fields
            )
            plan = tuple(
                (attribute, cell, name if wanted else None)
                for attribute, cell, name, wanted in steps
                if wanted or (self.checks and (cell is pairs or (name and cell in _LIMITED)))
            )
            self._plans[type(record)] = plan
        return plan

    def _column_of(self, spec: Any, field: FieldSpec) -> tuple[str | None, bool]:
        """The column, or child of a struct, for a field; whether it is wanted and may be shown."""
        if not isinstance(spec, MethodSpec):
            name = column_name(self._properties, field)
            if not self._outer:
                return name, name in PROPERTIES_SHOWN and name in self._wanted
            return name, f"properties.{name}" in self._wanted
        if field.reserved:
            return None, False
        name = column_name(self._arguments, field, self._taken)
        shown = self._credentials or (spec.name, field.name) not in CREDENTIALS
        return name, shown and f"{self._inside}{name}" in self._wanted

    def target_of(self, spec: Any, field: FieldSpec) -> tuple[str, str] | None:
        """Where a field goes: the name of a column, and that of one inside it or ""; None for nowhere."""
        if isinstance(spec, MethodSpec):
            outer = self._inside.rstrip(".")
            if not outer and not spec.content:
                return None  # no row of a table without `args` shows it
        elif _is_headers(spec, field):
            return HEADERS.name, ""
        else:
            outer = self._outer
        name, wanted = self._column_of(spec, field)
        if name is None or not wanted:
            return None
        return (outer, name) if outer else (name, "")

    def _table_error(self, origin: FrameOrigin, octets: bytes, dialect: ModuleType) -> DecodeError | None:
        """Return the error of the tables of a frame, with its offset in the stream."""
        return self._decode(self._decoders_of(dialect)[1], origin, octets)[1]

    def _blame(self, cells: dict[str, Any], error: DecodeError | None, octets: bytes | None) -> None:
        if error is not None:
            cells["_error"] = f"{error_code(error)} at {error.offset}"
            if octets is not None and not self._secret(octets):
                cells["_corrupt_record"] = octets

    def _secret(self, octets: bytes) -> bool:
        """Return whether a frame carries login data that must not be shown.

        A method of the connection class that nobody knows may: it is another dialect's, or its id is damaged.
        """
        ids = method_ids(octets) if octets[0] == METHOD else None
        return ids is not None and self.is_secret(*ids)

    def is_secret(self, class_id: int, method_id: int) -> bool:
        """Return whether a method carries login data that must not be shown."""
        if self._credentials or class_id not in self._connection_classes:
            return False
        return (class_id, method_id) not in self._open_ids


def _is_headers(spec: Any, field: FieldSpec) -> bool:
    """Return whether a field is the table that has columns of its own."""
    return not isinstance(spec, MethodSpec) and (field.attribute, field.type) == (HEADERS.name, "table")


def _error_of(fault: Fault) -> DecodeError:
    dialect = fault.connection.dialect if fault.connection else None
    kind = LostError if fault.kind == "lost" else DecodeError
    return kind(fault.message, fault.reply_code or 0, fault.offset, dialect=dialect, fatal=True)


def fault_code(fault: Fault) -> str:
    """The code of a fault, as it stands in the table `errors`."""
    return _FAULT_CODES.get(fault.kind) or error_code(_error_of(fault))


def error_code(error: DecodeError) -> str:
    """The code of an error, as it stands in `_error`."""
    return error.reply_name.upper().replace("-", "_")


def _open_ids(modules: Iterable[Any]) -> set[tuple[int, int]]:
    """Of the methods without login data."""
    names = {method for method, _ in CREDENTIALS}
    methods = [item for module in modules for item in module.METHODS.items()]
    secret = {ids for ids, method in methods if method.spec.name in names}
    return {ids for ids, _ in methods} - secret


def _nanos(time_ns: int | None) -> int | None:
    return time_ns if time_ns is not None and -_MAX_INT64 <= time_ns <= _MAX_INT64 else None


def micros(time_ns: int | None) -> int | None:
    """A time in microseconds; None where there is none, or where nanoseconds in 64 bits do not hold it."""
    time_ns = _nanos(time_ns)
    return None if time_ns is None else time_ns // 1000


def outcome_cells(
    files: Files, sent_ns: int, outcome: str | None, packet: int, time_ns: int
) -> dict[str, int | None]:
    """Return the cells that say when it was decided what became of a message.

    Args:
        files: where packets are.
        sent_ns: time of the message.
        outcome: what became of it.
        packet, time_ns: of what decided on that.
    """
    if time_ns == NO_TIME:
        return {}
    cells = {"ts_outcome": micros(time_ns), "ts_outcome_ns": _nanos(time_ns)}
    if packet != NO_TIME:
        cells["packet_outcome"] = files.locate(packet)[1]
    if outcome in ANSWERS:
        cells["latency_us"] = max(time_ns - sent_ns, 0) // 1000
    return cells


# -- cells by wire type


def _as_it_is(value: Any) -> Any:
    return value


def _int64(value: int) -> int:
    if value > _MAX_INT64:
        raise ValueRangeError(f"{value} is more than a signed number of 64 bits holds")
    return value


def _timestamp(value: datetime | int) -> int:
    if isinstance(value, int):
        raise ValueRangeError(f"{value} seconds are beyond the year 9999")
    return (value - EPOCH) // _MICROSECOND


def _content(value: InlineContent | ReferenceContent) -> dict[str, bytes]:
    return {"inline" if isinstance(value, InlineContent) else "reference": value.octets}


# Wire types whose values are not cells as they are.
_CELLS: dict[str, Callable[[Any], Any]] = {
    "longlong": _int64,
    "shortstr": clean,
    "timestamp": _timestamp,
    "table": pairs,
    "content": _content,
}
_LIMITED = (_int64, _timestamp)  # which refuse values that no column holds
# How a field becomes a cell: its attribute, what makes the cell, the column; None where only errors count.
_Step = tuple[str, Callable[[Any], Any], str | None]
